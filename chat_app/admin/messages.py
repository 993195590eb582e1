"""Messages and log entries in the admin; both are read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from chat_app import markdown
from chat_app.admin.history_pages import HistoryAdmin, ValueFilter, pretty
from chat_app.log.deletions import without_deleted
from chat_app.models import (
    ChatEvent,
    Message,
    MessageDeletion,
    MessageMention,
    MessageRevision,
    MessageStatus,
    MessageThread,
    Pin,
    Reaction,
    ThreadFollower,
)

if TYPE_CHECKING:
    from django.utils.safestring import SafeString


class RoleFilter(ValueFilter):
    """The role of the sender (UAMP §8.5)."""

    title = "role, of the newest"
    parameter_name = "role"
    values = ("user", "assistant", "system", "tool")


class MessageStatusFilter(ValueFilter):
    """How a text came to its end."""

    title = "status, of the newest"
    parameter_name = "status"
    values = tuple(MessageStatus.values)


class EventTypeFilter(ValueFilter):
    """What is kept in a log."""

    title = "type, of the newest"
    parameter_name = "type"
    values = (
        "agent.stopped",
        "call.ended",
        "chat.forked",
        "chat.updated",
        "link.created",
        "link.revoked",
        "message.created",
        "message.deleted",
        "message.edited",
        "message.pinned",
        "message.read",
        "message.unpinned",
        "participant.joined",
        "participant.left",
        "participant.updated",
        "reaction.added",
        "reaction.removed",
        "response.created",
        "tool.call_done",
        *ChatEvent.TERMINAL,
    )


@admin.register(Message)
class MessageAdmin(HistoryAdmin):
    """Messages, chat by chat."""

    list_display = ("seq", "chat", "name", "role", "beginning", "status", "transport", "created_at")
    list_display_links = ("seq", "beginning")
    list_filter = (RoleFilter, MessageStatusFilter)
    list_select_related = ("chat",)
    search_fields = ("id__exact", "chat__id__exact", "response_id__exact")
    search_help_text = "The id of a message, a chat or a response."
    ordering = ("-chat", "-seq")  # in the order of their index
    fields = (
        "id", "chat", "seq", "role", "sender_user", "sender_agent", "name", "body", "items",
        "response_id", "status", "transport", "created_at", "reply_to", "thread_link",
        "thread_only", "version_of", "replaced_by", "original", "revision", "edited_at",
        "deleted_at",
    )  # fmt: skip
    readonly_fields = ("body", "items", "thread_link", "original")

    @admin.display(description="copied from")
    def original(self, message: Message) -> SafeString | str:
        """Return the way to the message that it is a copy of, in a fork."""
        if message.copied_from is None:
            return "-"
        url = reverse("admin:chat_app_message_change", args=[message.copied_from])
        return format_html('<a href="{}">{}</a>', url, message.copied_from)

    @admin.display(description="thread")
    def thread_link(self, message: Message) -> SafeString | str:
        """Return the way to the message to whose thread it belongs."""
        if message.thread is None:
            return "-"
        url = reverse("admin:chat_app_message_change", args=[message.thread])
        return format_html('<a href="{}">{}</a>', url, message.thread)

    @admin.display(description="text")
    def beginning(self, message: Message) -> str:
        """Return the first words."""
        return message.content[:80] or "-"

    @admin.display(description="text")
    def body(self, message: Message) -> SafeString:
        """Return the text as the chat shows it."""
        # The renderer sanitises: this is the one kind of HTML that is passed on as it is.
        html = mark_safe(markdown.render(message.content))  # noqa: S308 sanitised
        return format_html('<div class="markdown">{}</div>', html)

    @admin.display(description="content items")
    def items(self, message: Message) -> SafeString:
        """Return the content items."""
        return pretty(message.content_items)


@admin.register(ChatEvent)
class ChatEventAdmin(HistoryAdmin):
    """The log, entry by entry."""

    list_display = ("chat", "seq", "type", "response_id", "created_at")
    list_display_links = ("seq",)
    list_filter = (EventTypeFilter,)
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    fields = ("chat", "seq", "type", "response_id", "event", "created_at")
    readonly_fields = ("event",)

    @admin.display(description="payload")
    def event(self, row: ChatEvent) -> SafeString:
        """Return the event as members may read it."""
        (payload,) = without_deleted([(row.type, row.response_id, row.payload)])
        return pretty(payload)


@admin.register(MessageRevision)
class MessageRevisionAdmin(HistoryAdmin):
    """Edits of messages: who, and when; the text is in the entry of the log."""

    list_display = ("message_id", "number", "seq", "edited_by", "created_at")
    list_select_related = ("edited_by",)
    search_fields = ("message__id__exact",)
    search_help_text = "The id of a message."
    ordering = ("-id",)
    raw_id_fields = ("message",)
    fields = ("message", "number", "seq", "edited_by", "created_at")


@admin.register(MessageDeletion)
class MessageDeletionAdmin(HistoryAdmin):
    """Deleted messages: who deleted them, and when."""

    list_display = ("message_id", "chat", "deleted_by", "deleted_at")
    list_select_related = ("chat", "deleted_by")
    search_fields = ("message__id__exact", "chat__id__exact", "response_id__exact")
    search_help_text = "The id of a message, a chat or a response."
    ordering = ("-message",)
    fields = ("message", "chat", "response_id", "deleted_by", "deleted_at")


@admin.register(Reaction)
class ReactionAdmin(HistoryAdmin):
    """Emoji that members gave messages."""

    list_display = ("message_id", "emoji", "user", "created_at")
    list_select_related = ("user",)
    search_fields = ("message__id__exact", "user__username__exact")
    search_help_text = "The id of a message, or a person's name."
    ordering = ("-id",)
    fields = ("message", "emoji", "user", "created_at")


@admin.register(MessageThread)
class MessageThreadAdmin(HistoryAdmin):
    """Threads: how many replies a message has, and when the last one came."""

    list_display = ("root_id", "chat", "replies", "last_seq", "last_at")
    list_select_related = ("chat",)
    search_fields = ("root__id__exact", "chat__id__exact")
    search_help_text = "The id of a message or a chat."
    ordering = ("-chat", "-last_seq")
    fields = ("root", "chat", "replies", "last_seq", "last_at", "faces")


@admin.register(MessageMention)
class MessageMentionAdmin(HistoryAdmin):
    """The people whom messages mention."""

    list_display = ("message_id", "user", "chat_id", "seq")
    list_select_related = ("user",)
    search_fields = ("message__id__exact", "chat__id__exact", "user__username__exact")
    search_help_text = "The id of a message or a chat, or a person's name."
    ordering = ("-id",)
    fields = ("message", "chat", "user", "seq")


@admin.register(ThreadFollower)
class ThreadFollowerAdmin(HistoryAdmin):
    """People who follow threads, and how far they have read them."""

    list_display = ("thread_id", "user", "read_seq")
    list_select_related = ("user",)
    search_fields = ("thread__root__id__exact", "user__username__exact")
    search_help_text = "The id of a message, or a person's name."
    ordering = ("-id",)
    fields = ("thread", "user", "read_seq")


@admin.register(Pin)
class PinAdmin(HistoryAdmin):
    """Pinned messages: who pinned them, and when."""

    list_display = ("message_id", "chat", "pinned_by", "pinned_at")
    list_select_related = ("chat", "pinned_by")
    search_fields = ("message__id__exact", "chat__id__exact")
    search_help_text = "The id of a message or a chat."
    ordering = ("-chat", "-seq")
    fields = ("message", "chat", "seq", "pinned_by", "pinned_at")
