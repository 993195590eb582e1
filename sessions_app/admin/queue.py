"""Queued messages in the admin: displayed, and never changed here."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.models import QueuedTurn


@admin.register(QueuedTurn)
class QueuedTurnAdmin(HistoryAdmin):
    """Messages waiting for answers in their chat to end, or the reasons for their refusal."""

    list_display = (
        "id", linked("chat"), linked("user"), "status", "code", moment("due_at"),
        moment("created_at"),
    )  # fmt: skip
    list_filter = ("status",)
    list_select_related = ("chat", "user")
    search_fields = ("chat__id__exact", "user__username__exact")
    search_help_text = "The id of a chat, or a person's name."
    ordering = ("-id",)
    fields = (
        "chat", "session", "user", "event_id", "status", "code", "reason", "waits", "attempts",
        "files", "due_at", "created_at",
    )  # fmt: skip
