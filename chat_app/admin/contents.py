"""Stored contents in the admin, and the chats in which they appear."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.utils.html import format_html

from chat_app.admin.history_pages import HistoryAdmin
from chat_app.contents import addresses
from chat_app.models import (
    Content,
    ContentUse,
)

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


@admin.register(Content)
class ContentAdmin(HistoryAdmin):
    """Stored files; their bytes are read through the address that checks the reader."""

    list_display = ("__str__", "mime_type", "size_bytes", "owner", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("owner",)
    search_fields = ("id__exact", "sha256__exact", "owner__username__exact")
    search_help_text = "The id, the SHA-256, or the owner's name."
    ordering = ("-created_at",)
    fields = (
        "id", "filename", "mime_type", "size_bytes", "sha256", "owner", "owner_key", "created_at",
        "file",
    )  # fmt: skip
    readonly_fields = ("file",)

    @admin.display(description="file")
    def file(self, content: Content) -> SafeString:
        """Return the way to the bytes, which works for UAMP_CONTENT_URL_SECONDS."""
        return format_html('<a href="{}">Open</a>', addresses.signed_url(content.pk))


@admin.register(ContentUse)
class ContentUseAdmin(HistoryAdmin):
    """In which chats a content is shown."""

    list_display = ("content", "chat")
    list_select_related = ("content", "chat")
    search_fields = ("chat__id__exact", "content__id__exact")
    search_help_text = "The id of a chat or a content."
