"""Single messages: an answer as REST returns it, and the proof of a message (docs/log-tree.md).

A proof has the entries of the log that state who wrote a message and its current text, and leads
from each to a signed head of the log and to the tree of the server.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports.reading import object_of
from uamp.logs.chain import (
    chain_hash,
    chain_start,
    entry_digest,
    hash_of,
    payload_digest,
    time_of,
)
from uamp.logs.checkpoint import (
    BadCheckpoint,
    LogHead,
    UnknownCheckpointKey,
    open_checkpoint,
    read_checkpoint,
)
from uamp.signatures import SignatureCheck, check_answer
from uamp.transparency.notes import Witness
from uamp.transparency.proofs import LoggedHead, check_proof

PROOF_BYTES_MAX: Final = 20_000_000
"""The maximum size of a file with a message or a proof, in bytes."""

_PROOF: Final = b'{"proof":'
_MESSAGE: Final = b'{"id":'


class _LogEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry, and what leads from it to a signed head."""

    seq: int
    event_type: str
    response_id: str
    at: int
    event: dict[str, Any]
    previous: str | None
    following: list[str]
    checkpoint: str
    tree: str | None = None


class _Proof(msgspec.Struct, frozen=True, kw_only=True):
    chat_id: str
    message_id: str
    entries: list[_LogEntry]
    signature: str | None = None
    keys: list[dict[str, Any]] = []


class ProvenEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry that leads to a head; ``is_signed`` is None if no given key made its signature."""

    head: LogHead
    is_signed: bool | None
    tree: LoggedHead | None


class ProvenMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message that the log of its chat has, with its sender and text.

    ``answer`` is the check of its agent's signature, None if it is not signed. ``keys_given`` says
    whether the keys are the caller's rather than those in the file.
    """

    chat_id: str
    message_id: str
    role: str
    name: str
    content: str
    is_edited: bool
    entries: tuple[ProvenEntry, ...]
    answer: SignatureCheck | None
    keys_given: bool

    @property
    def is_proven(self) -> bool:
        """Whether given keys signed the heads and the tree of the server has them."""
        return self.keys_given and all(
            entry.is_signed and entry.tree is not None and entry.tree.is_signed
            for entry in self.entries
        )


def begins_proof(line: bytes) -> bool:
    """Return whether a first line starts a proof."""
    return line.startswith(_PROOF)


def begins_message(line: bytes) -> bool:
    """Return whether a first line starts a message as REST returns it."""
    return line.startswith(_MESSAGE)


def check_saved_message(text: bytes, keys: Iterable[Mapping[str, Any]]) -> SignatureCheck:
    """Check an answer as REST returns it with `expand=signature`.

    Raises ExportCutError if it is not a message, or differs from what its agent signed.
    """
    message = _object(text)
    if not isinstance(message.get("content"), str) or "role" not in message:
        raise ExportCutError("The file is not a message.", code="no_export")
    chat_id = message.get("chat_id")
    check = check_answer(message, keys, chat_id=chat_id if isinstance(chat_id, str) else None)
    if not check.is_good:
        raise ExportCutError(f"The answer: {check.detail}", code="export_changed")
    return check


def check_message_proof(
    text: bytes,
    keys: Iterable[Mapping[str, Any]] = (),
    witnesses: Iterable[Witness] = (),
) -> ProvenMessage:
    """Check the proof of a message with the given keys or, without any, with those in the file.

    Raises ExportCutError if it is not a proof, or proves nothing.
    """
    try:
        proof = msgspec.convert(_object(text).get("proof"), type=_Proof)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ExportCutError(f"The file is not a proof: {error}", code="no_export") from None
    caller_keys = tuple(keys)
    all_keys = caller_keys or tuple(proof.keys)
    message, content = _message_in(proof)
    try:
        entries = tuple(
            _proven_entry(proof.chat_id, entry, all_keys, witnesses) for entry in proof.entries
        )
    except BadCheckpoint as error:
        raise ExportCutError(f"The proof: {error}", code="export_changed") from None
    answer = None
    if proof.signature is not None:
        signed = {**message, "signature": proof.signature}
        answer = check_answer(signed, all_keys, chat_id=proof.chat_id)
        if not answer.is_good:
            raise ExportCutError(f"The answer: {answer.detail}", code="export_changed")
    return ProvenMessage(
        chat_id=proof.chat_id,
        message_id=proof.message_id,
        role=str(message.get("role") or ""),
        name=str(message.get("name") or ""),
        content=str(content.get("content") or ""),
        is_edited=len(proof.entries) > 1,
        entries=entries,
        answer=answer,
        keys_given=bool(caller_keys),
    )


def _message_in(proof: _Proof) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    """Return the message as it was announced, and the event with its current text."""
    kinds = [entry.event_type for entry in proof.entries]
    if kinds not in (["message.created"], ["message.created", "message.edited"]):
        raise ExportCutError(
            "The proof has entries that do not belong to a message.", code="no_export"
        )
    message = proof.entries[0].event.get("message")
    current = message if len(kinds) == 1 else proof.entries[1].event
    if not isinstance(message, dict) or not isinstance(current, dict):
        raise ExportCutError("The proof has no message.", code="no_export")
    ids = {message.get("id"), current.get("id" if len(kinds) == 1 else "message_id")}
    if ids != {proof.message_id}:
        raise ExportCutError("The proof belongs to another message.", code="export_changed")
    return message, current


def _proven_entry(
    chat_id: str,
    entry: _LogEntry,
    keys: Sequence[Mapping[str, Any]],
    witnesses: Iterable[Witness],
) -> ProvenEntry:
    """Follow the chain from an entry to its head. Raises BadCheckpoint."""
    try:
        head, is_signed = open_checkpoint(entry.checkpoint, keys), True
    except UnknownCheckpointKey:
        head, is_signed = read_checkpoint(entry.checkpoint), None
    if (head.chat_id, head.seq) != (chat_id, entry.seq + len(entry.following)):
        raise BadCheckpoint("The signed head belongs to another chat or place.")
    if _last_hash(chat_id, entry) != head.chain_hash:
        raise BadCheckpoint("The entry does not lead to the signed head.")
    tree = None if entry.tree is None else check_proof(entry.tree, head, keys, witnesses)
    return ProvenEntry(head=head, is_signed=is_signed, tree=tree)


def _last_hash(chat_id: str, entry: _LogEntry) -> bytes:
    """Return the chain hash at the end of the entries that follow."""
    previous = hash_of(entry.previous)
    digests = [hash_of(digest_text) for digest_text in entry.following]
    is_hash = entry.previous is None or previous is not None
    if not is_hash or None in digests or not 0 < entry.seq < 2**62:
        raise BadCheckpoint("A hash of the chain cannot be read.")
    try:
        at = time_of(entry.at)
        payload = payload_digest(entry.event)
    except (OverflowError, ValueError):
        raise BadCheckpoint("The entry cannot be read.") from None
    covered = entry_digest(entry.event_type, entry.response_id, at, payload)
    chain = previous or chain_start(chat_id, entry.seq - 1)
    chain = chain_hash(chain, entry.seq, covered)
    for seq, digest in enumerate(digests, entry.seq + 1):
        chain = chain_hash(chain, seq, digest or b"")
    return chain


def _object(text: bytes) -> dict[str, Any]:
    if len(text) > PROOF_BYTES_MAX:
        raise ExportCutError("The file is too large.", code="no_export")
    return object_of(text, "The file")
