"""The costs of a chat's answers over REST, and the pool of a chat (docs/money.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from chat_app.members.agreed_prices import prices_in
from payments_app import services as ledger
from payments_app.models import Transfer
from sessions_app.models import Response
from tests.client import text_of, wait_until
from tests.live_server import Dial, Person, shared_chat
from tests.sessions_app.billing.paid_agents import earned, pay, priced, rich, usd, wallet

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat


def answered(dial: Dial, who: Person, chat: Chat, text: str = "@paid Hello") -> str:
    """Ask, pay, and return the id of the response once its end is settled."""
    client = dial(who)
    client.create_session(chat=chat.pk)
    client.ask(text)
    demand = client.until("payment.required")[-1]
    pay(client, demand)
    client.until("payment.balance")
    return str(demand["response_id"])


def get(web: httpx.Client, who: Person, path: str, **query: str) -> httpx.Response:
    return web.get(path, headers=who.headers, params=query)


def fill(
    web: httpx.Client, who: Person, chat: Chat, amount: Any, key: str | None = "k"
) -> httpx.Response:
    headers = {**who.headers, **({"Idempotency-Key": key} if key else {})}
    return web.post(f"/api/v1/chats/{chat.pk}/pool", headers=headers, json={"amount": amount})


def test_a_receipt_says_what_an_answer_cost_and_its_payer_more(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="0.25")
    rich(alice)
    chat = shared_chat(alice, bob, agents=("paid",))
    response_id = answered(dial, alice, chat)
    path = f"/api/v1/chats/{chat.pk}/payments"
    (mine,) = get(web, alice, path).json()["data"]
    assert mine["response_id"] == response_id
    assert (mine["agent"], mine["amount"], mine["refunded"]) == ("paid", "0.25", "0")
    assert (mine["currency"], mine["fee"], mine["paid_by"]) == ("USD", "0", "you")
    usage = Response.objects.get().usage or {}
    assert (mine["input_tokens"], mine["output_tokens"]) == (
        usage["input_tokens"],
        usage["output_tokens"],
    )
    assert mine["transfers"] == [Transfer.objects.get(kind="answer").pk]
    (others,) = get(web, bob, path).json()["data"]
    # What is signed for others does not name the transfers either.
    document = others["document"]
    assert document != mine["document"]
    assert others == {**mine, "paid_by": "other", "transfers": [], "document": document}
    assert "9.75" not in get(web, bob, path).text


def test_the_servers_share_and_a_refund_are_on_the_receipt(
    dial: Dial, web: httpx.Client, alice: Person, settings: Any
) -> None:
    settings.UAMP_FEE_BASIS_POINTS = 1000
    priced("paid", per_answer="1")
    rich(alice)
    chat = shared_chat(alice, agents=("paid",))
    answered(dial, alice, chat)
    path = f"/api/v1/chats/{chat.pk}/payments"
    assert get(web, alice, path).json()["data"][0]["fee"] == "0.1"
    charged = Transfer.objects.get(kind="answer")
    ledger.refund(key="r", transfer_id=charged.pk, by=None, reason="wrong", amount=usd("0.4"))
    (receipt,) = get(web, alice, path).json()["data"]
    assert (receipt["amount"], receipt["refunded"], receipt["fee"]) == ("1", "0.4", "0.06")
    assert receipt["transfers"] == [charged.pk]


def test_only_members_see_receipts_and_only_of_their_chat(
    dial: Dial, web: httpx.Client, alice: Person, mallory: Person
) -> None:
    priced("paid", per_answer="1")
    rich(alice)
    chat = shared_chat(alice, agents=("paid",))
    response_id = answered(dial, alice, chat)
    path = f"/api/v1/chats/{chat.pk}/payments"
    assert get(web, mallory, path).status_code == 404
    own_chat = shared_chat(mallory, agents=("paid",))
    there = f"/api/v1/chats/{own_chat.pk}/payments"
    assert get(web, mallory, there, responses=response_id).json()["data"] == []
    assert len(get(web, alice, path, responses=f"{response_id},resp_none").json()["data"]) == 1
    assert get(web, alice, path, responses="resp_none").json()["data"] == []
    assert get(web, alice, path, responses=",".join("abc"[:1] * 101)).status_code == 400


def test_what_cost_nothing_has_no_receipt(dial: Dial, web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice, agents=("echo",))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@echo Hello")
    client.until("response.done")
    assert get(web, alice, f"/api/v1/chats/{chat.pk}/payments").json()["data"] == []


def test_an_owner_changes_who_pays_while_sessions_are_open(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    agent = priced("paid", per_answer="1")
    rich(alice)
    chat = shared_chat(alice, bob, agents=("paid",))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    done = web.patch(f"/api/v1/chats/{chat.pk}", headers=alice.headers, json={"payer": "owner"})
    assert done.status_code == 200
    reported = client.until("chat.updated")[-1]
    assert reported["payer"] == "owner"
    client.ask("@paid Hello")
    assert text_of(client.until("response.done")) == "Hello"
    wait_until(lambda: earned(agent) == "1")
    assert str(wallet(alice).available) == "9"


def test_an_owner_fills_the_pool_and_it_pays(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    agent = priced("paid", per_answer="1")
    rich(alice)
    chat = shared_chat(alice, bob, agents=("paid",))
    chat.payer, chat.agreed_prices = "pool", prices_in(chat.pk)
    chat.save()
    assert fill(web, alice, chat, "2.5").json()["available"] == "2.5"
    assert str(wallet(alice).available) == "7.5"
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    assert text_of(client.until("response.done")) == "Hello"
    wait_until(lambda: earned(agent) == "1")
    pool = get(web, alice, f"/api/v1/chats/{chat.pk}/pool").json()
    assert pool == {"available": "1.5", "held": "0", "currency": "USD"}
    (receipt,) = get(web, bob, f"/api/v1/chats/{chat.pk}/payments").json()["data"]
    assert receipt["paid_by"] == "pool"


def test_the_same_filling_again_moves_nothing_again(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(rich(alice))
    first, again = fill(web, alice, chat, "1"), fill(web, alice, chat, "1")
    assert first.json() == again.json()
    assert str(wallet(alice).available) == "9"
    assert fill(web, alice, chat, "2").json()["code"] == "idempotency_conflict"
    # Another one's key is another key.
    other = shared_chat(rich(bob))
    assert fill(web, bob, other, "2").status_code == 200
    assert str(wallet(bob).available) == "8"


def test_a_pool_is_its_owners(web: httpx.Client, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, rich(bob))
    stranger = shared_chat(bob)
    for pool_chat, who, status in ((chat, bob, 403), (stranger, alice, 404)):
        assert get(web, who, f"/api/v1/chats/{pool_chat.pk}/pool").status_code == status
        assert fill(web, who, pool_chat, "1").status_code == status
    assert str(wallet(bob).available) == "10"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("amount", "key", "status"),
    [
        ("0", "k", 400),
        ("-1", "k", 400),
        ("1e2", "k", 400),
        ("1.0000000001", "k", 400),
        ("\uff11", "k", 400),
        ("", "k", 400),
        ("1", None, 400),
        ("1", "x" * 201, 400),
        ("10.01", "k", 402),
    ],
)
def test_a_bad_filling_moves_nothing(
    web: httpx.Client, alice: Person, amount: str, key: str | None, status: int
) -> None:
    chat = shared_chat(rich(alice))
    assert fill(web, alice, chat, amount, key).status_code == status
    assert str(wallet(alice).available) == "10"
