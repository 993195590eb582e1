"""Signed log heads (`uamp.logs.checkpoint`): signing, storing and reading them.

Synchronous. Heads are signed outside turns: when a reader asks for one, and periodically for chats
that were written to.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Exists, F, OuterRef
from django.utils import timezone

from chat_app.models import Chat, ChatEvent, LogCheckpoint, TreeNode
from signing_app import owner_keys
from signing_app.published import keys_of
from uamp.logs.checkpoint import (
    BadCheckpoint,
    LogHead,
    open_checkpoint,
    read_checkpoint,
    sign_checkpoint,
)
from uamp.transparency.tree import leaf_hash, node_position

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

logger = logging.getLogger(__name__)

BATCH: Final = 100
"""How many heads one call signs."""

GROWTH: Final = 500
"""A log that grew by this many entries is signed before its time, so that a head is near each."""

WINDOW: Final = timedelta(days=1)
"""Chats without new entries for this long are skipped."""


class LogChanged(Exception):
    """The last signed entry is no longer in the log, so no further head is signed."""


class StoredHeads(NamedTuple):
    """The chain hashes of a chat's checkpoints by place, and the places of unreadable ones."""

    heads: dict[int, bytes]
    bad: list[int]


def checkpoint_of(chat_id: str) -> LogCheckpoint | None:
    """Return the signed head of a chat's current log, signing it if needed.

    None if the last entry is not in a chain. Raises LogChanged, and Chat.DoesNotExist.
    """
    chat = Chat.objects.only("last_seq", "chain_seq", "chain_hash").get(pk=chat_id)
    if chat.chain_hash is None or chat.chain_seq != chat.last_seq:
        return None
    last = LogCheckpoint.objects.filter(chat=chat).order_by("-seq").first()
    chain_hash = bytes(chat.chain_hash)
    if last is not None:
        _check_continues(last, chat, chain_hash)
        if last.seq == chat.last_seq:
            return last
    return _signed(chat, chain_hash, timezone.now())


def sign_heads(now: datetime) -> int:
    """Sign the heads of logs that grew, each at most once in UAMP_CHECKPOINT_MINUTES or GROWTH.

    Returns the number of chats visited, at most BATCH.
    """
    made = LogCheckpoint.objects.filter(chat=OuterRef("pk"))
    since = now - timedelta(minutes=settings.UAMP_CHECKPOINT_MINUTES)
    grown = (
        Chat.objects.filter(latest_at__gte=now - WINDOW, chain_seq=F("last_seq"))
        .exclude(Exists(made.filter(seq=OuterRef("chain_seq"))))
        .exclude(Exists(made.filter(created_at__gt=since, seq__gt=OuterRef("last_seq") - GROWTH)))
    )
    chat_ids = list(grown.order_by("-latest_at", "-pk").values_list("pk", flat=True)[:BATCH])
    for chat_id in chat_ids:
        try:
            checkpoint_of(chat_id)
        except LogChanged:
            logger.error("the log of %s was changed: run audit_log to locate the change", chat_id)  # noqa: TRY400 a traceback is no help
        except Chat.DoesNotExist:
            continue  # deleted meanwhile
    return len(chat_ids)


def read_stored(chat_id: str, *, after: int, until: int) -> StoredHeads:
    """Return the heads after a place, each verified with the published log keys and the tree."""
    stored = StoredHeads({}, [])
    heads = LogCheckpoint.objects.filter(chat_id=chat_id, seq__gt=after, seq__lte=until)
    rows = list(heads.order_by("seq"))
    keys = keys_of(owner_keys.LOG)["keys"] if rows else []
    leaves = _leaves(rows)
    for row in rows:
        try:
            checkpoint = open_checkpoint(row.note, keys)
        except BadCheckpoint:
            stored.bad.append(row.seq)
            continue
        is_leaf = row.leaf is None or leaves.get(row.leaf) == leaf_hash(checkpoint.text.encode())
        if is_leaf and (checkpoint.chat_id, checkpoint.seq) == (chat_id, row.seq):
            stored.heads[row.seq] = checkpoint.chain_hash
        else:
            stored.bad.append(row.seq)
    return stored


def _leaves(rows: Iterable[LogCheckpoint]) -> dict[int, bytes]:
    """Return the hashes that the tree of the server has for these heads."""
    places = {node_position(0, row.leaf): row.leaf for row in rows if row.leaf is not None}
    nodes = TreeNode.objects.filter(pk__in=places).values_list("position", "hash")
    return {places[position]: bytes(stored) for position, stored in nodes}


def _check_continues(last: LogCheckpoint, chat: Chat, chain_hash: bytes) -> None:
    """Raise LogChanged if the entry last signed was changed or is gone."""
    if last.seq == chat.last_seq:
        stored: bytes | memoryview | None = chain_hash
    else:
        entries = ChatEvent.objects.filter(chat=chat, seq=last.seq)
        stored = entries.values_list("chain_hash", flat=True).first()
    try:
        signed = read_checkpoint(last.note).chain_hash
    except BadCheckpoint:
        raise LogChanged from None
    if stored is None or bytes(stored) != signed:
        raise LogChanged


def _signed(chat: Chat, chain_hash: bytes, now: datetime) -> LogCheckpoint:
    server = urlsplit(settings.UAMP_ISSUER)
    checkpoint = LogHead(
        server=f"{server.netloc}{server.path}".rstrip("/"),
        chat_id=chat.pk,
        seq=chat.last_seq,
        chain_hash=chain_hash,
        at=int(now.timestamp()),
    )
    key = owner_keys.signing_key(owner_keys.LOG, "EdDSA").private
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(key)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    note = sign_checkpoint(checkpoint, public_key=public, sign=key.sign)
    row = LogCheckpoint(chat=chat, seq=chat.last_seq, note=note, created_at=now)
    try:
        with transaction.atomic():
            row.save(force_insert=True)
    except IntegrityError:
        # Another process signed the same head at the same time.
        return LogCheckpoint.objects.get(chat=chat, seq=row.seq)
    return row
