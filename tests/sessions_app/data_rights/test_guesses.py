"""After a deletion or an erasure, no hash that a member reads confirms a guess of the text."""

from __future__ import annotations

import base64
import hashlib
import re
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from chat_app.log.verification import check_log
from chat_app.models import ChatEvent, Message
from sessions_app.data_rights.erasure import erase_person
from sessions_app.data_rights.old_messages import erase_old
from tests.live_server import quick_agent, shared_chat
from uamp.logs.chain import payload_digest
from uamp.signatures import output_of, request_of, sha256_of, text_sha256

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django.fixtures import Settings

    from tests.live_server import Dial, Person

TEXT = "@signer yes"
EDITED = "@signer no"
JWT = re.compile(r"[\w-]+\.([\w-]{40,})\.[\w-]+")


def unsalted(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an entry as far as someone who guesses its text knows it."""
    known = {name: value for name, value in payload.items() if name != "salt"}
    if "message" in known:
        known["message"] = unsalted(known["message"])
    return known


def salts_in(payload: dict[str, Any]) -> Iterator[str]:
    for part in (payload, payload.get("message", {})):
        if "salt" in part:
            yield part["salt"]


def hashes_of(rows: list[dict[str, Any]], entries: list[ChatEvent]) -> dict[str, str]:
    """Return the hashes of messages and entries that a guess of their text leads to."""
    hashes: dict[str, str] = {}
    for row in rows:
        text, output = row["content"], output_of(row["content"], row["content_items"])
        question = {**row, "salt": None}
        hashes |= {
            text_sha256(text): "text",
            sha256_of(output): "output",
            sha256_of(request_of(question)): "request",
            sha256_of({"content": text}): "body",
            sha256_of([text, []]): "content",
        }
    for entry in entries:
        hashes[payload_digest(unsalted(entry.payload)).hex()] = entry.type
        for value in entry.payload.values():
            if isinstance(value, dict):
                hashes[sha256_of(value)] = f"a part of {entry.type}"
    return hashes


def readable_by(who: Person, chat_id: str, web: httpx.Client) -> str:
    """Return all that a member reads of a chat; the claims of signatures are decoded."""
    chat = f"/api/v1/chats/{chat_id}"
    paths = [
        f"{chat}/messages?expand=signature,response,payment",
        f"{chat}/events",
        f"{chat}/payments",
        f"{chat}/export?format=ndjson&log=true",
        f"{chat}/export?format=json&log=true",
    ]
    answers = [web.get(path, headers=who.headers) for path in paths]
    assert [answer.status_code for answer in answers] == [200] * len(paths), answers
    text = "\n".join(answer.text for answer in answers)
    bodies = (base64.urlsafe_b64decode(f"{body}==") for body in JWT.findall(text))
    return text + "\n".join(body.decode(errors="replace") for body in bodies)


def delete(*, web: httpx.Client, alice: Person, rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert web.delete(f"/api/v1/messages/{row['id']}", headers=alice.headers).is_success


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("how", ["deleted", "erased", "old"])
def test_no_hash_confirms_a_guess(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, settings: Settings, how: str
) -> None:
    quick_agent("signer", "echo")
    chat = shared_chat(alice, bob, agents=("signer",))
    with dial(bob) as client:
        client.create_session(chat=chat.pk, agent="signer")
        client.answer(TEXT)
    messages = f"/api/v1/chats/{chat.pk}/messages"
    question, answer = web.get(f"{messages}?order=asc", headers=alice.headers).json()["data"]
    edit = {"content": EDITED}
    assert web.patch(
        f"/api/v1/messages/{question['id']}", json=edit, headers=bob.headers
    ).is_success
    # The words of an agent stay when the person who asked is erased.
    gone = [question] if how == "erased" else [question, answer]
    ids = {row[name] for row in gone for name in ("id", "response_id")} - {None}
    entries = [
        entry
        for entry in ChatEvent.objects.filter(chat=chat).order_by("seq")
        if ids & {entry.payload.get("message_id"), entry.payload.get("message", {}).get("id")}
        or (entry.type == "response.done" and entry.response_id in ids)
        or (how == "erased" and entry.payload.get("participant", {}).get("name") == "bob")
    ]
    rows = [*gone, {**question, "content": EDITED}]
    hashes = hashes_of(rows, [entry for entry in entries if entry.type != "response.created"])
    salts = {salt: entry.type for entry in entries for salt in salts_in(entry.payload)}
    before = readable_by(alice, chat.pk, web)
    assert all(salt in before for salt in salts)
    assert len(salts) >= len(gone) + 1

    if how == "deleted":
        delete(web=web, alice=alice, rows=gone)
    elif how == "erased":
        erase_person(bob.user, reason="asked")
    else:
        settings.UAMP_MESSAGE_DAYS = 1e-9
        while erase_old(1000):
            pass

    after = readable_by(alice, chat.pk, web)
    assert all(Message.objects.get(pk=row["id"]).deleted_at for row in gone)
    guessed = {hashes[text] for text in re.findall(r"[0-9a-f]{64}", after) if text in hashes}
    assert guessed == set()
    assert [kind for salt, kind in salts.items() if salt in after] == []
    summary = check_log(chat.pk)
    assert summary is not None
    assert summary.is_intact, summary.problems
    if how != "deleted":
        stored = [*ChatEvent.objects.filter(chat=chat), *Message.objects.filter(chat=chat)]
        texts = str([vars(row) for row in stored])
        assert [salt for salt in salts if salt in texts] == []
        body = hashlib.sha256(msgspec.json.encode({"content": TEXT})).hexdigest()
        assert body not in texts


@pytest.mark.django_db(transaction=True)
def test_the_salts_of_what_the_release_before_deletes_do_not_stay(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    """Its processes know no salts, and leave them in rows and entries during an update."""
    quick_agent("signer", "echo")
    chat = shared_chat(alice, bob, agents=("signer",))
    with dial(bob) as client:
        client.create_session(chat=chat.pk, agent="signer")
        client.answer(TEXT)
    question = Message.objects.get(role="user")
    entry = ChatEvent.objects.get(chat=chat, type="message.created", seq=question.seq)
    (salt,) = salts_in(entry.payload)
    assert salt in readable_by(alice, chat.pk, web)
    path = f"/api/v1/messages/{question.pk}"
    assert web.delete(path, headers=bob.headers).status_code == 204
    Message.objects.filter(pk=question.pk).update(salt=salt)
    assert salt not in readable_by(alice, chat.pk, web)

    digest = payload_digest(entry.payload)
    message = {**entry.payload["message"], "content": "", "name": "gone"}
    ChatEvent.objects.filter(pk=entry.pk).update(
        payload={**entry.payload, "message": message}, erased_digest=digest
    )
    erase_person(bob.user, reason="asked")
    stored = [*ChatEvent.objects.filter(chat=chat), *Message.objects.filter(chat=chat)]
    assert salt not in str([vars(row) for row in stored])
    summary = check_log(chat.pk)
    assert summary is not None
    assert summary.is_intact, summary.problems
