"""Exported answers and what they cost: as the reader of the file may know it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat_app.conversation.reactions import add_reaction
from chat_app.export import pages
from chat_app.models import Participant
from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey
from tests import factories
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import pay, priced, rich

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx
    from django.test import Client

    from tests.live_server import Dial, Person


def test_an_answer_has_its_receipt_and_its_transfers_are_the_payers(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    priced("paid", per_answer="0.25")
    rich(alice)
    chat = shared_chat(alice, bob, agents=("paid",))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@paid Hello")
    pay(client, client.until("payment.required")[-1])
    client.until("payment.balance")
    path = f"/api/v1/chats/{chat.pk}/export"
    for person, paid_by in ((alice, "you"), (bob, "other")):
        file = web.get(path, params={"format": "ndjson"}, headers=person.headers).text
        question, answer = [json.loads(line) for line in file.splitlines()[1:-1]]
        assert "receipt" not in question
        receipt = answer["receipt"]
        assert (receipt["amount"], receipt["currency"]) == ("0.25", "USD")
        assert (receipt["paid_by"], bool(receipt["transfers"])) == (paid_by, person is alice)
    markdown = web.get(path, params={"format": "markdown"}, headers=bob.headers).text
    assert ", 0.25 USD)" in markdown
    Participant.objects.filter(chat=chat, user=bob.user).delete()
    assert web.get(path, params={"format": "json"}, headers=bob.headers).status_code == 404


@pytest.mark.django_db
@pytest.mark.parametrize("suffix", ["ndjson", "json"])
def test_reactions_are_in_an_export_and_its_sum_covers_them(client: Client, suffix: str) -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    liked, plain = (factories.message(chat, ada, text) for text in ("Yes", "No"))
    for who in (ada, bob):
        add_reaction(chat_id=chat.pk, message_id=liked.pk, user_id=who.pk, emoji="👍")
    client.force_login(bob)
    path = f"/api/v1/chats/{chat.pk}/export?format={suffix}"
    file = client.get(path).getvalue()
    if suffix == "json":
        export = json.loads(file)
        messages = export["messages"]
    else:
        lines = file.splitlines(keepends=True)
        messages, export = [json.loads(line) for line in lines[1:-1]], json.loads(lines[-1])
        assert export["sha256"] == hashlib.sha256(b"".join(lines[1:-1])).hexdigest()
    people = [{"id": str(who.pk), "name": who.username} for who in (ada, bob)]
    assert messages[0]["reactions"] == [{"emoji": "👍", "count": 2, "users": people}]
    assert (messages[1]["id"], "reactions" in messages[1]) == (plain.pk, False)
    assert export["count"] == 2


@pytest.mark.django_db
def test_an_answer_that_failed_before_a_word_is_in_history_and_exports(client: Client) -> None:
    ada, echo = factories.user(), factories.agent()
    chat = factories.chat(ada, echo)
    question, other = (factories.message(chat, ada, text) for text in ("Why?", "And?"))
    error = {"code": "provider_error", "message": "The model *failed*."}
    now = timezone.now()
    ended = {"finished_at": now, "error": error, "status": "failed"}
    failed = factories.response(echo, chat, message=question, **ended)
    partial = factories.response(echo, chat, message=other, **ended)
    factories.message(chat, echo, "So far", response_id=partial.pk, status="failed")
    factories.response(echo, chat, message=question)
    client.force_login(ada)
    path = f"/api/v1/chats/{chat.pk}"
    page = client.get(f"{path}/messages?expand=failed_answers&order=asc").json()["data"]
    (failed_answer,) = page[0]["failed_answers"]
    assert failed_answer == {
        "response_id": failed.pk,
        "agent": "echo",
        "status": "failed",
        "error": error,
        "ended_at": failed_answer["ended_at"],
    }
    assert [line["failed_answers"] for line in page[1:]] == [[], []]
    file = client.get(f"{path}/export?format=ndjson").getvalue().decode()
    lines = [json.loads(line) for line in file.splitlines()]
    assert [
        [answer["response_id"] for answer in line.get("failed_answers", ())] for line in lines
    ] == [
        [],
        [failed.pk],
        *[[]] * 3,
    ]
    assert lines[-1]["count"] == 3
    text = client.get(f"{path}/export?format=markdown").getvalue().decode()
    assert "*echo: failed. The model " in text


def _end_key(user: User, _: Client) -> None:
    ApiKey.objects.filter(user=user).update(revoked_at=timezone.now())


def _deactivate(user: User, _: Client) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def _sign_out(_: User, client: Client) -> None:
    client.logout()


@pytest.mark.django_db
@pytest.mark.parametrize("by_key", [True, False])
@pytest.mark.parametrize("end", [None, _end_key, _deactivate, _sign_out])
def test_an_export_ends_when_its_readers_credential_does(
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    *,
    by_key: bool,
    end: Callable[[User, Client], None] | None,
) -> None:
    monkeypatch.setattr(pages, "PAGE", 2)
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for number in range(5):
        factories.message(chat, ada, f"number {number}")
    secret = create_api_key(ada, name="program")
    client.force_login(ada)
    headers = {"Authorization": f"Bearer {secret}"} if by_key else {}
    path = f"/api/v1/chats/{chat.pk}/export?format=ndjson"
    response: Any = client.get(path, headers=headers)
    pieces = response.streaming_content
    beginning = next(pieces) + next(pieces)
    assert b"number 1" in beginning
    if end is not None:
        end(ada, client)

    rest = b"".join(pieces)

    ends = end is _deactivate or end is (_end_key if by_key else _sign_out)
    assert (b"number 2" in rest, b'"type":"end"' in rest) == (not ends, not ends)
