"""The Merkle tree of the signed log heads of all chats, and its published checkpoints.

The leaves are the texts of `LogCheckpoint` rows, in the order in which they were added. Nothing
here names a chat, so that the tree stays whole when a chat is deleted.
"""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models import Q
from django.utils import timezone


class LogTree(models.Model):
    """The number of leaves. One row, which is locked while the tree grows."""

    THE_ROW: ClassVar = 1

    id = models.PositiveSmallIntegerField(primary_key=True, default=THE_ROW)
    size = models.BigIntegerField(default=0)

    class Meta:
        """The server has one tree."""

        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="one_tree_of_logs"),
        ]

    def __str__(self) -> str:
        return f"{self.size} leaves"


class TreeNode(models.Model):
    """A leaf or a complete inner node, by its place (`uamp.transparency.tree.node_position`)."""

    position = models.BigIntegerField(primary_key=True)
    hash = models.BinaryField(max_length=32)

    def __str__(self) -> str:
        return str(self.position)


class TreeCheckpoint(models.Model):
    """The signed head of the tree at one size (`uamp.transparency.notes`). Written once."""

    size = models.BigIntegerField(primary_key=True)
    note = models.CharField(max_length=2000)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Listed newest first."""

        verbose_name = "log tree checkpoint"
        verbose_name_plural = "log tree checkpoints"

    def __str__(self) -> str:
        return f"{self.size} leaves"


class TreeCosignature(models.Model):
    """The line with which a witness cosigned a checkpoint; its first one counts."""

    id: models.BigAutoField[int, int] = models.BigAutoField(primary_key=True)
    checkpoint = models.ForeignKey(TreeCheckpoint, models.CASCADE, related_name="cosignatures")
    witness = models.CharField(max_length=300)
    line = models.CharField(max_length=500)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """One for each witness."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["checkpoint", "witness"], name="a_witness_cosigns_once"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.witness}, {self.checkpoint_id} leaves"
