"""A person's export has all that is theirs; after the erasure no row and no file has it."""

from __future__ import annotations

import base64
import csv
import io
import json
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone
from websockets.exceptions import ConnectionClosed

from agents_app.models import Agent
from audit_app.models import AuditRecord
from chat_app.forks import forking
from chat_app.models import Chat, ChatEvent, Message
from payments_app import services as ledger
from sessions_app.data_rights.erasure import StillRunning, erase_person
from sessions_app.data_rights.personal_export import export_person
from sessions_app.models import FollowUp, Response
from tests import factories
from tests.live_server import Dial, Person, person, shared_chat
from tests.sessions_app.data_rights.stored_words import files_with, rows_with

if TYPE_CHECKING:
    import httpx

    from tests.client import UampClient

pytestmark = pytest.mark.django_db(transaction=True)

NAME = "zephyrine"
WORD = "quokkaword"
OTHERS = "othersword"
CSV = base64.b64encode(f"day,{WORD}\n1,2\n".encode()).decode()


@pytest.fixture
def zephyrine(demo: object, celery_worker_thread: None) -> Person:
    """Return the person."""
    return person(NAME)


def open_session(socket: UampClient, chat: str | None = None, *, word: str = WORD) -> None:
    """Begin a session, in a chat or in one of its own."""
    config: dict[str, Any] = {"modalities": ["text"], "instructions": f"Answer with {word}."}
    socket.send(
        "session.create", uamp_version="1.0", session=config, **({"chat": chat} if chat else {})
    )
    socket.until("session.created")


def ask(socket: UampClient, text: str) -> None:
    """Send a message, and wait for the answer of an agent."""
    socket.send("input.text", text=text)
    socket.send("response.create")
    socket.until("response.done")


def lead_a_life(zephyrine: Person, bob: Person, dial: Dial, web: httpx.Client) -> Chat:
    """Leave something of the person in every room; return the chat that they share."""
    chat = shared_chat(zephyrine, bob, agents=("echo",))
    with dial(zephyrine) as socket:
        open_session(socket, chat.pk)
        ask(socket, "@echo hello")
    response = web.post(
        f"/api/v1/chats/{chat.pk}/messages",
        json={"content": f"{WORD} first"},
        headers=zephyrine.headers,
    )
    assert response.status_code == 201, response.text
    with dial(bob) as socket:
        open_session(socket, chat.pk, word=OTHERS)
        ask(socket, f"@echo {OTHERS}")
    with dial(zephyrine, "/agents/report/uamp") as socket:
        open_session(socket)
        socket.send("input.file", file=CSV, mime_type="text/csv", filename=f"{WORD}.csv")
        ask(socket, f"a report of {WORD}")
    message = Message.objects.get(chat=chat, content=f"{WORD} first")
    path = f"/api/v1/messages/{message.pk}"
    assert web.patch(path, json={"content": f"{WORD} edited"}, headers=zephyrine.headers).is_success
    change = {"display_name": f"The {WORD}", "status_text": WORD}
    web.patch("/api/v1/me", json=change, headers=zephyrine.headers)
    return chat


def test_an_export_has_all_of_a_person(
    zephyrine: Person, bob: Person, dial: Dial, web: httpx.Client
) -> None:
    chat = lead_a_life(zephyrine, bob, dial, web)
    archive_file = io.BytesIO()
    export_person(zephyrine.user, archive_file)
    with zipfile.ZipFile(archive_file) as archive:
        names = archive.namelist()
        about = json.loads(archive.read("person.json"))
        lines = [json.loads(line) for line in archive.read("written.ndjson").splitlines()]
        shared = archive.read(f"chats/{chat.pk}.ndjson").splitlines()
        statement = list(csv.reader(archive.read("statement.csv").decode().splitlines()))
        stored = next(archive.read(name) for name in names if name.startswith("files/"))

    assert about["account"]["username"] == NAME
    assert chat.pk in {row["id"] for row in about["chats"]}
    assert [key["prefix"] for key in about["api_keys"]]
    assert zephyrine.key not in archive_file.getvalue().decode("latin-1")
    assert f"{WORD} edited" in {line["content"] for line in lines}
    assert json.loads(shared[-1])["count"] == Message.objects.filter(chat=chat).count()
    assert statement[0][0] == "entry"
    assert stored == base64.b64decode(CSV)


def test_an_export_has_nothing_that_others_did_after_the_person_left() -> None:
    ada, eve = factories.user("ada"), factories.user("eve")
    left, stayed = factories.chat(ada, eve), factories.chat(ada, eve)
    message = factories.message(left, ada, "mine")
    left.participants.filter(user=ada).update(left_at=timezone.now())
    Chat.objects.filter(pk=left.pk).update(title="a secret of eve")
    Chat.objects.filter(pk=stayed.pk).update(title="ours")
    forking.fork_chat(
        chat_id=left.pk, message_id=message.pk, forked_by=eve, admit=lambda _size: None
    )
    assert Message.objects.filter(sender_user=ada).count() == 2
    archive_file = io.BytesIO()
    export_person(ada, archive_file)
    with zipfile.ZipFile(archive_file) as archive:
        about = json.loads(archive.read("person.json"))
        lines = [json.loads(line) for line in archive.read("written.ndjson").splitlines()]
    assert {row["id"]: row["title"] for row in about["chats"]} == {left.pk: None, stayed.pk: "ours"}
    assert [(line["id"], line["chat_id"]) for line in lines] == [(message.pk, left.pk)]


def test_after_an_erasure_no_row_and_no_file_has_the_person(
    zephyrine: Person, bob: Person, dial: Dial, web: httpx.Client
) -> None:
    # The rows of other tests are gone, their files are not.
    others = set(files_with(WORD))
    chat = lead_a_life(zephyrine, bob, dial, web)
    answer = Response.objects.filter(chat=chat, session__user=zephyrine.user).latest("created_at")
    FollowUp.objects.create(response=answer, message_id="1", parts=[{"text": WORD}], digest="1")
    heads = dict(ChatEvent.objects.filter(chat=chat).values_list("seq", "type"))
    assert len(rows_with(WORD)) > 5
    assert set(files_with(WORD)) - others
    with dial(zephyrine) as socket:
        open_session(socket, chat.pk)
        erased = erase_person(zephyrine.user, reason="asked for it")
        with pytest.raises(ConnectionClosed) as closed:
            socket.until("never")
    assert closed.value.rcvd is not None
    assert closed.value.rcvd.code == 4401

    assert rows_with(WORD) == []
    assert rows_with(NAME) == []
    assert set(files_with(WORD)) == others
    assert erased.chats_deleted == 1
    assert rows_with(OTHERS)
    # The log is whole: each entry has its place and its type, those of leaving come behind.
    after = dict(ChatEvent.objects.filter(chat=chat).values_list("seq", "type"))
    assert {seq: after[seq] for seq in heads} == heads
    assert sorted(after) == list(range(1, len(after) + 1))
    assert ledger.audit().mismatches == []
    record = AuditRecord.objects.get(action="person.erased")
    assert (record.object_id, record.reason) == (str(zephyrine.user.pk), "asked for it")
    history = web.get(f"/api/v1/chats/{chat.pk}/messages", headers=bob.headers).text
    assert NAME not in history
    assert OTHERS in history
    assert web.get("/api/v1/me", headers=zephyrine.headers).status_code == 401


def test_an_erasure_does_not_begin_over_a_running_answer(transactional_db: None) -> None:
    """No process ends the answer here: the erasure says so, and has deleted nothing yet."""
    ada = factories.user("ada")
    chat = factories.chat(ada, factories.agent("echo"))
    factories.message(chat, ada, WORD)
    factories.response(
        Agent.objects.get(), chat, session=factories.session(ada, chat), status="in_progress"
    )
    with pytest.raises(StillRunning):
        erase_person(ada, reason="asked for it", wait=0)

    assert rows_with(WORD)
    assert not User.objects.get(pk=ada.pk).is_active
