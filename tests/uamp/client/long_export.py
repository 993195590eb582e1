"""Exports of long chats of signed answers, written by the formats of the server.

The messages and entries come from no database; the formats, the hash chain and the signatures are
those of the product.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from chat_app.export import formats
from chat_app.export.pages import PAGE
from signing_app.keys import new_key
from uamp.logs.chain import chain_hash, chain_start, entry_digest, microseconds, payload_digest
from uamp.logs.checkpoint import OWNER, LogHead, sign_checkpoint
from uamp.signatures import TYPE, agent_owner, output_of, request_of, sha256_of, text_sha256

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    from chat_app.models import Chat

AT: Final = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CHAT: Final = "chat_long"
AGENT: Final = "agent_1"
TEXT: Final = "The small lakes freeze first, in most years at the beginning of December. " * 4


class LongExport:
    """A chat of questions and signed answers, with its chained and signed log."""

    def __init__(self, messages: int) -> None:
        agent_key, log_key = new_key("EdDSA"), new_key("EdDSA")
        self.keys = [
            {**agent_key.jwk, "uamp_owner": agent_owner(AGENT)},
            {**log_key.jwk, "uamp_owner": OWNER},
        ]
        self._sign = agent_key.sign
        self._messages: list[dict[str, Any]] = []
        self._log: list[bytes] = []
        self._hash = chain_start(CHAT, 0)
        for number in range(messages // 2):
            self._add_turn(number)
        head = LogHead(
            server="chat.example",
            chat_id=CHAT,
            seq=len(self._log),
            chain_hash=self._hash,
            at=int(AT.timestamp()),
        )
        private = cast("Ed25519PrivateKey", log_key.private)
        public = private.public_key().public_bytes_raw()
        note = sign_checkpoint(head, public_key=public, sign=private.sign)
        self._log.insert(0, _line({"type": "checkpoint", "note": note, "tree": None}))

    def write(self, path: Path) -> None:
        """Write the file, in the format that its suffix names."""
        chat = cast("Chat", SimpleNamespace(pk=CHAT, title="Lakes", created_at=AT))
        write = formats.json if path.suffix == ".json" else formats.ndjson
        with path.open("wb") as file:
            file.writelines(write(chat, self._pages(), self._log))

    def _pages(self) -> Iterator[list[dict[str, Any]]]:
        for start in range(0, len(self._messages), PAGE):
            yield self._messages[start : start + PAGE]

    def _add_turn(self, number: int) -> None:
        question = self._add_message(f"msg_{number}q", "user", "ada", f"Which? {number}")
        response_id, text = f"resp_{number}", f"{TEXT}{number}"
        answer = self._add_message(f"msg_{number}a", "assistant", "clock", text, response_id)
        claims = {
            "iss": "https://chat.example",
            "sub": AGENT,
            "agent": "clock",
            "chat_id": CHAT,
            "jti": response_id,
            "iat": int(AT.timestamp()),
            "response_hash": text_sha256(text),
            "output_hash": sha256_of(output_of(text, [])),
            "request_hash": sha256_of(request_of(question)),
            "message_id": answer["id"],
            "request_id": question["id"],
        }
        answer["signature"] = self._sign(claims, typ=TYPE)
        self._add_entry("response.done", {"signature": answer["signature"]}, response_id)

    def _add_message(
        self, message_id: str, role: str, name: str, text: str, response_id: str | None = None
    ) -> dict[str, Any]:
        message: dict[str, Any] = {
            "id": message_id,
            "role": role,
            "name": name,
            "sender_kind": "user" if response_id is None else "agent",
            "content": text,
            "content_items": [],
            "response_id": response_id,
        }
        self._add_entry("message.created", {"message": dict(message)}, response_id or "")
        message["seq"] = len(self._log)
        self._messages.append(message)
        return message

    def _add_entry(self, kind: str, payload: dict[str, Any], response_id: str) -> None:
        seq = len(self._log) + 1
        digest = entry_digest(kind, response_id, AT, payload_digest(payload))
        self._hash = chain_hash(self._hash, seq, digest)
        entry = {
            "type": "entry",
            "seq": seq,
            "event_type": kind,
            "response_id": response_id,
            "at": microseconds(AT),
            "event": payload,
            "chain_hash": self._hash.hex(),
        }
        self._log.append(_line(entry))


def _line(value: dict[str, Any]) -> bytes:
    return msgspec.json.encode(value) + b"\n"
