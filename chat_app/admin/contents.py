"""Stored contents in the admin, and the chats in which they appear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import BooleanField, ExpressionWrapper, Q
from django.http import HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.defaultfilters import filesizeformat
from django.urls import path, reverse
from django.utils.html import format_html

from audit_app.admin.columns import linked, list_buttons, moment
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.operations import OperationsAdmin
from audit_app.admin.records import record_request, sees_content
from audit_app.record import AuditAction
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.contents import addresses
from chat_app.models import (
    Content,
    ContentPreview,
    ContentUse,
)

if TYPE_CHECKING:
    from uuid import UUID

    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.urls import URLPattern
    from django.utils.safestring import SafeString


@admin.register(Content)
class ContentAdmin(OperationsAdmin, HistoryAdmin):
    """Stored files; their bytes are read through the address that checks the reader."""

    find_by = ("id", "handle", "sha256")
    list_display = (
        "__str__",
        "filename",
        "mime_type",
        "size",
        linked("owner"),
        moment("created_at"),
    )
    list_filter = (("created_at", DateRangeFilter),)
    list_select_related = ("owner",)
    search_fields = ("id__exact", "sha256__exact", "owner__username__exact")
    search_help_text = "The id, the SHA-256, or the owner's name."
    ordering = ("-created_at",)
    fields = (
        "id", "filename", "mime_type", "size_bytes", "sha256", "owner", "owner_key", "created_at",
        "file",
    )  # fmt: skip
    readonly_fields = ("file",)
    content_fields = ("filename",)
    content_columns = ("filename",)

    def row_links(self, request: HttpRequest, row: Content) -> list[dict[str, str]]:
        """Return a link to the chats that show it."""
        return list_buttons(request, ("chat_app.contentuse", "Chats with it", {"q": str(row.pk)}))

    @admin.display(description="size")
    def size(self, content: Content) -> str:
        """Return the human-readable size."""
        return filesizeformat(content.size_bytes)

    @admin.display(description="file")
    def file(self, content: Content) -> SafeString:
        """Return a link to the bytes."""
        address = reverse("admin:chat_app_content_open", args=[content.pk])
        return format_html('<a href="{}">Open</a>', address)

    def get_urls(self) -> list[URLPattern]:
        """Add the page that opens a file."""
        page = path(
            "<uuid:content_id>/open/",
            self.admin_site.admin_view(self.open),
            name="chat_app_content_open",
        )
        return [page, *super().get_urls()]

    def open(self, request: HttpRequest, content_id: UUID) -> HttpResponseRedirect:
        """Redirect to the operator's own signed address of the bytes; the audit records it."""
        if not sees_content(request):
            raise PermissionDenied
        content = get_object_or_404(Content, pk=content_id)
        record_request(request, AuditAction.CONTENT_READ, content)
        reader = addresses.ContentReader(user_id=request.user.pk, is_operator=True)
        return HttpResponseRedirect(addresses.signed_url(content.pk, reader))


@admin.register(ContentUse)
class ContentUseAdmin(HistoryAdmin):
    """The chats in which a content is shown."""

    list_display = ("content", linked("chat"))
    list_select_related = ("content", "chat")
    search_fields = ("chat__id__exact", "content__id__exact")
    search_help_text = "The id of a chat or a file."


@admin.register(ContentPreview)
class ContentPreviewAdmin(HistoryAdmin):
    """Previews of pictures, including those that could not be drawn."""

    list_display = ("content", "has_preview", moment("created_at"))
    list_select_related = ("content",)
    search_fields = ("content__id__exact",)
    search_help_text = "The id of a file."
    ordering = ("-content_id",)
    fields = ("content", "has_preview", "created_at")
    readonly_fields = ("has_preview",)

    def get_queryset(self, request: HttpRequest) -> QuerySet[ContentPreview]:
        """Leave the bytes in the database."""
        is_drawn = ExpressionWrapper(~Q(data=b""), BooleanField())
        previews: QuerySet[ContentPreview] = super().get_queryset(request)
        return previews.defer("data").annotate(is_drawn=is_drawn)

    @admin.display(description="drawn", boolean=True)
    def has_preview(self, preview: ContentPreview) -> bool:
        """Return whether there is a preview."""
        is_drawn: bool = preview.is_drawn  # type: ignore[attr-defined]  # an annotation
        return is_drawn
