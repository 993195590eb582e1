"""`uamp verify --keys` of exports with the log of their chat, without a server: what it proves."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from click.testing import CliRunner
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.uamp.logs.test_checkpoint import jwk
from uamp.command_line.verifying import verify
from uamp.logs.chain import chain_hash, chain_start, entry_digest, microseconds, payload_digest
from uamp.logs.checkpoint import LogHead, sign_checkpoint

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.any_database, pytest.mark.usefixtures("spooled")]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
PUBLIC = KEY.public_key().public_bytes_raw()


def announced(number: int, **members: Any) -> tuple[str, dict[str, Any]]:
    """Return the event of a message."""
    message = {
        "id": f"msg_{number}",
        "role": "user",
        "name": "ada",
        "sender_kind": "user",
        "sender_id": "7",
        "content": f"text {number}",
        "created_at": int(AT.timestamp() * 1000),
        **members,
    }
    return "message.created", {"message": message}


class Export:
    """An export whose log is chained and signed; its lines may be changed before it is written."""

    def __init__(
        self,
        *events: tuple[str, dict[str, Any]],
        signed: int | None = None,
        response: str = "",
    ) -> None:
        self.entries: list[dict[str, Any]] = []
        self.messages: list[dict[str, Any]] = []
        previous = chain_start("chat_a", 0)
        hashes = []
        for seq, (kind, payload) in enumerate(events, start=1):
            digest = entry_digest(kind, response, AT, payload_digest(payload))
            previous = chain_hash(previous, seq, digest)
            hashes.append(previous)
            self.entries.append(
                {
                    "type": "entry",
                    "seq": seq,
                    "event_type": kind,
                    "response_id": response,
                    "at": microseconds(AT),
                    "event": payload,
                    "chain_hash": previous.hex(),
                }
            )
            if kind == "message.created":
                message = {**payload["message"], "created_at": AT.isoformat()}
                self.messages.append({"type": "message", "seq": seq, **message})
        self.head = len(events) if signed is None else signed
        head = LogHead(
            server="chat.example",
            chat_id="chat_a",
            seq=self.head,
            chain_hash=hashes[self.head - 1],
            at=1767323045,
        )
        self.note: str | None = sign_checkpoint(head, public_key=PUBLIC, sign=KEY.sign)

    def withhold(self, seq: int, **members: Any) -> None:
        """Show another message in an entry, with the digest of what was written."""
        entry = self.entries[seq - 1]
        digest = payload_digest(entry["event"]).hex()
        message = {**entry["event"]["message"], **members}
        self.entries[seq - 1] = {**entry, "event": {"message": message}, "digest": digest}

    def verified(
        self, folder: Path, *options: str, with_keys: bool = True, as_json: bool = False
    ) -> tuple[int, str]:
        """Return the exit code of `uamp verify` and what it prints."""
        if as_json:
            (folder / "chat.json").write_bytes(self.json())
            return checked(folder / "chat.json", *options, with_keys=with_keys)
        lines = [json.dumps(message).encode() + b"\n" for message in self.messages]
        checksum = hashlib.sha256(b"".join(lines)).hexdigest()
        end = {"type": "end", "count": len(lines), "sha256": checksum}
        log = [] if self.note is None else [{"type": "checkpoint", "note": self.note}]
        head = {"type": "chat", "id": "chat_a", "title": "Plans"}
        around = [
            json.dumps(record).encode() + b"\n" for record in (head, *log, *self.entries, end)
        ]
        file = folder / "chat.ndjson"
        file.write_bytes(b"".join([around[0], *lines, *around[1:]]))
        return checked(file, *options, with_keys=with_keys)

    def json(self) -> bytes:
        """Return the export as JSON."""
        messages = [
            {name: value for name, value in message.items() if name != "type"}
            for message in self.messages
        ]
        lines = [msgspec.json.encode(message) + b"\n" for message in messages]
        note = [] if self.note is None else [{"type": "checkpoint", "note": self.note}]
        export = {
            "chat": {"id": "chat_a", "title": "Plans"},
            "messages": messages,
            "log": [*note, *self.entries],
            "count": len(lines),
            "sha256": hashlib.sha256(b"".join(lines)).hexdigest(),
        }
        return json.dumps(export, indent=1).encode()


def checked(file: Path, *options: str, with_keys: bool) -> tuple[int, str]:
    """Return the exit code of `uamp verify` and what it prints."""
    keys = file.with_name("keys.json")
    keys.write_text(json.dumps({"keys": [jwk(PUBLIC)]}))
    key_options = ["--keys", str(keys)] if with_keys else []
    done = CliRunner().invoke(verify, [str(file), *key_options, *options])
    return done.exit_code, done.output


def three(**options: Any) -> Export:
    """Return an export of three messages."""
    return Export(*(announced(number) for number in (1, 2, 3)), **options)


def test_an_export_is_proven_by_the_signed_head_of_its_log(tmp_path: Path) -> None:
    code, output = three().verified(tmp_path)
    assert (code, "The log: not changed, 3 entries. Its head is signed" in output) == (0, True)


def test_the_digest_of_an_entry_vouches_for_no_text(tmp_path: Path) -> None:
    forged = three()
    forged.withhold(2, content="forged")
    forged.messages[1]["content"] = "forged"
    code, output = forged.verified(tmp_path)
    assert (code, "not changed" in output, "1 messages are not verified" in output) == (
        8,
        False,
        True,
    )
    assert forged.verified(tmp_path, with_keys=False)[0] == 0
    # An entry that was erased, and a message that shows nothing.
    erased = three()
    erased.withhold(2, content="")
    erased.messages[1]["content"] = ""
    assert erased.verified(tmp_path)[0] == 0


@pytest.mark.parametrize(
    "changes",
    [
        {"role": "assistant"},
        {"sender_kind": "agent"},
        {"sender_id": "8"},
        {"name": "grace"},
        {"name": None},
        {"response_id": "resp_1"},
        {"status": "cancelled"},
        {"seq": 3},
        {"content": "other"},
        {"created_at": "2026-01-01T03:04:05Z"},
        {"created_at": None},
        {"reply_to": "msg_1"},
        {"thread": "msg_1"},
        {"copied_from": "msg_0"},
    ],
)
def test_a_message_has_the_sender_of_its_entry(tmp_path: Path, changes: dict[str, Any]) -> None:
    forged = three()
    forged.messages[1].update(changes)
    code, output = forged.verified(tmp_path)
    assert (code, "message_changed" in output) == (8, True)


def test_a_reply_in_a_thread_is_where_its_entry_has_it(tmp_path: Path) -> None:
    reply = announced(2, thread="msg_1", also_in_chat=True, reply_to="msg_1")
    for changes in ({}, {"thread": None}, {"also_in_chat": False}, {"reply_to": None}):
        export = Export(announced(1), reply)
        export.messages[1].update(changes)
        code, output = export.verified(tmp_path)
        assert (code, "message_changed" in output) == ((8, True) if changes else (0, False))


def test_a_message_of_an_agent_is_not_verified_as_one_of_a_person(tmp_path: Path) -> None:
    export = Export(announced(1, sender_kind="agent"))
    export.messages[0]["sender_kind"] = "user"
    code, output = export.verified(tmp_path)
    assert (code, "1 messages are not verified" in output) == (8, True)


def test_a_message_that_was_taken_out_shows(tmp_path: Path) -> None:
    export = three()
    del export.messages[1]
    code, output = export.verified(tmp_path)
    assert (code, "message_missing at entry 2" in output) == (8, True)
    # One at the end may have come while the file was written: it is named.
    export = three()
    del export.messages[2]
    code, output = export.verified(tmp_path)
    assert (code, "1 messages of the log are not in the file" in output) == (8, True)
    assert "not changed" not in output


def test_a_former_version_is_not_missing(tmp_path: Path) -> None:
    export = Export(announced(1), announced(2), announced(3, version_of="msg_2"), announced(4))
    del export.messages[1]
    assert export.verified(tmp_path)[0] == 0
    # Only an entry that is a digest says that there is a later version.
    forged = Export(*(announced(number) for number in range(1, 5)))
    del forged.messages[1]
    forged.withhold(3, version_of="msg_2")
    code, output = forged.verified(tmp_path)
    assert (code, "1 messages of the log are not in the file" in output) == (8, True)


def test_entries_after_the_signed_head_are_named(tmp_path: Path) -> None:
    code, output = three(signed=2).verified(tmp_path)
    assert code == 8
    assert "1 entries after the signed head are not signed" in output
    without = three()
    without.note = None
    code, output = without.verified(tmp_path)
    assert (code, "It has no signed head." in output) == (8, True)


def test_deletions_and_later_texts_are_compared(tmp_path: Path) -> None:
    deletion = ("message.deleted", {"message_id": "msg_2"})
    edit = ("message.edited", {"message_id": "msg_3", "revision": 1, "content": "new"})
    export = Export(*(announced(number) for number in (1, 2, 3)), deletion, edit)
    export.withhold(2, content="")
    export.messages[1].update(content="", deleted_at="2026-01-02T03:04:05Z")
    export.messages[2].update(content="new", revision=1)
    assert export.verified(tmp_path)[0] == 0
    # The text before the edit, and a deletion that is a digest.
    export.messages[2].update(content="text 3", revision=0)
    export.entries[3]["digest"] = payload_digest(deletion[1]).hex()
    code, output = export.verified(tmp_path)
    assert (code, "2 messages are not verified" in output) == (8, True)
    export.messages[1]["content"] = "another text"
    assert "message_changed at entry 2" in export.verified(tmp_path)[1]


def test_a_file_whose_log_was_taken_out_is_not_proven(tmp_path: Path) -> None:
    export = three()
    export.note, export.entries = None, []
    export.messages[1]["content"] = "forged"
    for as_json in (False, True):
        code, output = export.verified(tmp_path, as_json=as_json)
        assert (code, "The file has no log" in output) == (8, True)
        assert export.verified(tmp_path, "--without-log", as_json=as_json)[0] == 0
        assert export.verified(tmp_path, with_keys=False, as_json=as_json)[0] == 0


def test_an_export_as_json_is_proven_too(tmp_path: Path) -> None:
    code, output = three().verified(tmp_path, as_json=True)
    assert (code, "The log: not changed, 3 entries. Its head is signed" in output) == (0, True)
    forged = three()
    forged.messages[1]["content"] = "forged"
    code, output = forged.verified(tmp_path, as_json=True)
    assert (code, "message_changed at entry 2" in output) == (8, True)
    text = three().json()
    file = tmp_path / "chat.json"
    for old, new, problem in (
        (b'"content": "text 2"', b'"content": "text 3"', "do not match the checksum"),
        (b'"count": 3', b'"count": 2', "but states 2"),
        (b'"messages": [', b'"messages": {}, "others": [', "has no messages"),
        (b'"chat": {', b'"chat": 7, "other": {', "not an export of a chat"),
        (b'"seq": 1,', b'"seq": NaN,', "is not JSON"),
        (b'"seq": 1,', b'"seq": 1' + b"0" * 400 + b",", "do not match the checksum"),
        (b'"seq": 1,', b'"seq": 1' + b"0" * 5000 + b",", "is not JSON"),
        (b'"seq": 1,', b'"seq": 1e999,', "is not JSON"),
        (b'"text 1"', b'"\\ud800"', "is not JSON"),
        (b'"seq": 1,', b'"seq": 1, "x": ' + b"[" * 900 + b"]" * 900 + b",", "nested more"),
        (b"\n}", b"\n", "is not JSON"),
        (b"{", b'{"x": ' + b"[" * 100_000, "is not JSON"),
    ):
        assert old in text
        file.write_bytes(text.replace(old, new, 1))
        code, output = checked(file, with_keys=True)
        assert (code, problem in output) == (8, True), output


def test_a_member_that_is_named_twice_is_refused(tmp_path: Path) -> None:
    """Another reader may show the first text, where this one verifies the second."""
    export = three()
    file = tmp_path / "chat.json"
    twice = b'"content": "forged", "content": "text 2"'
    file.write_bytes(export.json().replace(b'"content": "text 2"', twice, 1))
    code, output = checked(file, with_keys=True)
    assert (code, "duplicate member" in output) == (8, True)
    export.verified(tmp_path)
    lines = (tmp_path / "chat.ndjson").read_bytes()
    (tmp_path / "chat.ndjson").write_bytes(lines.replace(b'"content": "text 2"', twice, 1))
    code, output = checked(tmp_path / "chat.ndjson", with_keys=True)
    assert (code, "duplicate member" in output) == (8, True)


@pytest.mark.parametrize("signature", ["eyJ.e30.AA", None])
def test_a_signature_that_was_taken_from_an_answer_shows(
    tmp_path: Path, signature: str | None
) -> None:
    answer = announced(1, role="assistant", response_id="resp_1")
    export = Export(answer, ("response.done", {"signature": signature}), response="resp_1")
    assert export.verified(tmp_path)[0] == (0 if signature is None else 8)
    export.messages[0]["signature"] = "eyJ.e30.BB"
    code, output = export.verified(tmp_path)
    assert (code, "message_changed at entry 1" in output) == (8, True)
