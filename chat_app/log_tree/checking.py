"""The check of the whole tree against its checkpoints and the log heads (docs/log-tree.md).

Reads every node once, in pages, while the server runs: rows that are added meanwhile are left to
the next check.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

from chat_app.log_tree import nodes
from chat_app.log_tree.cosigning import witnesses
from chat_app.log_tree.growth import is_of_tree, leaf_of
from chat_app.log_tree.proofs import published
from chat_app.models import LogCheckpoint, LogTree, TreeCheckpoint
from signing_app.published import keys_of
from uamp.logs.checkpoint import BadCheckpoint
from uamp.transparency.notes import TREE, check_signature, cosignatures, read_note
from uamp.transparency.tree import completed_by, joined, node_hash, nodes_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from uamp.transparency.notes import Witness

PROBLEMS_MAX: Final = 100
"""The maximum number of problems listed."""

PAGE: Final = 500


class TreeProblemKind(StrEnum):
    """The kind of a fault in the tree."""

    NODE_CHANGED = "node_changed"
    NODE_MISSING = "node_missing"
    CHECKPOINT_CHANGED = "checkpoint_changed"
    CHECKPOINT_MISSING = "checkpoint_missing"
    HEAD_CHANGED = "head_changed"
    COSIGNATURE_CHANGED = "cosignature_changed"


SENTENCES: Final = {
    TreeProblemKind.NODE_CHANGED: "The hash of a node does not follow from the leaves below it.",
    TreeProblemKind.NODE_MISSING: "A node of the tree is missing.",
    TreeProblemKind.CHECKPOINT_CHANGED: "The checkpoint does not match the tree at its size.",
    TreeProblemKind.CHECKPOINT_MISSING: "No checkpoint covers the last leaves of the tree.",
    TreeProblemKind.HEAD_CHANGED: "The signed head of a log is not the one in the tree.",
    TreeProblemKind.COSIGNATURE_CHANGED: "A cosignature does not match its witness.",
}
"""Explanations of the problems, for people."""


class TreeProblem(msgspec.Struct, frozen=True, kw_only=True):
    """One problem; `at` is a leaf, or the size of a checkpoint or of the tree below the node."""

    kind: TreeProblemKind
    at: int


class TreeSummary(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a check: what was read, and the problems found.

    ``orphans`` counts the leaves whose log head is gone, because its chat was deleted; ``cosigned``
    the checkpoints with a valid cosignature.
    """

    leaves: int
    checkpoints: int
    cosigned: int
    orphans: int
    problem_count: int
    problems: tuple[TreeProblem, ...]

    @property
    def is_intact(self) -> bool:
        """Whether no problem was found."""
        return not self.problem_count


class _Problems:
    """Counts problems and keeps the first."""

    def __init__(self) -> None:
        self.count = 0
        self.first: list[TreeProblem] = []

    def add(self, kind: TreeProblemKind, at: int) -> None:
        self.count += 1
        if len(self.first) < PROBLEMS_MAX:
            self.first.append(TreeProblem(kind=kind, at=at))


def check_tree() -> TreeSummary:
    """Recompute the tree from its leaves and compare it with everything that rests on it."""
    # The tree may grow between these reads, by its size and a checkpoint of this size at once.
    newest = TreeCheckpoint.objects.order_by("-size").values_list("size", flat=True).first() or 0
    size = LogTree.objects.values_list("size", flat=True).first() or 0
    problems = _Problems()
    is_covered = not size or TreeCheckpoint.objects.filter(size=size).exists()
    if newest > size or not is_covered:
        problems.add(TreeProblemKind.CHECKPOINT_MISSING, max(size, newest))
    checkpoints = cosigned = 0
    roots = _roots(size, problems)
    reached, root = 0, b""
    keys, configured = keys_of(TREE)["keys"], witnesses()
    for row in _checkpoints(size):
        while reached < row.size:
            reached, root = next(roots, (row.size, b""))
        checkpoints += 1
        if not _is_as_signed(row, root, keys):
            problems.add(TreeProblemKind.CHECKPOINT_CHANGED, row.size)
        named, verified = _cosigners(row, configured)
        cosigned += bool(verified)
        if named != verified:
            problems.add(TreeProblemKind.COSIGNATURE_CHANGED, row.size)
    for _ in roots:
        continue
    count = _check_heads(size, problems)
    return TreeSummary(
        leaves=size,
        checkpoints=checkpoints,
        cosigned=cosigned,
        orphans=size - count,
        problem_count=problems.count,
        problems=tuple(problems.first),
    )


def checkpoint_state(row: TreeCheckpoint) -> str:
    """Return, for an operator, whether a checkpoint is signed and still that of the tree."""
    note = published(row)
    try:
        check_signature(read_note(note), keys_of(TREE)["keys"])
    except BadCheckpoint as error:
        return f"Changed: {error}"
    if not is_of_tree(row):
        return f"Changed: {SENTENCES[TreeProblemKind.CHECKPOINT_CHANGED]}"
    cosigned = ", ".join(sorted(cosignatures(read_note(note), witnesses())))
    return f"Not changed. Cosigned by {cosigned or 'no witness'}."


def _roots(size: int, problems: _Problems) -> Iterator[tuple[int, bytes]]:
    """Yield each size of the tree with its root, recomputed from the stored leaves."""
    stored = nodes.stored_nodes(size)
    peaks: list[bytes] = []
    for leaf in range(size):
        for level in range(completed_by(leaf) + 1):
            position, value = next(stored, (-1, b""))
            if position != nodes_before(leaf) + level:
                problems.add(TreeProblemKind.NODE_MISSING, leaf + 1)
                return
            if level == 0:
                peaks.append(value)
                continue
            right = peaks.pop()
            peaks.append(node_hash(peaks.pop(), right))
            if peaks[-1] != value:
                problems.add(TreeProblemKind.NODE_CHANGED, leaf + 1)
        yield leaf + 1, joined(peaks)


def _checkpoints(size: int) -> Iterator[TreeCheckpoint]:
    after = 0
    while True:
        rows = TreeCheckpoint.objects.filter(size__gt=after, size__lte=size).order_by("size")
        page = list(rows[:PAGE])
        yield from page
        if len(page) < PAGE:
            return
        after = page[-1].size


def _is_as_signed(row: TreeCheckpoint, root: bytes, keys: Iterable[Mapping[str, Any]]) -> bool:
    try:
        note = read_note(row.note)
        check_signature(note, keys)
    except BadCheckpoint:
        return False
    return (note.head.size, note.head.root) == (row.size, root)


def _cosigners(row: TreeCheckpoint, configured: Iterable[Witness]) -> tuple[set[str], set[str]]:
    """Return the configured witnesses recorded as cosigners, and those whose signature verifies."""
    names = {witness.name for witness in configured}
    named = names & set(row.cosignatures.values_list("witness", flat=True))
    try:
        return named, set(cosignatures(read_note(published(row)), configured))
    except BadCheckpoint:
        return named, set()


def _check_heads(size: int, problems: _Problems) -> int:
    """Compare the log heads with their leaves, and return how many there are."""
    after, count = -1, 0
    while True:
        rows = LogCheckpoint.objects.filter(leaf__gt=after, leaf__lt=size).order_by("leaf")
        page = list(rows[:PAGE])
        leaves = {row.leaf: row for row in page if row.leaf is not None}
        stored = nodes.leaf_hashes(list(leaves))
        for leaf, row in leaves.items():
            if stored.get(leaf) != leaf_of(row):
                problems.add(TreeProblemKind.HEAD_CHANGED, leaf)
        count += len(page)
        if len(page) < PAGE:
            return count
        after = max(leaves)
