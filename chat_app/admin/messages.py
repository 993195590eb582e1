"""Messages and log entries in the admin; both are read-only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from audit_app.admin.columns import id_link, linked, moment, short_id
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.operations import OperationsAdmin
from audit_app.admin.windows import WindowFilter
from chat_app import markdown
from chat_app.admin.history_pages import HistoryAdmin, pretty
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
    from django.http import HttpRequest
    from django.utils.safestring import SafeString


class RoleFilter(WindowFilter):
    """The role of the sender (UAMP §8.5)."""

    title = "role"
    parameter_name = "role"
    values = ("user", "assistant", "system", "tool")


class MessageStatusFilter(WindowFilter):
    """Filter by the way in which a text ended."""

    title = "status"
    parameter_name = "status"
    values = tuple(MessageStatus.values)
    common = (MessageStatus.COMPLETED.value,)


class EventTypeFilter(WindowFilter):
    """The types of log entries."""

    title = "type"
    parameter_name = "type"
    common = ChatEvent.COMMON
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
class MessageAdmin(OperationsAdmin, HistoryAdmin):
    """Messages by chat; each links to the answers to it, or to its own answer."""

    find_by = ("id__begins",)
    list_display = (
        short_id(), linked("chat"), "seq", "name", "beginning", "status", moment("created_at"),
    )  # fmt: skip
    list_filter = (RoleFilter, MessageStatusFilter, ("created_at", DateRangeFilter))
    list_select_related = ("chat",)
    search_fields = ("id__exact", "chat__id__exact", "response_id__exact")
    search_help_text = (
        "The id of a message, a chat or an answer. To search for words, use the search at the top."
    )
    ordering = ("-created_at", "-id")
    fields = (
        "id", "chat", "seq", "role", "sender_user", "sender_agent", "name", "body", "items",
        "length", "response", "status", "transport", "created_at", "answered", "thread_link",
        "thread_only", "first_version", "next_version", "original", "revision", "edited_at",
        "deleted_at",
    )  # fmt: skip
    readonly_fields = (
        "body", "items", "length", "response", "answered", "thread_link", "first_version",
        "next_version", "original",
    )  # fmt: skip
    content_fields = ("body", "items")
    content_columns = ("beginning",)

    def row_links(self, request: HttpRequest, row: Message) -> list[dict[str, str]]:
        """Return links to the timelines of its chat, its answer and the answers to it."""
        if not request.user.has_perm("sessions_app.view_response"):
            return []
        # The rows of sessions_app are reached through the chat, because imports point down.
        responses = row.chat.responses.filter(message_id=row.pk).select_related("agent")
        answers = [
            (answer.pk, answer.agent.name) for answer in responses.order_by("created_at")[:10]
        ]
        if row.response_id:
            answers.append((row.response_id, row.name))
        chat = reverse("admin:sessions_app_chat_timeline", args=[quote(row.chat_id)])
        return [
            *(
                {
                    "url": reverse("admin:sessions_app_response_timeline", args=[quote(pk)]),
                    "label": f"Answer by {name}",
                }
                for pk, name in answers
            ),
            {"url": f"{chat}?at={row.seq}", "label": "Timeline"},
        ]

    response = staticmethod(id_link("response_id", "sessions_app.response", "answer"))
    answered = staticmethod(id_link("reply_to", "chat_app.message", "reply to"))
    thread_link = staticmethod(id_link("thread", "chat_app.message", "thread"))
    first_version = staticmethod(id_link("version_of", "chat_app.message", "version of"))
    next_version = staticmethod(id_link("replaced_by", "chat_app.message", "replaced by"))
    original = staticmethod(id_link("copied_from", "chat_app.message", "copied from"))

    @admin.display(description="characters")
    def length(self, message: Message) -> int:
        """Return its length."""
        return len(message.content)

    @admin.display(description="text")
    def beginning(self, message: Message) -> str:
        """Return the first words."""
        return message.content[:80] or "-"

    @admin.display(description="text")
    def body(self, message: Message) -> SafeString:
        """Return the text as the chat shows it."""
        # The renderer sanitises, so only its HTML is passed on unescaped.
        html = mark_safe(markdown.render(message.content))  # noqa: S308 sanitised
        return format_html('<div class="markdown">{}</div>', html)

    @admin.display(description="content items")
    def items(self, message: Message) -> SafeString:
        """Return the content items."""
        return pretty(message.content_items)


@admin.register(ChatEvent)
class ChatEventAdmin(HistoryAdmin):
    """The log, entry by entry."""

    list_display = ("seq", linked("chat"), "type", "response", moment("created_at"))
    list_filter = (EventTypeFilter,)
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    fields = ("chat", "seq", "type", "response", "event", "created_at")
    readonly_fields = ("event", "response")
    content_fields = ("event",)

    response = staticmethod(id_link("response_id", "sessions_app.response", "answer"))

    @admin.display(description="payload")
    def event(self, row: ChatEvent) -> SafeString:
        """Return the event as members may read it."""
        (payload,) = without_deleted([(row.type, row.response_id, row.payload)])
        return pretty(payload)


@admin.register(MessageRevision)
class MessageRevisionAdmin(HistoryAdmin):
    """Edits of messages: author and time; the text is in the log entry."""

    list_display = ("message_id", "number", "seq", "edited_by", moment("created_at"))
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
    search_help_text = "The id of a message, a chat or an answer."
    ordering = ("-message",)
    fields = ("message", "chat", "response_id", "deleted_by", "deleted_at")


@admin.register(Reaction)
class ReactionAdmin(HistoryAdmin):
    """Members' emoji reactions to messages."""

    list_display = ("message_id", "emoji", "user", moment("created_at"))
    list_select_related = ("user",)
    search_fields = ("message__id__exact", "user__username__exact")
    search_help_text = "The id of a message, or a person's name."
    ordering = ("-id",)
    fields = ("message", "emoji", "user", "created_at")


@admin.register(MessageThread)
class MessageThreadAdmin(HistoryAdmin):
    """Threads: how many replies a message has, and when the last one was written."""

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
