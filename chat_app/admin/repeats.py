"""Requests with an `Idempotency-Key`, in the admin; read-only, and deleted after a while."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import RepeatedRequest


@admin.register(RepeatedRequest)
class RepeatedRequestAdmin(HistoryAdmin):
    """Requests that their clients may repeat; their answers are encrypted."""

    list_display = ("id", linked("user"), "key", "status", "location", moment("created_at"))
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "key__exact")
    search_help_text = "A person's name, or a key."
    ordering = ("-id",)
    fields = ("user", "key", "status", "location", "created_at")
