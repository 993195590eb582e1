"""Completed answers are signed, and what was changed since shows (UAMP §6.7)."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import jwt
import pytest

from agents_app.providers import scripts
from chat_app.models import ChatEvent, Message
from payments_app.models import Transfer
from payments_app.spending import approvals
from sessions_app.response.end.signature import UNSIGNED
from signing_app import owner_keys
from telemetry import metrics
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.response.signatures.signed_answers import answered, digest, history, keys_of
from uamp import signatures
from uamp.signatures import ALGORITHMS, agent_owner, check_answer
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail, Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx
    from pytest_django import Settings

    from agents_app.selectors import AgentSpec
    from tests.live_server import Dial, Person
    from upp import LLMRequest


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_an_answer_is_signed_and_another_library_verifies_it(
    dial: Dial, web: httpx.Client, alice: Person, settings: Settings, algorithm: str
) -> None:
    settings.UAMP_SIGNATURE_ALGORITHM = algorithm
    agent = quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    header = jwt.get_unverified_header(done["signature"])
    keys = web.get("/agents/signer/.well-known/jwks.json").json()
    key = jwt.PyJWKSet.from_dict(keys)[header["kid"]]
    claims = jwt.decode(done["signature"], key, algorithms=[algorithm])
    question, answer = Message.objects.order_by("seq")
    assert header["typ"] == "response+jwt"
    assert claims["iss"] == settings.UAMP_ISSUER
    assert (claims["sub"], claims["agent"]) == (agent.pk, "signer")
    assert (claims["jti"], claims["message_id"]) == (done["response_id"], answer.pk)
    assert claims["chat_id"] == answer.chat_id
    assert claims["models"] == ["echo"]
    assert claims["output_hash"] == digest(done["response"]["output"])
    assert claims["request_id"] == question.pk
    assert claims["request_hash"] == digest(
        {
            "id": question.pk,
            "role": "user",
            "content": "Hello wörld",
            "content_items": [],
            "salt": question.salt,
        }
    )
    assert question.salt


def test_the_text_hash_is_that_of_the_specification(dial: Dial, alice: Person) -> None:
    quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    claims = jwt.decode(done["signature"], options={"verify_signature": False})
    text = "".join(item["text"] for item in done["response"]["output"])
    assert claims["response_hash"] == hashlib.sha256(text.encode()).hexdigest()


def test_history_and_the_log_keep_the_signature(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    question, answer = history(web, alice, Message.objects.all()[0].chat_id)
    assert question["signature"] is None
    assert answer["signature"] == done["signature"]
    payload = ChatEvent.objects.get(type="response.done").payload
    assert payload["signature"] == done["signature"]
    verdict = check_answer(answer, keys_of(web), chat_id=answer["chat_id"], question=question)
    assert (verdict.state, verdict.request) == ("valid", "same")


def test_one_changed_byte_in_the_database_shows(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    row = Message.objects.get(role="assistant")
    Message.objects.filter(pk=row.pk).update(content=row.content.replace("w", "v", 1))
    _, answer = history(web, alice, row.chat_id)
    assert check_answer(answer, keys_of(web)).state == "changed"


def test_a_changed_question_and_an_edited_one_show(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    row = Message.objects.get(role="user")
    Message.objects.filter(pk=row.pk).update(content="Hello there")
    question, answer = history(web, alice, row.chat_id)
    verdict = check_answer(answer, keys_of(web), question=question)
    assert (verdict.state, verdict.request, verdict.is_good) == ("valid", "changed", False)


def test_a_deleted_question_shows_as_erased_and_not_as_changed(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    row = Message.objects.get(role="user")
    response = web.delete(f"/api/v1/messages/{row.pk}", headers=alice.headers)
    assert response.status_code == 204
    question, answer = history(web, alice, row.chat_id)
    verdict = check_answer(answer, keys_of(web), question=question)
    assert (verdict.state, verdict.request) == ("valid", "erased")


def test_rotated_and_withdrawn_keys_show(dial: Dial, web: httpx.Client, alice: Person) -> None:
    agent = quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    kid = jwt.get_unverified_header(done["signature"])["kid"]
    _, answer = history(web, alice, Message.objects.all()[0].chat_id)
    owner_keys.rotate(agent_owner(agent.pk))
    assert check_answer(answer, keys_of(web)).state == "rotated"
    owner_keys.withdraw(kid)
    assert check_answer(answer, keys_of(web)).state == "unknown_key"


def test_the_price_and_its_transfer_are_signed(dial: Dial, alice: Person) -> None:
    agent = priced("paid", per_answer="0.25")
    rich(alice)
    approvals.approve(alice.user.pk, agent.pk, usd("1"))
    done = answered(dial, alice, "paid")
    claims = jwt.decode(done["signature"], options={"verify_signature": False})
    transfer = Transfer.objects.get(kind="answer")
    assert claims["price"] == {"amount": "0.25", "currency": "USD", "transfer_id": transfer.pk}
    assert transfer.response_id == claims["jti"]


def test_a_stopped_answer_that_was_paid_is_signed(
    dial: Dial, web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Once upon a time")
        yield Pause(60)

    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    agent = priced("paid", "writer", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    client = dial(alice)
    client.create_session(agent="paid")
    client.ask("Write")
    client.until("response.delta")
    client.send("response.cancel")
    end = client.until(*TERMINAL)[-1]
    assert end["type"] == "response.cancelled"
    claims = jwt.decode(end["signature"], options={"verify_signature": False})
    assert (claims["status"], claims["price"]["amount"]) == ("cancelled", "0.25")
    wait_until(lambda: Message.objects.filter(role="assistant").exists())
    chat_id = Message.objects.all()[0].chat_id
    question, answer = history(web, alice, chat_id)
    keys = keys_of(web)
    verdict = check_answer(answer, keys, chat_id=chat_id, question=question)
    assert (verdict.state, verdict.request) == ("valid", "same")
    assert check_answer({**answer, "status": "completed"}, keys).state == "changed"
    response = web.post(f"/api/v1/chats/{chat_id}/share-links", json={}, headers=alice.headers)
    assert 'data-signature="valid"' in web.get(response.json()["url"]).text


@pytest.mark.parametrize(("policy", "amount"), [("full", "0.25"), ("none", None)])
def test_a_failed_answer_is_signed_if_it_was_paid(
    dial: Dial,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
    policy: str,
    amount: str | None,
) -> None:
    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Once upon a time")
        yield Fail(UPPError("no", code=ErrorCode.AUTHENTICATION_FAILED, provider="scripted"))

    settings.UAMP_CHARGE_UNFINISHED = policy
    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    agent = priced("paid", "writer", per_answer="0.25")
    approvals.approve(rich(alice).user.pk, agent.pk, usd("1"))
    end = answered(dial, alice, "paid")
    assert (end["type"], "signature" in end) == ("response.error", amount is not None)
    if amount is not None:
        claims = jwt.decode(end["signature"], options={"verify_signature": False})
        assert (claims["status"], claims["price"]["amount"]) == ("failed", amount)
        assert claims["output_hash"] == digest([{"type": "text", "text": "Once upon a time"}])


def test_a_stopped_answer_that_was_free_is_not_signed(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def writer(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("Once upon a time")
        yield Pause(60)

    monkeypatch.setitem(scripts.SCRIPTS, "writer", writer)
    quick_agent("free", "writer")
    client = dial(alice)
    client.create_session(agent="free")
    client.ask("Write")
    client.until("response.delta")
    client.send("response.cancel")
    end = client.until(*TERMINAL)[-1]
    assert (end["type"], "signature" in end) == ("response.cancelled", False)


def test_an_answer_that_cannot_be_signed_says_so_and_is_counted(
    dial: Dial, web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_output: Any) -> str:
        raise ValueError("no canonical form")

    monkeypatch.setattr(signatures, "sha256_of", broken)
    before = metrics.UNSIGNED._value.get()
    quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    assert done["type"] == "response.done"
    assert (done["signature_error"], "signature" in done) == (UNSIGNED, False)
    assert metrics.UNSIGNED._value.get() == before + 1
    _, answer = history(web, alice, Message.objects.all()[0].chat_id)
    assert check_answer(answer, keys_of(web)).state == "unsigned"


def test_an_invalid_signature_breaks_neither_export_nor_page(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    answered(dial, alice, "signer")
    entry = ChatEvent.objects.get(type="response.done")
    entry.payload["signature"] = "eyJ..."
    entry.save()
    path = f"/api/v1/chats/{entry.chat_id}/export"
    export = web.get(path, params={"format": "json"}, headers=alice.headers).json()
    assert check_answer(export["messages"][1], export["keys"]).state == "changed"
