"""Browsers that receive people's notifications, in the admin; read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from django.contrib import admin

from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import PushDelivery, PushSubscription, UnreadMail

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest


@admin.register(PushSubscription)
class PushSubscriptionAdmin(HistoryAdmin):
    """Browsers with their push service, without their addresses and keys, which are secret."""

    list_display = ("device", "user", "push_service", "created_at", "sent_at", "failures")
    list_select_related = ("user",)
    search_fields = ("user__username__exact",)
    search_help_text = "A complete username."
    ordering = ("-created_at", "-id")
    fields = list_display

    def get_queryset(self, request: HttpRequest) -> QuerySet[PushSubscription]:
        """Leave out the keys."""
        rows: QuerySet[PushSubscription] = super().get_queryset(request)
        return rows.defer("p256dh", "auth", "session")

    @admin.display(description="push service")
    def push_service(self, row: PushSubscription) -> str:
        """Return the host of its address."""
        return urlsplit(row.endpoint).hostname or ""


@admin.register(PushDelivery)
class PushDeliveryAdmin(HistoryAdmin):
    """Deliveries to browsers in the last hour."""

    list_display = ("id", "subscription", "attempts", "http_status", "created_at", "finished_at")
    list_select_related = ("subscription__user",)
    search_fields = ("message__exact",)
    search_help_text = "The id of a message."
    ordering = ("-id",)
    fields = (
        "subscription", "message", "is_mention", "is_followed", "attempts", "http_status",
        "created_at", "due_at", "finished_at",
    )  # fmt: skip


@admin.register(UnreadMail)
class UnreadMailAdmin(HistoryAdmin):
    """The time of each person's last mail about unread messages."""

    list_display = ("user", "mailed_at", "looked_until")
    list_select_related = ("user",)
    search_fields = ("user__username__exact",)
    search_help_text = "A complete username."
    ordering = ("-user",)
    fields = list_display
