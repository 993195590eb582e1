"""The stored hashes of the tree. A node is written once, when its last leaf is added."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Final

from chat_app.models import TreeNode
from uamp.transparency.tree import (
    LeafRange,
    complete_nodes,
    completed_by,
    joined,
    node_hash,
    node_position,
    nodes_before,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PAGE: Final = 2000
"""How many hashes are in memory at once while a tree is read."""


class TreeChanged(Exception):
    """A hash of the tree is missing, or is not the one that was signed."""


def append(size: int, leaves: Sequence[bytes]) -> None:
    """Append the hashes of leaves to a tree of this size, with the nodes that they complete.

    The caller holds the lock of `LogTree`. Raises TreeChanged.
    """
    peaks = hashes(complete_nodes(LeafRange(0, size)))
    rows = []
    for leaf, made in enumerate(leaves, size):
        peaks.append(made)
        rows.append(TreeNode(position=node_position(0, leaf), hash=made))
        for level in range(1, completed_by(leaf) + 1):
            right = peaks.pop()
            peaks.append(node_hash(peaks.pop(), right))
            rows.append(TreeNode(position=node_position(level, leaf >> level), hash=peaks[-1]))
    TreeNode.objects.bulk_create(rows)


def subtree_hashes(subtrees: Sequence[LeafRange]) -> list[bytes]:
    """Return the hashes of subtrees, by one query. Raises TreeChanged."""
    covers = [complete_nodes(subtree) for subtree in subtrees]
    node_hashes = iter(hashes([node for cover in covers for node in cover]))
    return [joined(list(islice(node_hashes, len(cover)))) for cover in covers]


def root(size: int) -> bytes:
    """Return the root of the tree when it had this size. Raises TreeChanged."""
    return subtree_hashes([LeafRange(0, size)])[0]


def leaf_hashes(leaves: Sequence[int]) -> dict[int, bytes]:
    """Return the stored hashes of leaves; missing ones are left out."""
    places = {node_position(0, leaf): leaf for leaf in leaves}
    rows = TreeNode.objects.filter(pk__in=places).values_list("position", "hash")
    return {places[position]: bytes(stored) for position, stored in rows}


def stored_nodes(size: int) -> Iterator[tuple[int, bytes]]:
    """Yield the positions and hashes of the nodes of a tree, in order, in pages."""
    after, end = -1, nodes_before(size)
    while True:
        rows = TreeNode.objects.filter(position__gt=after, position__lt=end)
        page = list(rows.order_by("position").values_list("position", "hash")[:PAGE])
        yield from ((position, bytes(stored)) for position, stored in page)
        if len(page) < PAGE:
            return
        after = page[-1][0]


def hashes(nodes: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return the hashes of complete nodes, by one query. Raises TreeChanged."""
    places = [node_position(level, index) for level, index in nodes]
    rows = TreeNode.objects.filter(pk__in=places).values_list("position", "hash")
    stored = dict(rows)
    if any(place not in stored for place in places):
        raise TreeChanged
    return [bytes(stored[place]) for place in places]
