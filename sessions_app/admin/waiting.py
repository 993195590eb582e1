"""Rows of requests in the admin: inputs, events, follow-ups, tickets, connections. Read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django import forms
from django.contrib import admin

from audit_app.admin.columns import linked, moment
from chat_app.admin.history_pages import HistoryAdmin
from sessions_app.models import (
    ApiKey,
    FollowUp,
    HttpConnection,
    InboundEvent,
    PendingInput,
    Ticket,
    UnansweredRequest,
)

if TYPE_CHECKING:
    # Django's classes accept type arguments only in the stubs.
    _Form = forms.ModelForm[ApiKey]
else:
    _Form = forms.ModelForm


@admin.register(PendingInput)
class PendingInputAdmin(HistoryAdmin):
    """Inputs sent over HTTP that wait for their response.create."""

    list_display = ("event_id", linked("session"), moment("created_at"))
    list_select_related = ("session",)
    search_fields = ("session__id__exact",)
    search_help_text = "The id of a session."
    fields = ("session", "event_id", "payload", "size_bytes", "created_at")
    content_fields = ("payload",)


@admin.register(InboundEvent)
class InboundEventAdmin(HistoryAdmin):
    """The outcome of each client event."""

    list_display = ("event_id", linked("session"), moment("created_at"))
    list_select_related = ("session",)
    search_fields = ("session__id__exact",)
    search_help_text = "The id of a session."


@admin.register(FollowUp)
class FollowUpAdmin(HistoryAdmin):
    """Messages with which clients answered responses that were waiting for them."""

    list_display = ("message_id", linked("response", "answer"), moment("created_at"))
    list_select_related = ("response",)
    search_fields = ("response__id__exact",)
    search_help_text = "The id of an answer."
    fields = ("response", "message_id", "parts", "created_at")
    content_fields = ("parts",)


@admin.register(Ticket)
class TicketAdmin(HistoryAdmin):
    """Unused one-time tickets, and client secrets."""

    list_display = ("user", "kind", "agent", "api_key", moment("expires_at"))
    list_select_related = ("user", "api_key")
    fields = ("user", "kind", "agent", "api_key", "expires_at")
    search_fields = ("user__username__exact",)
    search_help_text = "The owner's name."
    ordering = ("-expires_at",)


@admin.register(HttpConnection)
class HttpConnectionAdmin(HistoryAdmin):
    """Connections that span HTTP requests; the id is a visitor's credential."""

    list_display = ("principal", "transport", "agent", moment("created_at"), moment("seen_at"))
    list_filter = ("transport",)
    fields = ("principal", "transport", "agent", "created_at", "seen_at")
    # Connections that an earlier release opened during an upgrade have only a principal.
    search_fields = ("counted_as__exact", "principal__exact")
    search_help_text = "A principal, such as user:1, or address:192.0.2.1 for visitors."
    ordering = ("-seen_at",)


@admin.register(UnansweredRequest)
class UnansweredRequestAdmin(HistoryAdmin):
    """Requests whose answers have not been sent on a stream of their connection."""

    list_display = ("connection", "request_id", "session", "response_id", moment("created_at"))
    list_select_related = ("connection", "session")
    fields = ("connection", "request_id", "session", "response_id", "created_at")
    search_fields = ("session__id__exact",)
    search_help_text = "The id of a session."
