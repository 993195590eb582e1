"""Proofs that a log head is in the tree, and that the tree only grew (RFC 9162 §2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.utils import timezone

from chat_app.log_tree import nodes
from chat_app.log_tree.growth import grow
from chat_app.log_tree.nodes import TreeChanged
from chat_app.models import TreeCheckpoint
from uamp.transparency.proofs import proof_text
from uamp.transparency.tree import consistency_path, inclusion_path

if TYPE_CHECKING:
    from chat_app.models import LogCheckpoint


def proof_of(row: LogCheckpoint) -> str | None:
    """Return the proof that a log head is in the tree, adding it first if necessary.

    The checkpoint is the newest one that a witness has cosigned, or else the newest one. None if
    the tree was changed, or if many heads wait to be added.
    """
    try:
        if row.leaf is None:
            grow(timezone.now())
            row.refresh_from_db(fields=["leaf"])
        return None if row.leaf is None else inclusion_proof(row.leaf)
    except TreeChanged:
        return None


def inclusion_proof(leaf: int, *, size: int | None = None) -> str | None:
    """Return the proof of a leaf in a checkpoint of this size, or in the best one.

    None if there is no such checkpoint, or it does not have the leaf. Raises TreeChanged.
    """
    rows = TreeCheckpoint.objects.filter(size__gt=leaf).order_by("-size")
    if size is not None:
        rows = rows.filter(size=size)
    best = rows.filter(cosignatures__isnull=False).first() or rows.first()
    if best is None:
        return None
    path = nodes.subtree_hashes(inclusion_path(leaf, best.size))
    return proof_text(leaf, path, published(best))


def consistency_proof(first: int, second: int) -> list[bytes] | None:
    """Return the proof that the tree of one size is the beginning of that of another.

    None if the tree does not have that size. Raises TreeChanged.
    """
    newest = TreeCheckpoint.objects.order_by("-size").values_list("size", flat=True).first() or 0
    if not 0 < first <= second <= newest:
        return None
    return nodes.subtree_hashes(consistency_path(first, second))


def checkpoint(size: int | None = None) -> str | None:
    """Return the checkpoint of a size, or the newest one, with its cosignatures."""
    rows = TreeCheckpoint.objects.order_by("-size")
    row = rows.first() if size is None else rows.filter(size=size).first()
    return None if row is None else published(row)


def published(row: TreeCheckpoint) -> str:
    """Return the note of a checkpoint, followed by the lines of its witnesses."""
    lines = row.cosignatures.order_by("witness").values_list("line", flat=True)
    return row.note + "".join(lines)
