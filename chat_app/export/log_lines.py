"""The log of a chat in an export: its signed head with a proof, and the entries with hashes.

`uamp verify` checks them (docs/log-chain.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from chat_app.export.pages import ExportStopped
from chat_app.log.checkpoints import LogChanged, checkpoint_of
from chat_app.log.deletions import without_deleted
from chat_app.log.verification import entries_after
from chat_app.log_tree.proofs import proof_of
from chat_app.members.membership import is_member
from chat_app.models import Chat
from uamp.codec.single_lines import single_lines
from uamp.logs.chain import microseconds, payload_digest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from chat_app.models import ChatEvent


def log_lines(chat_id: str, user_id: int | None) -> Iterator[bytes]:
    """Yield a line for the checkpoint of the current log, and one for each entry.

    `user_id` is the reader, None for an operator who may read all chats. Raises ExportStopped if
    the reader has left the chat. A log that was changed after its head was signed has no
    checkpoint.
    """
    try:
        signed = checkpoint_of(chat_id)
    except LogChanged:
        signed = None
    if signed is not None:
        yield _line({"type": "checkpoint", "note": signed.note, "tree": proof_of(signed)})
    last_seq = Chat.objects.values_list("last_seq", flat=True).get(pk=chat_id)
    for page in entries_after(chat_id, 0, last_seq):
        if user_id is not None and not is_member(chat_id, user_id):
            raise ExportStopped
        payloads = without_deleted([(row.type, row.response_id, row.payload) for row in page])
        yield b"".join(
            _line(_entry(row, payload)) for row, payload in zip(page, payloads, strict=True)
        )


def _entry(row: ChatEvent, payload: dict[str, Any]) -> dict[str, Any]:
    """Return an entry, with the digest of its original payload if the reader sees less."""
    line = {
        "type": "entry",
        "seq": row.seq,
        "event_type": row.type,
        "response_id": row.response_id,
        "at": microseconds(row.created_at),
        "event": payload,
        "chain_hash": None if row.chain_hash is None else bytes(row.chain_hash).hex(),
    }
    if row.erased_digest is not None:
        return {**line, "digest": bytes(row.erased_digest).hex()}
    if payload is not row.payload:
        return {**line, "digest": payload_digest(row.payload).hex()}
    return line


def _line(value: dict[str, Any]) -> bytes:
    return single_lines(msgspec.json.encode(value)) + b"\n"
