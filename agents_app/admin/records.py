"""Bases of admin pages whose rows record what happened: read-only, newest first, bounded counts.

The pages of chats, sessions and the ledger build on them. A list costs the same number of queries
for any number of rows.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.core.paginator import Paginator

if TYPE_CHECKING:
    from django.http import HttpRequest

    # Django's classes take type arguments in its stubs only.
    _Admin = admin.ModelAdmin[Any]
    _Inline = admin.TabularInline[Any, Any]
    _Paginator = Paginator[Any]
else:
    _Admin = admin.ModelAdmin
    _Inline = admin.TabularInline
    _Paginator = Paginator

COUNTED_ROWS: Final = 10_000


class CappedPaginator(_Paginator):
    """Pages of the first COUNTED_ROWS rows: a longer list is for filters, not for paging."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, counted up to the cap."""
        rows: Any = self.object_list
        counted: int = rows.order_by().values("pk")[:COUNTED_ROWS].count()
        return counted


class ReadOnly:
    """Refuses to add, change and delete rows, to people of any rights."""

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:  # noqa: ARG002 the interface's
        """Refuse to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Refuse to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Refuse to delete; this also removes the action `delete_selected`."""
        return False


class RecordAdmin(ReadOnly, _Admin):
    """A list of rows that are never changed, the newest first."""

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    ordering: ClassVar[Any] = ("-pk",)


class RecordInline(ReadOnly, _Inline):
    """Rows of another table on the page of a row; they are never changed."""

    extra = 0
