"""Webhooks and their deliveries in the admin. Read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin

from audit_app.admin.columns import NAME_CHARS, linked, list_link, moment, short
from audit_app.admin.records import NEWEST, NewestRows, RecordInline
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.admin.filters import DisabledFilter, OpenFilter
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.webhooks.receivers import server_of

if TYPE_CHECKING:
    from django.http import HttpRequest
    from django.utils.safestring import SafeString

_OF_ONE: Final = "webhook__id__exact"
_ATTEMPT = ("number", "state", "seq", "status", "attempts", "http_status", "error", "due_at")


class WebhookDeliveryInline(RecordInline):
    """Deliveries to a webhook, newest first; bodies are not shown."""

    model = WebhookDelivery
    formset = NewestRows
    verbose_name_plural = f"the newest {NEWEST} deliveries"
    fields = (*_ATTEMPT, "finished_at")
    ordering: ClassVar[Any] = ("-number",)


@admin.register(Webhook)
class WebhookAdmin(HistoryAdmin):
    """Receivers for the states of a response or the events of a chat; secrets are not shown.

    A path, a query or a password in a URL may be a secret, so only the server's name is shown.
    """

    list_display = (
        "name", linked("response", "answer"), linked("chat"), "receiver", "sent",
        moment("disabled_at"), moment("created_at"),
    )  # fmt: skip
    list_filter = (DisabledFilter,)
    list_select_related = ("response", "chat", "user")
    search_fields = ("response__id__exact", "chat__id__exact", "user__username__exact")
    search_help_text = "The id of an answer or a chat, or the name of a person."
    fields = (
        "response", "chat", "types", "queued_seq", "name", "user", "principal", "format",
        "origin", "receiver", "seen", "sent",
        "look_at", "disabled_at", "disabled_reason", "created_at", "all_deliveries",
    )  # fmt: skip
    readonly_fields = ("receiver", "all_deliveries")
    inlines = (WebhookDeliveryInline,)

    @admin.display(description="sends to")
    def receiver(self, webhook: Webhook) -> str:
        """Return the scheme and the server of its URL."""
        return short(server_of(webhook.url), NAME_CHARS)

    @admin.display(description="deliveries")
    def all_deliveries(self, webhook: Webhook) -> SafeString:
        """Return a link to the list of its deliveries."""
        query = f"{_OF_ONE}={webhook.pk}"
        return list_link("sessions_app.webhookdelivery", query, "All of them")


@admin.register(WebhookDelivery)
class WebhookDeliveryAdmin(HistoryAdmin):
    """Deliveries of states and events to receivers, with their attempts and responses."""

    list_display = (
        "webhook", "number", "state", "http_status", "error", "attempts", moment("created_at"),
    )  # fmt: skip
    list_filter = ("status", OpenFilter)
    link_parameters = (_OF_ONE,)
    list_select_related = ("webhook",)
    search_fields = ("webhook__response__id__exact", "webhook__chat__id__exact")
    search_help_text = "The id of an answer or a chat."
    fields = ("webhook", *_ATTEMPT, "created_at", "finished_at")

    def get_ordering(self, request: HttpRequest) -> Any:
        """Sort the deliveries of one webhook by number, which is indexed."""
        if _OF_ONE in request.GET:
            return ("-webhook_id", "-number")
        return super().get_ordering(request)
