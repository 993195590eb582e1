"""Signed heads of logs: what is signed, who verifies it, and what shows in an export."""

from __future__ import annotations

import base64
import hashlib
import json
import subprocess
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat_app.conversation.deletion import delete_message
from chat_app.conversation.erasure import erase_in_chat
from chat_app.conversation.revisions import edit_message
from chat_app.export.formats import json as json_format
from chat_app.export.formats import ndjson
from chat_app.export.log_lines import log_lines
from chat_app.export.pages import pages_for_staff
from chat_app.log import chain
from chat_app.log.checkpoints import LogChanged, checkpoint_of, sign_heads
from chat_app.models import Chat, ChatEvent, LogCheckpoint, Message
from signing_app import owner_keys
from signing_app.published import all_keys
from tests import factories, services
from tests.chat_app.log_tree.tree_changes import grown
from tests.programs import PROGRAM_SECONDS
from uamp.client.errors import ExportCutError
from uamp.client.exports import ExportSummary, check_export
from uamp.command_line.program import program
from uamp.logs.checkpoint import (
    BadCheckpoint,
    UnknownCheckpointKey,
    open_checkpoint,
    read_checkpoint,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from django.contrib.auth.models import User

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def fresh_keys() -> Iterator[None]:
    """Forget the keys of other tests, whose rows are gone."""
    owner_keys.forget()
    yield
    owner_keys.forget()


@pytest.fixture
def ada() -> User:
    """Return the person who writes."""
    return factories.user()


@pytest.fixture
def chat(ada: User) -> Chat:
    """Return a chat with an edited message, a deleted one, and one as it was written."""
    new_chat = factories.chat(ada, title="Plans")
    ids = [factories.message(new_chat, ada, f"number {n}").pk for n in range(3)]
    edit_message(chat_id=new_chat.pk, message_id=ids[0], user_id=ada.pk, content="edited")
    delete_message(chat_id=new_chat.pk, message_id=ids[1], user_id=ada.pk)
    return Chat.objects.get(pk=new_chat.pk)


def signed(chat: Chat) -> LogCheckpoint:
    """Return the signed head of a chat."""
    row = checkpoint_of(chat.pk)
    assert row is not None
    return row


def exported(chat: Chat) -> list[bytes]:
    """Return the lines of the export of a chat with its log."""
    pieces = ndjson(chat, pages_for_staff(chat), log_lines(chat.pk, None))
    return b"".join(pieces).splitlines(keepends=True)


def keys() -> list[dict[str, Any]]:
    """Return the published keys."""
    return all_keys()["keys"]


# --- Checkpoints ---

_NODE = """
const [key, text, signature] = JSON.parse(process.argv[1]);
const {createPublicKey, verify} = require("node:crypto");
const made = createPublicKey({key, format: "jwk"});
console.log(verify(null, Buffer.from(text), made, Buffer.from(signature, "hex")));
"""


def verified_by_node(key: dict[str, Any], text: str, signature: bytes) -> str:
    """Return whether the crypto of Node verifies an Ed25519 signature."""
    arguments = json.dumps([key, text, signature.hex()])
    node = services.node()
    if node is None:
        pytest.skip("no node: `make install` installs one")
    command = [node, "-e", _NODE, arguments]
    done = subprocess.run(  # noqa: S603 our own program
        command, capture_output=True, text=True, check=True, timeout=PROGRAM_SECONDS
    )
    return done.stdout.strip()


def test_a_head_is_a_signed_note_that_others_verify(chat: Chat) -> None:
    """By C2SP's signed-note, in another language: no code of the server reads it."""
    text, signatures = signed(chat).note.split("\n\n")
    origin, seq, root, _time = text.split("\n")
    assert origin == f"localhost:8000/chats/{chat.pk}"
    assert int(seq) == chat.last_seq
    assert base64.b64decode(root) == bytes(chat.chain_hash or b"")
    dash, name, encoded = signatures.rstrip("\n").split(" ")
    assert (dash, name) == ("\N{EM DASH}", origin)
    raw = base64.b64decode(encoded)
    key = next(key for key in keys() if key["kty"] == "OKP")
    public = base64.urlsafe_b64decode(key["x"] + "=")
    assert raw[:4] == hashlib.sha256(f"{origin}\n\x01".encode() + public).digest()[:4]
    assert verified_by_node(key, f"{text}\n", raw[4:]) == "true"
    assert verified_by_node(key, f"{text} \n", raw[4:]) == "false"


def test_a_head_is_signed_once_for_each_place(chat: Chat, ada: User) -> None:
    first = signed(chat)
    assert signed(chat) == first
    factories.message(chat, ada, "more")
    assert signed(chat).seq == first.seq + 1
    assert LogCheckpoint.objects.count() == 2


def test_a_log_without_a_chain_has_no_head(chat: Chat) -> None:
    Chat.objects.filter(pk=chat.pk).update(chain_seq=None)
    assert checkpoint_of(chat.pk) is None


def test_heads_of_logs_that_grew_are_signed_from_time_to_time(chat: Chat, ada: User) -> None:
    now = timezone.now()
    assert (sign_heads(now), LogCheckpoint.objects.get().seq) == (1, chat.last_seq)
    factories.message(chat, ada, "more")
    assert sign_heads(now + timedelta(minutes=59)) == 0
    later = now + timedelta(minutes=61)
    assert (sign_heads(later), sign_heads(later)) == (1, 0)
    assert LogCheckpoint.objects.count() == 2


def test_the_head_of_a_log_that_grew_fast_is_signed_before_its_time(chat: Chat) -> None:
    now = timezone.now()
    sign_heads(now)
    grown(chat, 499)
    assert sign_heads(now) == 0
    grown(chat, 1)
    assert (sign_heads(now), sign_heads(now)) == (1, 0)
    assert LogCheckpoint.objects.latest("seq").seq == chat.last_seq


def test_no_head_of_a_changed_log_is_signed(chat: Chat, ada: User) -> None:
    first = signed(chat)
    factories.message(chat, ada, "more")
    ChatEvent.objects.filter(chat=chat, seq=first.seq).update(chain_hash=b"\1" * 32)
    with pytest.raises(LogChanged):
        checkpoint_of(chat.pk)
    assert sign_heads(timezone.now() + timedelta(hours=2)) == 1
    assert LogCheckpoint.objects.get() == first


def test_an_invalid_checkpoint_is_refused(chat: Chat) -> None:
    note = signed(chat).note
    assert open_checkpoint(note, keys()).seq == chat.last_seq
    text = note.split("\n")
    other = note.replace(f"\n{chat.last_seq}\n", f"\n{chat.last_seq + 1}\n")
    with pytest.raises(BadCheckpoint, match="does not match this checkpoint"):
        open_checkpoint(other, keys())
    with pytest.raises(UnknownCheckpointKey):
        open_checkpoint(note, [key for key in keys() if key["kty"] != "OKP"])
    for bad in (
        "",
        note[:-1],
        note + "\n",
        note.replace("/chats/", "/chat/"),
        note.replace(text[-2].split(" ")[1], "localhost:8000/chats/other", 2)[1:],
        note.replace("time ", "time -"),
        note.replace("\n\n", "\n" * 3),
        f"{note}{text[-2]}\n",
        note.replace(text[2], text[2].replace("=", "")),
    ):
        with pytest.raises(BadCheckpoint):
            read_checkpoint(bad)


def test_a_chain_that_was_computed_anew_shows_by_its_head(chat: Chat) -> None:
    """The attacker changes an entry and every hash after it; the signed head stays."""
    signed(chat)
    events = list(ChatEvent.objects.filter(chat=chat).order_by("seq"))
    events[2].payload["message"]["content"] = "number 9"
    Message.objects.filter(chat=chat, content="number 2").update(content="number 9")
    Chat.objects.filter(pk=chat.pk).update(last_seq=0)
    chat.refresh_from_db()
    for event in events:
        chain.extend(chat, event)
        event.save()
    chat.save()
    with pytest.raises(CommandError, match="The logs of 1 chats were changed"):
        call_command("audit_log", chat.pk)
    LogCheckpoint.objects.all().delete()
    call_command("audit_log", chat.pk)


# --- Exports ---


def export_summary(lines: list[bytes]) -> ExportSummary:
    """Return the findings in a whole export."""
    return check_export(lines, keys())


def test_an_export_proves_its_messages(chat: Chat, ada: User) -> None:
    summary = export_summary(exported(chat))
    assert summary.count == 3
    assert summary.log is not None
    assert summary.log.summary.entries == chat.last_seq
    assert summary.log.is_signed
    assert summary.log.checkpoint is not None
    assert summary.log.checkpoint.seq == chat.last_seq
    assert b"number 1" not in b"".join(exported(chat))
    erase_in_chat(ada.pk, chat_id=chat.pk, pseudonym="erased-1")
    erased = export_summary(exported(chat)).log
    assert erased is not None
    assert erased.summary.is_intact


def test_an_export_as_json_proves_its_messages(chat: Chat, ada: User) -> None:
    """Line separators are written as escapes, which the checksum covers."""
    factories.message(chat, ada, "one\x85two\u2028three\u2029four")
    chat.refresh_from_db()
    text = b"".join(json_format(chat, pages_for_staff(chat), log_lines(chat.pk, None)))
    reformatted = json.dumps(json.loads(text), indent=1).encode()
    for form in (text, reformatted):
        summary = export_summary(form.splitlines(keepends=True))
        assert summary.count == 4
        assert summary.log is not None
        assert summary.log.is_signed


def test_one_byte_changed_in_the_database_shows_in_the_export(chat: Chat) -> None:
    event = ChatEvent.objects.filter(chat=chat, type="message.created").latest("seq")
    before = event.payload
    event.payload = json.loads(json.dumps(before).replace("number 2", "number 3"))
    event.save()
    with pytest.raises(ExportCutError, match=f"entry_changed at entry {event.seq}"):
        export_summary(exported(chat))
    event.payload = before
    event.save()
    export_summary(exported(chat))
    Message.objects.filter(chat=chat, content="number 2").update(content="number 3")
    with pytest.raises(ExportCutError, match=f"message_changed at entry {event.seq}"):
        export_summary(exported(chat))


def without_line(lines: list[bytes], kind: str, number: int) -> list[bytes]:
    """Return lines without one of a kind."""
    places = [i for i, line in enumerate(lines) if json.loads(line)["type"] == kind]
    return [line for i, line in enumerate(lines) if i != places[number]]


@pytest.mark.parametrize("number", [1, -1])
def test_an_entry_taken_out_of_an_export_shows(chat: Chat, number: int) -> None:
    with pytest.raises(ExportCutError, match="The log was changed"):
        export_summary(without_line(exported(chat), "entry", number))


def test_the_command_verifies_offline_with_the_keys(chat: Chat, tmp_path: Path) -> None:
    file, key_file = tmp_path / "chat.ndjson", tmp_path / "jwks.json"
    file.write_bytes(b"".join(exported(chat)))
    key_file.write_text(json.dumps(all_keys()))
    run = CliRunner().invoke
    result = run(program, ["verify", str(file), "--keys", str(key_file)])
    assert (result.exit_code, "Its head is signed by localhost:8000" in result.output) == (0, True)
    assert "no key to verify it" in run(program, ["verify", str(file)]).output
    text = file.read_bytes()
    seq = f"\\n{chat.last_seq}\\n".encode()
    file.write_bytes(text.replace(seq, f"\\n{chat.last_seq + 1}\\n".encode()))
    result = run(program, ["verify", str(file), "--keys", str(key_file)])
    assert (result.exit_code, "does not match this checkpoint" in result.output) == (8, True)
    key_file.write_text("[]")
    assert run(program, ["verify", str(file), "--keys", str(key_file)]).exit_code == 2


# --- The admin ---


def test_the_page_of_a_chat_says_whether_its_log_was_changed(chat: Chat) -> None:
    client = Client()
    client.force_login(factories.superuser())
    url = reverse("admin:chat_app_chat_change", args=[chat.pk.replace("_", "_5F")])
    assert f"Not changed: {chat.last_seq} of {chat.last_seq} entries" in _text(client, url)
    Message.objects.filter(chat=chat, content="number 2").update(content="number 3")
    text = _text(client, url)
    assert "Changed: message_changed at 3.</strong> The message differs from the one in" in text
    entry = ChatEvent.objects.get(chat=chat, seq=2)
    entry.payload["message"]["content"] = "another"
    entry.save()
    assert "The entry was changed, or inserted later." in _text(client, url)


def _text(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200
    return answer.content.decode()
