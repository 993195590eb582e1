"""Participants, read receipts, presence and people in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User

from agents_app.admin.records import CappedPaginator
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.models import (
    AgentMention,
    Participant,
    Presence,
    ReadReceipt,
)

if TYPE_CHECKING:
    # Django's classes take type arguments in its stubs only.
    _UserAdmin = UserAdmin[User]
else:
    _UserAdmin = UserAdmin


@admin.register(Participant)
class ParticipantAdmin(HistoryAdmin):
    """The members of chats."""

    list_display = ("chat", "user", "agent", "role", "trigger", "joined_at", "left_at")
    list_filter = ("role", "trigger")
    list_select_related = ("chat", "user", "agent")
    search_fields = ("chat__id__exact", "user__username__exact")
    search_help_text = "The id of a chat, or a person's name."


@admin.register(AgentMention)
class AgentMentionAdmin(HistoryAdmin):
    """Agents that asked each other lately, as the pair window counts them."""

    list_display = ("chat", "pair", "created_at")
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    ordering = ("-id",)


@admin.register(ReadReceipt)
class ReadReceiptAdmin(HistoryAdmin):
    """How far members have read."""

    list_display = ("chat", "user", "seq", "read_at")
    list_select_related = ("chat", "user")
    search_fields = ("chat__id__exact", "user__username__exact")
    search_help_text = "The id of a chat, or a person's name."
    fields = ("chat", "user", "seq", "message", "read_at")


admin.site.unregister(User)


@admin.register(User)
class PersonAdmin(_UserAdmin):
    """People, as Django shows them, without counting all of them."""

    show_full_result_count = False
    paginator = CappedPaginator


@admin.register(Presence)
class PresenceAdmin(HistoryAdmin):
    """Open sockets of people."""

    list_display = ("user", "process", "connected_at", "seen_at")
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "process__exact")
    search_help_text = "A person's name or a process."
    ordering = ("-seen_at",)
