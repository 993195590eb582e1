"""Chats in the admin, with the transcript of their logs.

Operators read history here; they may correct nothing but a title.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import OuterRef
from django.http import Http404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from audit_app.admin.columns import NAME_CHARS, linked, list_link, moment, short, short_id
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.operations import Operation, OperationsAdmin
from audit_app.admin.records import VIEW_CONTENT, RecordInline
from audit_app.record import AuditAction
from chat_app import markdown
from chat_app.admin.history_pages import HistoryAdmin, pretty
from chat_app.admin.log_states import log_state
from chat_app.export import formats
from chat_app.export.log_lines import log_lines
from chat_app.export.pages import pages_for_staff
from chat_app.log.deletions import without_deleted
from chat_app.models import (
    Chat,
    ChatEvent,
    ChatOrigin,
    Message,
    Participant,
    SharedState,
)
from chat_app.rest.messages.export import ExportResponse
from chat_app.rest.paging import SEQ_MAX
from chat_app.row_counts import CountOf

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase
    from django.urls import URLPattern
    from django.utils.safestring import SafeString


TRANSCRIPT_EVENTS: Final = 100
TRANSCRIPT_RIGHTS: Final = ("chat_app.view_chat", "chat_app.view_message", VIEW_CONTENT)


class ParticipantInline(RecordInline):
    """The members of a chat; they join and leave through the chat's log."""

    model = Participant
    fields = ("user", "agent", "role", "trigger", "budget", "joined_at", "left_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Participant]:
        """Fetch the names with the rows."""
        rows: QuerySet[Participant] = super().get_queryset(request)
        return rows.select_related("user", "agent", "chat")


EXPORT_CHAT: Final = Operation(
    name="export",
    label="Export",
    right="chat_app.export_content",
    act=AuditAction.CONTENT_EXPORTED,
    run=lambda chat, _data, _request: f"as NDJSON, up to entry {chat.last_seq}",
    facts=lambda chat: (
        f"All messages of {chat} as they are now, as NDJSON: a line for the chat, one for each"
        " message, one for each entry of the log, and one with the count and SHA-256."
    ),
)


@admin.register(Chat)
class ChatAdmin(OperationsAdmin, HistoryAdmin):
    """Chats: the title may be corrected; the transcript shows the conversation."""

    find_by = ("id__begins",)
    list_display = (
        "name", short_id(), "kind", "members", linked("created_by", "made by"),
        moment("latest_at"), "transcript_link",
    )  # fmt: skip
    list_filter = ("kind", ("latest_at", DateRangeFilter))
    list_select_related = ("created_by",)
    search_fields = ("id__exact", "created_by__username__exact", "title")
    search_help_text = "The id, its creator's name, or a part of the title."
    ordering = ("-latest_at",)
    fields = (
        "id", "title", "description", "avatar", "kind", "payer", "only_owners_pin",
        "agents_quiet", "agent_hops", "budget", "budget_period", "epoch", "last_seq",
        "created_by", "created_at", "latest_at", "deleted_at",
    )  # fmt: skip
    readonly_fields = (
        *(name for name in fields if name != "title"),
        "money",
        "answers",
        "sessions_of_it",
        "messages_of_it",
        "files_of_it",
        "forked_from",
        "forks",
        "log",
    )
    inlines = (ParticipantInline,)
    operations = (EXPORT_CHAT,)

    def rows_with_words(self, text: str, *, limit: int) -> list[tuple[Chat, str]]:
        """Return the chats with a text in their title, among the newest."""
        return [(chat, "") for chat in self.matching(Chat.objects.all(), "title", text)[:limit]]

    def get_list_display(self, request: HttpRequest) -> Any:
        """Show the transcript column only to those who may read transcripts."""
        columns = super().get_list_display(request)
        may_read = request.user.has_perms(TRANSCRIPT_RIGHTS)
        return columns if may_read else [name for name in columns if name != "transcript_link"]

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Return whether a person may correct titles."""
        return request.user.has_perm("chat_app.change_chat")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Chat]:
        """Count the members with the chats."""
        chats: QuerySet[Chat] = super().get_queryset(request)
        there = Participant.objects.filter(chat=OuterRef("pk"), left_at__isnull=True)
        return chats.annotate(member_count=CountOf(there.order_by().values("pk")))

    def get_fields(self, request: HttpRequest, obj: Chat | None = None) -> Any:
        """Show the link to its money to those who may see it."""
        fields = super().get_fields(request, obj)
        sees = request.user.has_perms(["payments_app.view_transfer", "payments_app.view_account"])
        with_links = (
            *fields,
            "messages_of_it",
            "answers",
            "sessions_of_it",
            "files_of_it",
            "forked_from",
            "forks",
            "log",
        )
        return (*with_links, "money") if sees else with_links

    @admin.display(description="log")
    def log(self, chat: Chat) -> SafeString | str:
        """Return whether its log was changed after it was written."""
        return log_state(chat)

    @admin.display(description="sessions")
    def sessions_of_it(self, chat: Chat) -> SafeString:
        """Return a link to the sessions in it."""
        return list_link("sessions_app.session", f"q={chat.pk}", "Sessions")

    @admin.display(description="messages")
    def messages_of_it(self, chat: Chat) -> SafeString:
        """Return a link to its messages."""
        return list_link("chat_app.message", f"q={chat.pk}", "Messages")

    @admin.display(description="files")
    def files_of_it(self, chat: Chat) -> SafeString:
        """Return a link to the files that it shows."""
        return list_link("chat_app.contentuse", f"q={chat.pk}", "Files")

    @admin.display(description="forked from")
    def forked_from(self, chat: Chat) -> SafeString | str:
        """Return a link to its origin, if it is a fork."""
        fork = ChatOrigin.objects.filter(pk=chat.pk).first()
        if fork is None:
            return "-"
        url = reverse("admin:chat_app_chatorigin_change", args=[quote(fork.pk)])
        return format_html('<a href="{}">{}</a>', url, fork.source_title or fork.source_message)

    @admin.display(description="forks")
    def forks(self, chat: Chat) -> SafeString:
        """Return a link to its forks."""
        url = reverse("admin:chat_app_chatorigin_changelist")
        return format_html('<a href="{}?q={}">Forks</a>', url, chat.pk)

    @admin.display(description="money")
    def money(self, chat: Chat) -> SafeString:
        """Return a link to its transfers; the ledger's pages find them by the chat's id."""
        url = reverse("admin:payments_app_transfer_changelist")
        return format_html('<a href="{}?q={}">Transfers</a>', url, chat.pk)

    @admin.display(description="title")
    def name(self, chat: Chat) -> str:
        """Return the beginning of its title."""
        return short(chat.title, NAME_CHARS) or "(no title)"

    @admin.display(description="answers")
    def answers(self, chat: Chat) -> SafeString:
        """Return a link to its answers."""
        return list_link("sessions_app.response", f"q={chat.pk}", "Answers")

    @admin.display(description="members")
    def members(self, chat: Any) -> int:
        """Return the number of current members."""
        count: int = chat.member_count
        return count

    @admin.display(description="transcript")
    def transcript_link(self, chat: Chat) -> SafeString:
        """Return a link to its transcript."""
        url = reverse("admin:chat_app_chat_transcript", args=[chat.pk])
        return format_html('<a href="{}">Transcript</a>', url)

    def row_links(self, request: HttpRequest, row: Chat) -> list[dict[str, str]]:
        """Return links to its timeline and its transcript."""
        links = []
        if request.user.has_perm("sessions_app.view_response"):
            url = reverse("admin:sessions_app_chat_timeline", args=[quote(row.pk)])
            links.append({"label": "Timeline", "url": url})
        if request.user.has_perms(TRANSCRIPT_RIGHTS):
            url = reverse("admin:chat_app_chat_transcript", args=[row.pk])
            links.append({"label": "Transcript", "url": url})
        return links

    def finish_operation(
        self,
        request: HttpRequest,
        operation: Operation,
        row: Any,
        data: dict[str, Any],
        done: str,
    ) -> HttpResponseBase:
        """Send the file of an export."""
        if operation is not EXPORT_CHAT:
            return super().finish_operation(request, operation, row, data, done)
        headers = {"Content-Disposition": f'attachment; filename="{row.pk}.ndjson"'}
        pieces = formats.ndjson(row, pages_for_staff(row), log_lines(row.pk, None))
        return ExportResponse(pieces, content_type="application/x-ndjson", headers=headers)

    def get_urls(self) -> list[URLPattern]:
        """Add the transcript."""
        transcript = path(
            "<str:chat_id>/transcript/",
            self.admin_site.admin_view(self.transcript),
            name="chat_app_chat_transcript",
        )
        return [transcript, *super().get_urls()]

    def transcript(self, request: HttpRequest, chat_id: str) -> HttpResponse:
        """Show a page of a chat's log, newest last; the request is recorded.

        Raises PermissionDenied without the rights to view chats, messages and contents.
        """
        if not request.user.has_perms(TRANSCRIPT_RIGHTS):
            raise PermissionDenied
        chat = Chat.objects.filter(pk=chat_id).first()
        if chat is None:
            raise Http404
        before = request.GET.get("before", "")
        place = f"Read the transcript before {before}." if before else "Read the transcript."
        self.log_act(request, chat, AuditAction.TRANSCRIPT_READ, place)
        return TemplateResponse(
            request,
            "admin/chat_app/chat/transcript.html",
            {
                **self.admin_site.each_context(request),
                **transcript_page(chat, before=_place(before)),
                "opts": self.opts,
                "original": chat,
                "title": f"Transcript of {chat}",
            },
        )


@admin.register(ChatOrigin)
class ChatOriginAdmin(HistoryAdmin):
    """Forked chats: who forked each, and from which message."""

    list_display = ("chat", "source", "source_message", "messages", "forked_by", "forked_at")
    list_select_related = ("chat", "source", "forked_by")
    search_fields = (
        "chat__id__exact",
        "source__id__exact",
        "forked_by__username__exact",
    )
    search_help_text = "The id of either chat, or a person's name."
    ordering = ("-forked_at", "-pk")
    fields = (
        "chat", "source", "source_title", "source_message", "messages", "agents_left_out",
        "forked_by", "forked_at",
    )  # fmt: skip


@admin.register(SharedState)
class SharedStateAdmin(HistoryAdmin):
    """The state that the clients and agents of a chat share."""

    list_display = ("chat", "version")
    list_select_related = ("chat",)
    search_fields = ("chat__id__exact",)
    search_help_text = "The id of a chat."
    ordering = ("-chat",)
    fields = ("chat", "version", "value")
    content_fields = ("value",)


def _place(text: str) -> int:
    return min(int(text), SEQ_MAX) if text.isascii() and text.isdecimal() else SEQ_MAX


def transcript_page(chat: Any, *, before: int) -> dict[str, Any]:
    """Return the last TRANSCRIPT_EVENTS entries of a log before a `seq`, for the template.

    `entries` are {event, message?, html?, response?, calls, data} in log order; `older` is the
    `seq` before which there are more, or None.
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
    # The rows of sessions_app are reached through the chat, because imports point down.
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
