"""The hash chain of a chat's log, as stored in its rows (`uamp.logs.chain`, docs/log-chain.md).

An entry gets its chain hash in the transaction that writes it, under the chat's row lock. The chat
stores the hash of its last entry, because a statement that waited for the lock sees the current row
of the chat, but not the entries committed while it waited.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, Final

from uamp.logs import chain as log_chain

if TYPE_CHECKING:
    from chat_app.models import Chat, ChatEvent

HEAD: Final = ("last_seq", "chain_hash", "chain_seq")
"""The fields of a chat that `extend` sets."""

COVERED: Final = ("seq", "type", "response_id", "created_at", "payload", "erased_digest")
"""The fields of an entry that `covered` and the hash of its place need."""

SALT_BYTES: Final = 16


def new_salt() -> str:
    """Return a random text for an entry.

    The chain covers it with the rest of the payload. It goes together with a text or a name that is
    deleted, so the digest that remains confirms no guess.
    """
    return secrets.token_urlsafe(SALT_BYTES)


def without_salt(payload: dict[str, Any]) -> dict[str, Any]:
    """Return the payload of an entry without its salt; that of a message is in the message."""
    unsalted = {name: value for name, value in payload.items() if name != "salt"}
    if isinstance(message := payload.get("message"), dict):
        unsalted["message"] = {name: value for name, value in message.items() if name != "salt"}
    return unsalted


def head_hash(
    chat_id: str, *, last_seq: int, chain_seq: int | None, chain_hash: bytes | memoryview | None
) -> bytes:
    """Return the hash that the next entry of a log builds on.

    A new chain starts there if the last entry is not in one.
    """
    if chain_hash is None or chain_seq != last_seq:
        return log_chain.chain_start(chat_id, last_seq)
    return bytes(chain_hash)


def extend(chat: Chat, entry: ChatEvent) -> None:
    """Add the next entry of a locked chat to its chain; neither row is saved."""
    previous = head_hash(
        chat.pk,
        last_seq=chat.last_seq,
        chain_seq=chat.chain_seq,
        chain_hash=chat.chain_hash,
    )
    entry.chain_hash = log_chain.chain_hash(previous, entry.seq, covered(entry))
    chat.last_seq = chat.chain_seq = entry.seq
    chat.chain_hash = entry.chain_hash


def covered(entry: ChatEvent) -> bytes:
    """Return the content of an entry that the chain covers; for an erased one, its original."""
    digest = entry.erased_digest or log_chain.payload_digest(entry.payload)
    return log_chain.entry_digest(entry.type, entry.response_id, entry.created_at, bytes(digest))


def erase(entry: ChatEvent, payload: dict[str, Any]) -> None:
    """Replace a payload by what is left of it, and store its digest; the row is not saved."""
    if entry.erased_digest is None:
        entry.erased_digest = log_chain.payload_digest(entry.payload)
    entry.payload = without_salt(payload)
