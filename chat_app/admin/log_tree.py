"""The tree of log heads: its checkpoints and whether they hold, cosignatures, and hashes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.utils.html import format_html

from audit_app.admin.columns import moment
from audit_app.admin.records import RecordAdmin
from chat_app.log_tree import proofs
from chat_app.log_tree.checking import checkpoint_state
from chat_app.models import LogTree, TreeCheckpoint, TreeCosignature, TreeNode

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


@admin.register(TreeCheckpoint)
class TreeCheckpointAdmin(RecordAdmin):
    """The signed heads of the tree. The page of one compares it with the stored tree."""

    list_display = ("size", moment("created_at"))
    ordering = ("-size",)
    search_fields = ("size__exact",)
    search_help_text = "The number of leaves."
    fields = ("size", "created_at", "state", "published")
    readonly_fields = fields

    @admin.display(description="tree")
    def state(self, checkpoint: TreeCheckpoint) -> str:
        """Return whether the tree still has the root that was signed, and who cosigned it."""
        return checkpoint_state(checkpoint)

    @admin.display(description="checkpoint")
    def published(self, checkpoint: TreeCheckpoint) -> SafeString:
        """Return the checkpoint with its cosignatures, as anyone can read it."""
        return format_html('<pre class="record">{}</pre>', proofs.published(checkpoint))


@admin.register(TreeCosignature)
class TreeCosignatureAdmin(RecordAdmin):
    """The cosignatures of witnesses."""

    list_display = ("checkpoint_id", "witness", moment("created_at"))
    ordering = ("-pk",)
    fields = ("checkpoint", "witness", "line", "created_at")


@admin.register(LogTree)
class LogTreeAdmin(RecordAdmin):
    """The size of the tree."""

    list_display = ("size",)
    ordering = ("pk",)
    fields = ("size",)


@admin.register(TreeNode)
class TreeNodeAdmin(RecordAdmin):
    """The hashes of the tree, by their place."""

    list_display = ("position", "sha256")
    ordering = ("-position",)
    search_fields = ("position__exact",)
    search_help_text = "The place of a node."
    fields = ("position", "sha256")
    readonly_fields = fields

    @admin.display(description="hash")
    def sha256(self, node: TreeNode) -> str:
        """Return the hash in hexadecimal."""
        return bytes(node.hash).hex()
