"""Adds signed log heads to the tree and signs its checkpoints.

Costs one row and at most one node for each head, whatever the size of the tree. Heads join the
tree outside turns: periodically, and when a reader asks for a proof.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.conf import settings
from django.db import transaction

from chat_app.log_tree import nodes
from chat_app.log_tree.nodes import TreeChanged
from chat_app.models import LogCheckpoint, LogTree, TreeCheckpoint
from signing_app import owner_keys
from uamp.logs.checkpoint import BadCheckpoint, read_checkpoint
from uamp.transparency.notes import TREE, TreeHead, read_note, sign_head
from uamp.transparency.proofs import tree_origin
from uamp.transparency.tree import leaf_hash

if TYPE_CHECKING:
    from datetime import datetime

logger = logging.getLogger(__name__)

BATCH: Final = 500
"""How many heads one call adds."""


def grow(now: datetime) -> int:
    """Add heads that are not in the tree yet, and sign its new head; return how many were added.

    Raises TreeChanged if the tree is not the one that was signed last: it does not grow then.
    """
    if not LogCheckpoint.objects.filter(leaf__isnull=True).exists():
        return 0
    with transaction.atomic():
        LogTree.objects.get_or_create(pk=LogTree.THE_ROW)
        tree = LogTree.objects.select_for_update(no_key=True).get(pk=LogTree.THE_ROW)
        _check_continues(tree.size)
        rows = list(LogCheckpoint.objects.filter(leaf__isnull=True).order_by("pk")[:BATCH])
        if not rows:
            return 0
        nodes.append(tree.size, [leaf_of(row) for row in rows])
        for row in rows:
            row.leaf = tree.size
            tree.size += 1
        LogCheckpoint.objects.bulk_update(rows, ["leaf"])
        tree.save()
        TreeCheckpoint.objects.create(size=tree.size, note=_signed(tree.size), created_at=now)
    return len(rows)


def leaf_of(row: LogCheckpoint) -> bytes:
    """Return the leaf hash of a log head: that of its signed text.

    A stored note that cannot be parsed has been tampered with: it is hashed unparsed, and no proof
    of it verifies.
    """
    try:
        text = read_checkpoint(row.note).text
    except BadCheckpoint:
        text = row.note
    return leaf_hash(text.encode())


def tree_name() -> str:
    """Return the name of this server's tree, which its checkpoints begin with."""
    server = urlsplit(settings.UAMP_ISSUER)
    return tree_origin(f"{server.netloc}{server.path}".rstrip("/"))


def is_of_tree(row: TreeCheckpoint) -> bool:
    """Return whether a stored checkpoint names its size, and the root that the tree has there."""
    try:
        head = read_note(row.note).head
        return (head.size, head.root) == (row.size, nodes.root(row.size))
    except (BadCheckpoint, TreeChanged):
        return False


def _check_continues(size: int) -> None:
    """Raise TreeChanged if the tree's root at its last checkpoint is not the signed one."""
    last = TreeCheckpoint.objects.order_by("-size").first()
    if last is None and size == 0:
        return
    is_same = last is not None and last.size == size and is_of_tree(last)
    if not is_same:
        logger.error("the tree of log heads was changed: the command audit_log shows where")
        raise TreeChanged


def _signed(size: int) -> str:
    head = TreeHead(origin=tree_name(), size=size, root=nodes.root(size))
    key = owner_keys.signing_key(TREE, "EdDSA").private
    if not isinstance(key, Ed25519PrivateKey):
        raise TypeError(key)
    public = key.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    return sign_head(head, public_key=public, sign=key.sign)
