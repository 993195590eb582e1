"""The arithmetic of a Merkle tree over SHA-256 (RFC 9162 §2.1).

A node is named by its level and its place there: leaves are on level 0, and a node on level n
covers 2**n of them. Only nodes whose leaves all exist are stored. They never change, and are
numbered in the order in which they are completed (`node_position`), so a store only appends.
"""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

EMPTY_ROOT: Final = hashlib.sha256(b"").digest()
"""The root of a tree without leaves."""

SIZE_MAX: Final = 2**62
"""The maximum number of leaves."""


class Node(NamedTuple):
    """A complete node: it covers the leaves from `place << level`, `1 << level` of them."""

    level: int
    place: int


class LeafRange(NamedTuple):
    """The leaves of a subtree, without `end`."""

    start: int
    end: int


def leaf_hash(data: bytes) -> bytes:
    """Return the hash of a leaf."""
    return hashlib.sha256(b"\0" + data).digest()


def node_hash(left: bytes, right: bytes) -> bytes:
    """Return the hash of a node from those of its children."""
    return hashlib.sha256(b"\1" + left + right).digest()


def node_position(level: int, index: int) -> int:
    """Return the number of a complete node in the order of completion, from 0."""
    last_leaf = ((index + 1) << level) - 1
    return nodes_before(last_leaf) + level


def nodes_before(leaf: int) -> int:
    """Return the number of complete nodes of a tree of this many leaves."""
    return 2 * leaf - leaf.bit_count()


def completed_by(leaf: int) -> int:
    """Return the number of nodes above it that a new leaf completes."""
    return (leaf + 1 & -(leaf + 1)).bit_length() - 1


def complete_nodes(leaves: LeafRange) -> list[Node]:
    """Return the largest complete nodes that cover a subtree, from left to right."""
    nodes = []
    start, end = leaves
    while start < end:
        level = (end - start).bit_length() - 1
        nodes.append(Node(level, start >> level))
        start += 1 << level
    return nodes


def joined(hashes: Sequence[bytes]) -> bytes:
    """Return the hash of a subtree from those of its `complete_nodes`."""
    if not hashes:
        return EMPTY_ROOT
    root = hashes[-1]
    for left in reversed(hashes[:-1]):
        root = node_hash(left, root)
    return root


def inclusion_path(index: int, size: int) -> list[LeafRange]:
    """Return the subtrees that prove a leaf, from its sibling to the child of the root."""
    start, end = 0, size
    subtrees = []
    while end - start > 1:
        middle = start + _split(end - start)
        if index < middle:
            subtrees.append(LeafRange(middle, end))
            end = middle
        else:
            subtrees.append(LeafRange(start, middle))
            start = middle
    return subtrees[::-1]


def consistency_path(first: int, second: int) -> list[LeafRange]:
    """Return the subtrees that prove that a tree is the beginning of a later one (§2.1.4.1)."""
    start, end, is_known = 0, second, True
    subtrees = []
    while first < end:
        middle = start + _split(end - start)
        if first <= middle:
            subtrees.append(LeafRange(middle, end))
            end = middle
        else:
            subtrees.append(LeafRange(start, middle))
            start, is_known = middle, False
    if not is_known:
        subtrees.append(LeafRange(start, end))
    return subtrees[::-1]


def is_included(leaf: bytes, path: Sequence[bytes], *, index: int, size: int, root: bytes) -> bool:
    """Return whether a path proves that a leaf with this hash is in a tree (§2.1.3.2)."""
    if not 0 <= index < size <= SIZE_MAX:
        return False
    node, last = leaf, size - 1
    for sibling in path:
        if last == 0:
            return False
        if index % 2 or index == last:
            node = node_hash(sibling, node)
            while index % 2 == 0 and index:
                index, last = index >> 1, last >> 1
        else:
            node = node_hash(node, sibling)
        index, last = index >> 1, last >> 1
    return last == 0 and node == root


def is_consistent(
    path: Sequence[bytes], *, first: int, second: int, first_root: bytes, second_root: bytes
) -> bool:
    """Return whether a path proves that the first tree is the beginning of the second (§2.1.4.2).

    The empty tree is the beginning of every tree.
    """
    if not 0 <= first <= second <= SIZE_MAX:
        return False
    if first in {0, second}:
        is_start = first_root == EMPTY_ROOT if first == 0 else first_root == second_root
        return is_start and not path
    hashes = [first_root, *path] if first & (first - 1) == 0 else list(path)
    if not hashes:
        return False
    node, last = first - 1, second - 1
    while node % 2:
        node, last = node >> 1, last >> 1
    before = after = hashes[0]
    for sibling in hashes[1:]:
        if last == 0:
            return False
        if node % 2 or node == last:
            before, after = node_hash(sibling, before), node_hash(sibling, after)
            while node % 2 == 0 and node:
                node, last = node >> 1, last >> 1
        else:
            after = node_hash(after, sibling)
        node, last = node >> 1, last >> 1
    return last == 0 and before == first_root and after == second_root


def roots(leaves: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the hashes of the complete nodes of the tree after each leaf, largest first."""
    nodes: list[bytes] = []
    for count, leaf in enumerate(leaves):
        nodes.append(leaf)
        for _ in range(completed_by(count)):
            right = nodes.pop()
            nodes.append(node_hash(nodes.pop(), right))
        yield nodes


def _split(count: int) -> int:
    """Return the largest power of two below a count of at least 2."""
    return 1 << ((count - 1).bit_length() - 1)
