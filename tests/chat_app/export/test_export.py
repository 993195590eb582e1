"""Exports of a chat: what is in the file, how it ends, and who receives it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

import pytest
from django.db import transaction
from django.utils import timezone

from agents_app.models import Agent
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.revisions import edit_message
from chat_app.conversation.versions import replace_versions
from chat_app.export import pages
from chat_app.export.formats import FORMATS
from chat_app.models import Participant
from tests import factories
from tests.live_server import Person, shared_chat

if TYPE_CHECKING:
    import httpx

    from chat_app.models import Chat

FENCE = "```"


def store_message(chat: Chat, who: Person, text: str) -> str:
    """Store a message and return its id."""
    return factories.message(chat, who.user, text).pk


def test_a_member_exports_what_the_chat_shows_now(
    web: httpx.Client,
    alice: Person,
    bob: Person,
    mallory: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pages, "PAGE", 2)
    chat = shared_chat(alice, bob)
    ids = [store_message(chat, alice, f"{FENCE}\nnumber {n}\n## bob (2026)") for n in range(5)]
    edit_message(chat_id=chat.pk, message_id=ids[1], user_id=alice.user.pk, content="edited text")
    delete_message(chat_id=chat.pk, message_id=ids[2], user_id=alice.user.pk)
    path = f"/api/v1/chats/{chat.pk}/export"

    answer = web.get(path, params={"format": "ndjson"}, headers=bob.headers)
    assert answer.headers["Content-Type"] == "application/x-ndjson"
    assert answer.headers["Content-Disposition"] == 'attachment; filename="Shared.ndjson"'
    first, *lines, last = answer.content.splitlines(keepends=True)
    assert json.loads(first)["id"] == chat.pk
    end = json.loads(last)
    assert end == {
        "type": "end",
        "count": 5,
        "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
    }
    messages = [json.loads(line) for line in lines]
    assert [message["id"] for message in messages] == ids
    assert {message["sender_id"] for message in messages} == {str(alice.user.pk)}
    assert (messages[1]["content"], messages[1]["revision"]) == ("edited text", 1)
    assert (messages[2]["content"], messages[2]["content_items"]) == ("", [])
    assert messages[2]["deleted_at"] is not None
    assert b"number 1" not in answer.content
    assert b"number 2" not in answer.content

    export = web.get(path, params={"format": "json"}, headers=bob.headers)
    document = export.json()
    assert document["count"] == len(document["messages"]) == 5
    body = export.content.split(b'"messages":[\n')[1].rsplit(b"\n],", 1)[0]
    assert hashlib.sha256(body.replace(b"},\n", b"}\n") + b"\n").hexdigest() == document["sha256"]

    text = web.get(path, params={"format": "markdown"}, headers=bob.headers).text
    # A text of a message makes no heading of the file.
    assert sum(line.startswith("## alice") for line in text.splitlines()) == 5
    assert not any(line.startswith("## bob") for line in text.splitlines())
    assert text.endswith("---\n\n5 messages.\n")

    assert web.get(path, params={"format": "json"}, headers=mallory.headers).status_code == 404
    wrong = web.get(path, params={"format": "pdf"}, headers=bob.headers)
    assert (wrong.status_code, wrong.json()["code"]) == (400, "invalid")


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_an_export_that_is_cut_has_no_end(name: str, db: None) -> None:
    reader = factories.user()
    chat = factories.chat(reader)
    for number in range(pages.PAGE + 1):
        factories.message(chat, reader, f"number {number}")
    chat.refresh_from_db()
    write, _, _ = FORMATS[name]
    full_export = b"".join(write(chat, pages.pages(chat, reader.pk, receipts=lambda *_: {})))
    pieces = write(chat, pages.pages(chat, reader.pk, receipts=lambda *_: {}))
    beginning = next(pieces) + next(pieces)
    assert b"number 1" in beginning
    # What is said from now on is not in the file; what it read is in memory page by page.
    factories.message(chat, reader, "too late")
    assert f"number {pages.PAGE}".encode() not in beginning
    assert beginning + b"".join(pieces) == full_export
    left = write(chat, pages.pages(chat, reader.pk, receipts=lambda *_: {}))
    beginning = next(left) + next(left)
    Participant.objects.filter(chat=chat, user=reader).update(left_at=timezone.now())
    with pytest.raises(pages.ExportStopped):
        list(left)


def test_a_regenerated_answer_names_its_first_version(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    echo = Agent.objects.get(name="echo")
    first = factories.message(chat, echo, "first")
    again = factories.message(chat, echo, "again", version_of=first.pk)
    with transaction.atomic():
        replace_versions(chat.pk, first.pk, again.pk)

    path = f"/api/v1/chats/{chat.pk}/export?format=ndjson"
    _, line, _ = web.get(path, headers=alice.headers).text.splitlines()

    assert (json.loads(line)["id"], json.loads(line)["version_of"]) == (again.pk, first.pk)


def test_an_export_that_was_cut_off_resumes_after_its_last_message(
    web: httpx.Client, alice: Person, mallory: Person
) -> None:
    chat = shared_chat(alice)
    for number in range(3 * pages.PAGE):
        factories.message(chat, alice.user, f"message {number} {'x' * 20_000}")
    path = f"/api/v1/chats/{chat.pk}/export?format=ndjson"
    all_lines = web.get(path, headers=alice.headers).text.splitlines()[1:-1]
    lines: list[str] = []
    with web.stream("GET", path, headers=alice.headers) as cut:
        for line in cut.iter_lines():
            lines.append(line)
            if len(lines) == pages.PAGE:
                break
    after = json.loads(lines[-1])["seq"]
    assert "end" not in {json.loads(line)["type"] for line in lines}

    _, *rest, last = web.get(f"{path}&after={after}", headers=alice.headers).text.splitlines()

    assert lines[1:] + rest == all_lines
    end = json.loads(last)
    digest = hashlib.sha256("".join(f"{line}\n" for line in rest).encode()).hexdigest()
    assert (end["count"], end["sha256"]) == (len(rest), digest)
    assert web.get(f"{path}&after={after}", headers=mallory.headers).status_code == 404
    assert web.get(f"{path}&after=-1", headers=alice.headers).status_code == 400
