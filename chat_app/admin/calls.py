"""Calls of chats in the admin; read-only."""

from __future__ import annotations

from typing import ClassVar

from django.contrib import admin

from audit_app.admin.records import RecordInline
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import VoiceCall, VoiceCallAgent, VoiceCallMember


class VoiceCallMemberInline(RecordInline):
    """The people who were called, and those who took part."""

    model = VoiceCallMember
    fields = ("user", "state", "joined_at", "seen_at", "rings_until")


class VoiceCallAgentInline(RecordInline):
    """The agents that took part, and the clients that connected them."""

    model = VoiceCallAgent
    fields = ("agent", "host", "joined_at", "left_at", "reason")


@admin.register(VoiceCall)
class VoiceCallAdmin(HistoryAdmin):
    """Calls: who started them, how they ended, and who took part."""

    list_display = ("call_id", "chat", "started_by", "state", "reason", "started_at", "ended_at")
    list_select_related = ("chat", "started_by")
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    ordering = ("-id",)
    fields = (
        "call_id", "chat", "started_by", "state", "reason", "media", "revision",
        "started_at", "answered_at", "ended_at",
    )  # fmt: skip
    inlines: ClassVar = [VoiceCallMemberInline, VoiceCallAgentInline]


@admin.register(VoiceCallMember)
class VoiceCallMemberAdmin(HistoryAdmin):
    """People in calls: who was called, and who took part in which session."""

    list_display = ("user", "call", "state", "joined_at", "seen_at", "rings_until")
    list_select_related = ("user", "call")
    search_fields = ("user__username__exact", "call__chat__id__exact")
    search_help_text = "A person's name, or the id of a chat."
    ordering = ("-id",)
    fields = ("call", "user", "state", "session_id", "joined_at", "seen_at", "rings_until")


@admin.register(VoiceCallAgent)
class VoiceCallAgentAdmin(HistoryAdmin):
    """Agents in calls: through whose client, and why they left."""

    list_display = ("agent", "call", "host", "joined_at", "left_at", "reason")
    list_select_related = ("agent", "call", "host")
    search_fields = ("agent__name__exact", "call__chat__id__exact")
    search_help_text = "An agent's name, or the id of a chat."
    ordering = ("-id",)
    fields = ("call", "agent", "host", "joined_at", "left_at", "reason")
