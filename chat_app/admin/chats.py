"""Chats in the admin, with the transcript of their logs.

Operators read history here; only a title may be corrected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef
from django.http import Http404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from agents_app.admin.records import RecordInline
from chat_app import markdown
from chat_app.admin.history_pages import HistoryAdmin, pretty
from chat_app.log.deletions import without_deleted
from chat_app.models import (
    Chat,
    ChatEvent,
    ChatOrigin,
    Message,
    Participant,
    SharedState,
)
from chat_app.rest.paging import SEQ_MAX
from chat_app.row_counts import CountOf

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString


TRANSCRIPT_EVENTS: Final = 100


class ParticipantInline(RecordInline):
    """The members of a chat; they come and go through the chat's log."""

    model = Participant
    fields = ("user", "agent", "role", "trigger", "budget", "joined_at", "left_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Participant]:
        """Read the names with the rows."""
        rows: QuerySet[Participant] = super().get_queryset(request)
        return rows.select_related("user", "agent", "chat")


@admin.register(Chat)
class ChatAdmin(HistoryAdmin):
    """Chats: the title may be corrected; the transcript shows what was said."""

    list_display = ("__str__", "kind", "members", "last_seq", "created_by", "latest_at", "shown")
    list_filter = ("kind", "latest_at")
    list_select_related = ("created_by",)
    search_fields = ("id__exact", "created_by__username__exact", "title")
    search_help_text = "The id, its creator's name, or a part of the title."
    ordering = ("-latest_at",)
    fields = (
        "id", "title", "description", "avatar", "kind", "payer", "only_owners_pin",
        "agents_quiet", "agent_hops", "budget", "budget_period", "epoch", "last_seq",
        "created_by", "created_at", "latest_at",
    )  # fmt: skip
    readonly_fields = (
        *(name for name in fields if name != "title"),
        "money",
        "forked_from",
        "forks",
    )
    inlines = (ParticipantInline,)

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Return whether a person may correct titles."""
        return request.user.has_perm("chat_app.change_chat")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chat]:
        """Count the members with the chats."""
        chats: QuerySet[Chat] = super().get_queryset(request)
        there = Participant.objects.filter(chat=OuterRef("pk"), left_at__isnull=True)
        return chats.annotate(member_count=CountOf(there.order_by().values("pk")))

    def get_fields(self, request: HttpRequest, obj: Chat | None = None) -> Any:
        """Show the way to its money to those who may see it."""
        fields = super().get_fields(request, obj)
        sees = request.user.has_perms(["payments_app.view_transfer", "payments_app.view_account"])
        own = (*fields, "forked_from", "forks")
        return (*own, "money") if sees else own

    @admin.display(description="forked from")
    def forked_from(self, chat: Chat) -> SafeString | str:
        """Return the way to the chat whose history it begins with."""
        fork = ChatOrigin.objects.filter(pk=chat.pk).first()
        if fork is None:
            return "-"
        url = reverse("admin:chat_app_chatorigin_change", args=[fork.pk])
        return format_html('<a href="{}">{}</a>', url, fork.source_title or fork.source_message)

    @admin.display(description="forks")
    def forks(self, chat: Chat) -> SafeString:
        """Return the way to the chats that begin with its history."""
        url = reverse("admin:chat_app_chatorigin_changelist")
        return format_html('<a href="{}?q={}">Forks</a>', url, chat.pk)

    @admin.display(description="money")
    def money(self, chat: Chat) -> SafeString:
        """Return the way to what was moved for it; the ledger's pages find it by the chat's id."""
        url = reverse("admin:payments_app_transfer_changelist")
        return format_html('<a href="{}?q={}">Transfers</a>', url, chat.pk)

    @admin.display(description="members")
    def members(self, chat: Any) -> int:
        """Return how many people and agents are there now."""
        count: int = chat.member_count
        return count

    @admin.display(description="transcript")
    def shown(self, chat: Chat) -> SafeString:
        """Return the way to what was said."""
        url = reverse("admin:chat_app_chat_transcript", args=[chat.pk])
        return format_html('<a href="{}">Transcript</a>', url)

    def get_urls(self) -> list[URLPattern]:
        """Add the transcript."""
        transcript = path(
            "<str:chat_id>/transcript/",
            self.admin_site.admin_view(self.transcript),
            name="chat_app_chat_transcript",
        )
        return [transcript, *super().get_urls()]

    def transcript(self, request: HttpRequest, chat_id: str) -> HttpResponse:
        """Show a page of a chat's log, the newest last; the request is recorded.

        Needs the right to view messages: PermissionDenied without it.
        """
        if not (
            request.user.has_perm("chat_app.view_chat")
            and request.user.has_perm("chat_app.view_message")
        ):
            raise PermissionDenied
        chat = Chat.objects.filter(pk=chat_id).first()
        if chat is None:
            raise Http404
        self.log_change(request, chat, "Read the transcript.")
        return TemplateResponse(
            request,
            "admin/chat_app/chat/transcript.html",
            {
                **self.admin_site.each_context(request),
                **transcript_page(chat, before=_place(request.GET.get("before", ""))),
                "opts": self.opts,
                "original": chat,
                "title": f"Transcript of {chat}",
            },
        )


@admin.register(ChatOrigin)
class ChatOriginAdmin(HistoryAdmin):
    """Chats that begin with the history of another one: who made each, and from which message."""

    list_display = ("chat", "source", "source_message", "messages", "forked_by", "forked_at")
    list_select_related = ("chat", "source", "forked_by")
    search_fields = (
        "chat__id__exact",
        "source__id__exact",
        "source_message__exact",
        "forked_by__username__exact",
    )
    search_help_text = "The id of either chat or of the message, or a person's name."
    ordering = ("-forked_at", "-chat")
    fields = (
        "chat", "source", "source_title", "source_message", "messages", "agents_left_out",
        "forked_by", "forked_at",
    )  # fmt: skip


@admin.register(SharedState)
class SharedStateAdmin(HistoryAdmin):
    """What the clients and agents of a chat share now."""

    list_display = ("chat", "version")
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    ordering = ("-chat",)
    fields = ("chat", "version", "value")


def _place(text: str) -> int:
    return min(int(text), SEQ_MAX) if text.isascii() and text.isdecimal() else SEQ_MAX


def transcript_page(chat: Any, *, before: int) -> dict[str, Any]:
    """Return the last TRANSCRIPT_EVENTS entries of a log before a `seq`, for the template.

    `entries` are {event, message?, html?, response?, calls, data} in the order of the log; `older`
    is the `seq` before which there is more, or None.
    """
    events = list(
        ChatEvent.objects.filter(chat=chat, seq__lt=before).order_by("-seq")[
            : TRANSCRIPT_EVENTS + 1
        ]
    )
    more = len(events) > TRANSCRIPT_EVENTS
    events = events[:TRANSCRIPT_EVENTS][::-1]
    seqs = [event.seq for event in events]
    messages = {message.seq: message for message in Message.objects.filter(chat=chat, seq__in=seqs)}
    payloads = without_deleted([(event.type, event.response_id, event.payload) for event in events])
    # The rows of sessions_app are reached through the chat: imports point down.
    responses = {
        response.pk: response
        for response in chat.responses.filter(
            pk__in={event.response_id for event in events if event.response_id}
        )
        .select_related("agent")
        .prefetch_related("tool_calls")
    }
    return {
        "entries": [
            _entry(event, payload, messages.get(event.seq), responses)
            for event, payload in zip(events, payloads, strict=True)
        ],
        "older": seqs[0] if more else None,
        "newest": not seqs or seqs[-1] == chat.last_seq,
    }


def _entry(
    event: ChatEvent, payload: dict[str, Any], message: Message | None, responses: dict[str, Any]
) -> dict[str, Any]:
    response = responses.get(event.response_id)
    return {
        "event": event,
        "message": message,
        "html": mark_safe(markdown.render(message.content)) if message else "",  # noqa: S308 sanitised
        "items": pretty(message.content_items) if message and message.content_items else "",
        "response": response,
        "calls": response.tool_calls.all() if response and event.type in ChatEvent.TERMINAL else (),
        "data": pretty(payload),
    }
