"""Payment of ACP prompts."""

from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.gateway_app.acp.socket_client import HELLO, Acp, Rpc
from tests.live_server import Person
from tests.sessions_app.billing.paid_agents import clean, priced, rich, usd


def test_an_unpaid_prompt_is_refused_and_goes_through_with_a_token(acp: Acp, alice: Person) -> None:
    priced("dear", per_answer="0.25")
    client = acp("dear", alice)
    session_id = client.new_session()
    refused = client.call("session/prompt", sessionId=session_id, prompt=HELLO)["error"]
    assert refused["code"] == -32402
    assert refused["data"]["accepts"]
    assert not Response.objects.exists()
    user_id = rich(alice).user.pk
    token = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600).token

    answer = client.call(
        "session/prompt", sessionId=session_id, prompt=HELLO, _meta={"payment_token": token}
    )

    assert answer["result"]["stopReason"] == "end_turn"
    assert client.text() == "Hello there"


def test_a_growing_answer_waits_for_a_further_payment(acp: Acp, alice: Person) -> None:
    priced("growing", output_per_1k="1")
    client = acp("growing", alice)
    session_id = client.new_session()
    user_id = rich(alice).user.pk
    tokens = [
        issuance.issue(key=f"t{n}", user_id=user_id, amount=usd(amount), expires_in=600).token
        for n, amount in enumerate(("0.6", "5"))
    ]
    prompt = [{"type": "text", "text": " ".join(f"word{n}" for n in range(800))}]
    first = client.call(
        "session/prompt", sessionId=session_id, prompt=prompt, payment_token=tokens[0]
    )

    assert first["error"]["code"] == -32402
    again = client.call(
        "session/prompt", sessionId=session_id, prompt=prompt, payment_token=tokens[1]
    )

    assert again["result"]["stopReason"] == "end_turn"
    assert client.text() == prompt[0]["text"]
    assert Response.objects.count() == 1


def test_a_token_that_is_refused_may_be_followed_by_another(acp: Acp, alice: Person) -> None:
    priced("growing", output_per_1k="1")
    client = acp("growing", alice)
    session_id = client.new_session()
    user_id = rich(alice).user.pk
    first, last = (
        issuance.issue(key=f"t{n}", user_id=user_id, amount=usd(amount), expires_in=600).token
        for n, amount in enumerate(("0.6", "5"))
    )
    prompt = [{"type": "text", "text": " ".join(f"word{n}" for n in range(800))}]

    def pay(token: str) -> Rpc:
        return client.call(
            "session/prompt", sessionId=session_id, prompt=prompt, payment_token=token
        )

    assert pay(first)["error"]["code"] == -32402
    for token in ("unknown", first):
        refused = pay(token)["error"]
        assert (refused["code"], refused["data"]["code"]) == (-32402, "payment_required")
        assert refused["data"]["payment_error"] in {"token_invalid", "insufficient_balance"}

    assert pay(last)["result"]["stopReason"] == "end_turn"
    assert client.text() == prompt[0]["text"]
    assert Response.objects.count() == 1
    assert clean()
