"""The question bound by a signature is the one that was answered, whichever process signs."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from django.db import Error as DatabaseError
from django.db import OperationalError
from django.db.models import F
from django.utils import timezone

from agents_app.providers import scripts
from chat_app.models import ChatEvent, Message
from payments_app.spending import approvals
from sessions_app import database
from sessions_app.models import Response
from sessions_app.process import continuations, recovery
from sessions_app.response.end import finish, signature
from sessions_app.response.question import question_hash
from signing_app import owner_keys
from tests import factories
from tests.client import TERMINAL, wait_until
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.response.running import get_response, left_behind, process
from tests.sessions_app.response.signatures.signed_answers import answered, history, keys_of
from uamp.signatures import check_answer, request_of, sha256_of
from upp.providers.scripted import Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    import httpx

    from agents_app.selectors import AgentSpec
    from sessions_app.process.registry import Process
    from tests.live_server import Dial, Person
    from upp import LLMRequest

__all__ = ["process"]


def claims_of(response_id: str) -> dict[str, Any]:
    """Return the claims in the entry that ends a response."""
    entry = ChatEvent.objects.get(response_id=response_id, type__in=ChatEvent.TERMINAL)
    claims: dict[str, Any] = jwt.decode(
        entry.payload["signature"], options={"verify_signature": False}
    )
    return claims


def edit(message_id: str) -> None:
    Message.objects.filter(pk=message_id).update(content="Edited", edited_at=timezone.now())


def test_a_paid_answer_that_another_process_ends_binds_the_question_as_it_was(
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
    wait_until(lambda: Response.objects.get().text != "")
    question = Message.objects.get()
    signed = question_hash(question.pk, "user", "Write", [], question.salt)
    edit(question.pk)
    past = timezone.now() - timedelta(seconds=1)
    Response.objects.update(
        process="gone", fence=F("fence") + 1, lease_until=past, cancel_requested_at=past
    )
    wait_until(lambda: Response.objects.get().finished_at is not None)
    claims = claims_of(Response.objects.get().pk)
    assert (claims["status"], claims["price"]["amount"]) == ("cancelled", "0.25")
    assert (claims["request_id"], claims["request_hash"]) == (question.pk, signed)
    asked, answer = history(web, alice, question.chat_id)
    verdict = check_answer(answer, keys_of(web), question=asked)
    assert (verdict.state, verdict.request) == ("valid", "edited")


async def test_an_answer_that_another_process_continues_binds_the_question_as_it_was(
    process: Process,
) -> None:
    def left() -> tuple[str, Message]:
        row = left_behind()
        assert row.session is not None
        assert row.session.user is not None
        question = factories.message(row.chat, row.session.user, "as it was")
        signed = {
            "question_id": question.pk,
            "question_hash": question_hash(question.pk, "user", "as it was", [], question.salt),
        }
        Response.objects.filter(pk=row.pk).update(message=question, request=signed)
        row.tool_calls.update(status="done", result='"sunny"', finished_at=timezone.now())
        edit(question.pk)
        return row.pk, question

    response_id, question = await database.run(left)
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response_id).status == "completed")
    claims = await database.run(claims_of, response_id)
    assert claims["request_id"] == question.pk
    assert claims["request_hash"] == question_hash(
        question.pk, "user", "as it was", [], question.salt
    )


async def test_a_response_begun_by_the_release_before_binds_its_question(
    process: Process,
) -> None:
    """Its row has no hash of the question."""

    def left() -> tuple[str, Message]:
        row = left_behind()
        assert row.session is not None
        assert row.session.user is not None
        question = factories.message(row.chat, row.session.user, "When?")
        Response.objects.filter(pk=row.pk).update(message=question, request={})
        row.tool_calls.update(status="done", result='"sunny"', finished_at=timezone.now())
        return row.pk, question

    response_id, question = await database.run(left)
    row = await database.run(get_response, response_id)
    signed = (question.pk, question_hash(question.pk, "user", "When?", [], question.salt))
    ending = await database.run(continuations.ending_of, row)
    assert (ending.question_id, ending.question_hash) == signed
    await recovery.sweep(process)
    await database.run(wait_until, lambda: get_response(response_id).status == "completed")
    claims = await database.run(claims_of, response_id)
    assert (claims["request_id"], claims["request_hash"]) == signed


@pytest.mark.parametrize("text", ["Hello", "x" * 5000])
def test_the_hash_of_a_question_is_stored_when_its_answer_begins(
    dial: Dial, alice: Person, text: str
) -> None:
    quick_agent("signer", "echo")
    done = answered(dial, alice, "signer", text)
    question = Message.objects.get(role="user")
    stored = Response.objects.get().request
    assert stored["question_id"] == question.pk
    assert stored["question_hash"] == question_hash(question.pk, "user", text, [], question.salt)
    assert claims_of(done["response_id"])["request_hash"] == stored["question_hash"]


def test_an_answer_without_a_message_of_its_own_binds_the_last_question(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    client = dial(alice)
    client.create_session(agent="signer")
    client.answer("Hello")
    client.send("response.create")
    again = client.until(*TERMINAL)[-1]
    assert again["type"] == "response.done"
    asked, *_, answer = history(web, alice, Message.objects.get(role="user").chat_id)
    assert answer["response_id"] == again["response_id"]
    verdict = check_answer(answer, keys_of(web), question=asked)
    assert (verdict.state, verdict.request) == ("valid", "same")


def test_an_answer_to_a_mention_binds_the_answer_that_mentions_its_agent(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def caller(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text("yes, @signer")

    monkeypatch.setitem(scripts.SCRIPTS, "caller", caller)
    quick_agent("caller", "caller")
    quick_agent("signer", "echo")
    chat = shared_chat(alice, bob, agents=("caller", "signer"))
    client = dial(bob)
    client.create_session(chat=chat.pk)
    client.ask("@caller, who?")
    answers = Message.objects.filter(chat=chat, role="assistant")
    wait_until(lambda: answers.count() == 2)
    _, call, answer = history(web, alice, chat.pk)
    assert (call["name"], answer["name"]) == ("caller", "signer")
    verdict = check_answer(answer, keys_of(web), question=call)
    assert (verdict.state, verdict.request) == ("valid", "same")
    guess = sha256_of(request_of({**call, "id": "", "role": "user", "salt": None}))
    assert verdict.claims is not None
    assert verdict.claims.request_hash != guess


def test_a_regenerated_answer_binds_its_question(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("signer", "echo")
    client = dial(alice)
    client.create_session(agent="signer")
    client.answer("Hello")
    first = Message.objects.get(role="assistant")
    client.send("response.create", replaces=first.pk)
    again = client.until(*TERMINAL)[-1]
    assert again["type"] == "response.done"
    asked, *_, answer = history(web, alice, first.chat_id)
    assert answer["response_id"] == again["response_id"]
    verdict = check_answer(answer, keys_of(web), question=asked)
    assert (verdict.state, verdict.request) == ("valid", "same")


# --- The key cannot be read for a moment ---


@pytest.mark.parametrize("failures", [1, 2])
def test_an_answer_whose_key_could_not_be_read_at_first_is_signed(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch, failures: int
) -> None:
    read, errors = owner_keys.signing_key, [OperationalError("locked")] * failures

    def failing(owner: str) -> object:
        if errors:
            raise errors.pop()
        return read(owner)

    monkeypatch.setattr(signature, "signing_key", failing)
    monkeypatch.setattr(finish, "RETRY_SECONDS", (0.0, 0.0, 0.0))
    quick_agent("signer", "echo")
    done = answered(dial, alice, "signer")
    assert not errors
    assert "signature" in done
    entry = ChatEvent.objects.get(type="response.done")
    assert entry.payload["signature"] == done["signature"]


def test_an_answer_whose_key_cannot_be_read_at_all_is_not_stored_unsigned(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    attempts: list[str] = []

    def failing(owner: str) -> None:
        attempts.append(owner)
        raise DatabaseError("gone")

    monkeypatch.setattr(signature, "signing_key", failing)
    monkeypatch.setattr(finish, "RETRY_SECONDS", (0.0, 0.0, 0.0))
    quick_agent("signer", "echo")
    client = dial(alice)
    client.create_session(agent="signer")
    client.ask("Hello")
    wait_until(lambda: len(attempts) == 4)
    assert not ChatEvent.objects.filter(type__in=ChatEvent.TERMINAL).exists()
    assert Response.objects.get().finished_at is None
