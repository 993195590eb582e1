"""Cards of linked pages in the admin; read-only."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.windows import filter_by
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import LinkCard, LinkCardState


@admin.register(LinkCard)
class LinkCardAdmin(HistoryAdmin):
    """Cards of linked pages, whose addresses are not stored.

    The words of a linked page reveal what a chat is about, so they are content.
    """

    list_display = ("url_sha256", "state", "site", "title", "created_at")
    content_columns = content_fields = ("site", "title", "description")
    list_filter = (filter_by("state", LinkCardState.values),)
    search_fields = ("url_sha256__exact",)
    search_help_text = "The SHA-256 of an address."
    ordering = ("-created_at",)
    fields = ("url_sha256", "state", "site", "title", "description", "created_at")
