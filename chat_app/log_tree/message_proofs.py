"""The proof of one message that shows no other message of its chat (docs/log-tree.md).

The chain hash of an entry follows from the hash before it and the entry itself, and the signed
head from the digests of the entries between. A digest covers a salt, or ids that are too long to
guess.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from chat_app.log import chain
from chat_app.log.checkpoints import LogChanged, checkpoint_of
from chat_app.log.signatures import signatures_of
from chat_app.log.verification import entries_after
from chat_app.log_tree.proofs import proof_of
from chat_app.models import ChatEvent, LogCheckpoint
from signing_app.owner_keys import LOG
from signing_app.published import keys_named, keys_of, kid_of
from uamp.logs.chain import chain_hash, chain_start, microseconds
from uamp.logs.checkpoint import BadCheckpoint, read_checkpoint
from uamp.transparency.notes import TREE

if TYPE_CHECKING:
    from chat_app.models import Message

FOLLOWING_MAX: Final = 1000
"""The maximum number of digests between an entry and the signed head; each is a row to read."""


class NotProvable(Exception):
    """The message was deleted, is in no chain, or no signed head is near enough."""


def message_proof(message: Message) -> dict[str, Any]:
    """Return the proof of a message's sender and current text, with the keys that verify it.

    Raises NotProvable, and LogChanged if the log does not lead to the signed head.
    """
    if message.deleted_at is not None:
        raise NotProvable
    entries = [_entry_of(message, "message.created", seq=message.seq)]
    if message.revision:
        edits = {"payload__message_id": message.pk, "payload__revision": message.revision}
        entries.append(_entry_of(message, "message.edited", **edits))
    answers = {message.response_id} if message.response_id else set()
    signature = signatures_of(message.chat_id, answers).get(message.response_id)
    keys = [*keys_of(LOG)["keys"], *keys_of(TREE)["keys"]]
    if signature is not None:
        keys += keys_named([kid_of(signature)])["keys"]
    return {
        "chat_id": message.chat_id,
        "message_id": message.pk,
        "entries": [_proven(entry) for entry in entries],
        "signature": signature,
        "keys": [key for key in keys if key["uamp_owner"] != "server"],
    }


def _entry_of(message: Message, kind: str, **which: Any) -> ChatEvent:
    rows = ChatEvent.objects.filter(chat_id=message.chat_id, type=kind, **which)
    entry = rows.filter(seq__gte=message.seq).first()
    if entry is None or entry.chain_hash is None or entry.erased_digest is not None:
        raise NotProvable
    return entry


def _proven(entry: ChatEvent) -> dict[str, Any]:
    """Return an entry with what leads from it to a signed head in the tree."""
    head = _head_after(entry)
    if head is None or head.seq - entry.seq > FOLLOWING_MAX:
        raise NotProvable
    before = ChatEvent.objects.filter(chat_id=entry.chat_id, seq=entry.seq - 1)
    stored = before.values_list("chain_hash", flat=True).first()
    previous = None if stored is None else bytes(stored)
    following = []
    reached = chain_hash(
        previous or chain_start(entry.chat_id, entry.seq - 1), entry.seq, chain.covered(entry)
    )
    for page in entries_after(entry.chat_id, entry.seq, head.seq, fields=chain.COVERED):
        for row in page:
            following.append(chain.covered(row))
            reached = chain_hash(reached, row.seq, following[-1])
    try:
        is_head = read_checkpoint(head.note).chain_hash == reached
    except BadCheckpoint:
        is_head = False
    if not is_head:
        raise LogChanged
    return {
        "seq": entry.seq,
        "event_type": entry.type,
        "response_id": entry.response_id,
        "at": microseconds(entry.created_at),
        "event": entry.payload,
        "previous": None if previous is None else previous.hex(),
        "following": [digest.hex() for digest in following],
        "checkpoint": head.note,
        "tree": proof_of(head),
    }


def _head_after(entry: ChatEvent) -> LogCheckpoint | None:
    """Return the first signed head at or after an entry, signing the current one if needed."""
    rows = LogCheckpoint.objects.filter(chat_id=entry.chat_id, seq__gte=entry.seq)
    return rows.order_by("seq").first() or checkpoint_of(entry.chat_id)
