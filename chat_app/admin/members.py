"""Participants, read receipts, presence and profiles in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.auth.models import User
from django.urls import reverse

from audit_app.admin.columns import linked, moment
from audit_app.admin.operations import Operation, OperationRefused, OperationsAdmin
from audit_app.admin.windows import filter_by
from audit_app.record import AuditAction
from chat_app.admin.history_pages import HistoryAdmin
from chat_app.members.presence import notify_of_profile
from chat_app.models import (
    AgentMention,
    Participant,
    ParticipantReplyTrigger,
    ParticipantRole,
    PersonSettings,
    Presence,
    Profile,
    ProfilePicture,
    ReadReceipt,
)
from chat_app.people import profiles
from chat_app.people.names import key_of

if TYPE_CHECKING:
    from django.db.models import Model, QuerySet
    from django.http import HttpRequest


@admin.register(Participant)
class ParticipantAdmin(HistoryAdmin):
    """The members of chats."""

    list_display = (
        linked("chat"), linked("user"), linked("agent"), "role", "trigger", moment("joined_at"),
        moment("left_at"),
    )  # fmt: skip
    list_filter = (
        filter_by("role", ParticipantRole.values),
        filter_by("trigger", ParticipantReplyTrigger.values),
    )
    list_select_related = ("chat", "user", "agent")
    search_fields = ("chat__id__exact", "user__username__exact", "agent__id__exact")
    search_help_text = "The id of a chat or an agent, or a person's name."


@admin.register(AgentMention)
class AgentMentionAdmin(HistoryAdmin):
    """Agents that asked each other recently, as counted by the pair window."""

    list_display = ("chat", "pair", "created_at")
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    ordering = ("-id",)


@admin.register(ReadReceipt)
class ReadReceiptAdmin(HistoryAdmin):
    """The places up to which members have read, including those of people who read privately."""

    list_display = ("chat", "user", "seq", "read_at")
    list_select_related = ("chat", "user")
    search_fields = ("chat__id__exact", "user__username__exact")
    search_help_text = "The id of a chat, or a person's name."
    fields = ("chat", "user", "seq", "message", "read_at")


def _clear(profile: Profile, data: dict[str, Any], request: HttpRequest) -> str:
    del data, request
    person = User.objects.filter(pk=profile.pk).first()
    if person is None:
        raise OperationRefused("This person no longer exists.")
    profiles.clear_profile(user_id=person.pk)
    notify_of_profile(person)
    return "name, status and picture were removed"


CLEAR_PROFILE: Final = Operation(
    name="clear",
    label="Clear profile",
    right="auth.change_user",
    act=AuditAction.PROFILE_CLEARED,
    run=_clear,
    facts=lambda profile: (
        f"The display name, status and picture of {profile.user} will be removed. Their account,"
        " chats and files stay."
    ),
    in_list=True,
)


@admin.register(Profile)
class ProfileAdmin(OperationsAdmin, HistoryAdmin):
    """People's profiles; an operator removes misleading or offensive ones."""

    operations = (CLEAR_PROFILE,)
    list_display = ("user", "display_name", "status_text", "avatar_emoji", "updated_at")
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "name_key__exact")
    search_help_text = "A username or a display name."
    ordering = ("-user_id",)

    def matching(self, rows: QuerySet[Any], field: str, text: str) -> QuerySet[Any]:
        """Compare display names by their keys, as people's own search does."""
        return super().matching(rows, field, key_of(text) if field == "name_key__exact" else text)

    def _page_of(self, row: Model) -> str:
        """Return the list, because the row is gone."""
        del row
        return reverse("admin:chat_app_profile_changelist")


@admin.register(ProfilePicture)
class ProfilePictureAdmin(HistoryAdmin):
    """People's pictures; clearing a profile removes its picture."""

    list_display = ("profile", "created_at")
    list_select_related = ("profile__user",)
    search_fields = ("profile__user__username__exact",)
    search_help_text = "A person's name."
    fields = ("profile", "created_at")
    ordering = ("-profile_id",)


@admin.register(PersonSettings)
class PersonSettingsAdmin(HistoryAdmin):
    """People's settings for the pages."""

    list_display = ("user", "theme", "notifications", "read_receipts", "updated_at")
    list_select_related = ("user",)
    search_fields = ("user__username__exact",)
    search_help_text = "A person's name."
    ordering = ("-user_id",)


@admin.register(Presence)
class PresenceAdmin(HistoryAdmin):
    """Open sockets of people."""

    list_display = ("user", "process", "connected_at", "seen_at")
    list_select_related = ("user",)
    search_fields = ("user__username__exact", "process__exact")
    search_help_text = "A person's name or a process."
    ordering = ("-seen_at",)
