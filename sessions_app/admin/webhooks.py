"""Webhooks and what was sent to them, in the admin: rows are shown and not changed."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin

from agents_app.admin.records import RecordInline
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.models import Webhook, WebhookDelivery

_ATTEMPT = ("number", "state", "status", "attempts", "http_status", "error", "due_at")


class WebhookDeliveryInline(RecordInline):
    """What was sent to a webhook, the newest first; bodies are not shown."""

    model = WebhookDelivery
    fields = (*_ATTEMPT, "finished_at")
    ordering: ClassVar[Any] = ("-number",)


@admin.register(Webhook)
class WebhookAdmin(HistoryAdmin):
    """Receivers of the states of a response; their secrets are not shown."""

    list_display = ("response", "name", "format", "url", "sent", "disabled_at", "created_at")
    list_filter = ("disabled_at",)
    list_select_related = ("response",)
    search_fields = ("response__id__exact",)
    search_help_text = "The id of a response."
    fields = (
        "response", "name", "user", "principal", "format", "origin", "url", "seen", "sent",
        "look_at", "disabled_at", "disabled_reason", "created_at",
    )  # fmt: skip
    inlines = (WebhookDeliveryInline,)


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(HistoryAdmin):
    """Each state on its way to a receiver, with its attempts and their answers."""

    list_display = ("webhook", *_ATTEMPT, "created_at", "finished_at")
    list_filter = ("status",)
    list_select_related = ("webhook",)
    search_fields = ("webhook__response__id__exact",)
    search_help_text = "The id of a response."
    fields = ("webhook", *_ATTEMPT, "created_at", "finished_at")
