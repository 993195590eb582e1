"""Shared chats in the admin: guests, invitations, mirrors and followers. Read-only."""

from __future__ import annotations

from django.contrib import admin

from audit_app.admin.columns import linked, moment
from audit_app.admin.records import RecordAdmin
from federation_app.models import ChatFollower, ChatMirror, ErasureNotice, Guest, GuestInvitation


@admin.register(Guest)
class GuestAdmin(RecordAdmin):
    """People of peers, and their accounts; deactivating the account blocks the person."""

    list_display = (linked("user"), linked("peer"), "remote_id", moment("created_at"))
    list_select_related = ("peer", "user")
    ordering = ("-created_at", "-id")
    fields = ("peer", "remote_id", "user", "created_at")


@admin.register(GuestInvitation)
class GuestInvitationAdmin(RecordAdmin):
    """Invitations to chats across servers."""

    list_display = (
        "invitation_id", linked("peer"), linked("user"), "name", "is_received", "state",
        moment("created_at"),
    )  # fmt: skip
    list_select_related = ("peer", "user")
    ordering = ("-created_at", "-id")
    fields = (
        "peer", "invitation_id", "is_received", "user", "name", "chat_id", "state", "is_sent",
        "created_at",
    )  # fmt: skip


@admin.register(ErasureNotice)
class ErasureNoticeAdmin(RecordAdmin):
    """Erased people of whom a peer is not informed yet."""

    list_display = ("id", linked("peer"), linked("user"))
    list_select_related = ("peer", "user")
    ordering = ("-id",)
    fields = ("peer", "user")


@admin.register(ChatMirror)
class ChatMirrorAdmin(RecordAdmin):
    """Chats here whose log belongs to a peer, and how far both sides are."""

    list_display = (
        "chat_id", linked("peer"), "home_chat_id", "applied_seq", "sent_seq", "is_behind",
        moment("created_at"),
    )  # fmt: skip
    list_select_related = ("peer",)
    ordering = ("-created_at", "-id")
    fields = (
        "peer", "home_chat_id", "chat_id", "applied_seq", "sent_seq", "is_behind", "held_until",
        "created_at",
    )  # fmt: skip


@admin.register(ChatFollower)
class ChatFollowerAdmin(RecordAdmin):
    """Peers with guests in chats here, and how far they know the log."""

    list_display = (
        "chat_id", linked("peer"), "sent_seq", moment("held_until"), moment("created_at"),
    )  # fmt: skip
    list_select_related = ("peer",)
    ordering = ("-created_at", "-id")
    fields = (
        "peer", "chat_id", "first_seq", "sent_seq", "last_message", "held_until", "created_at",
    )  # fmt: skip
