"""The chat domain in the admin: operators look at history here and change none of it.

What is part of a log has no add, change or delete, a list costs the
same number of queries whatever it shows, and search asks indexed columns only.
"""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Final

from django.contrib import admin
from django.contrib.auth.admin import UserAdmin
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied, ValidationError
from django.core.paginator import Paginator
from django.db.models import OuterRef
from django.http import Http404
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.html import format_html
from django.utils.safestring import mark_safe

from chat_app import markdown
from chat_app.contents import contents
from chat_app.models import (
    Chat,
    ChatEvent,
    Content,
    ContentUse,
    Message,
    Participant,
    Presence,
    ReadReceipt,
)
from chat_app.rest.overview import CountOf
from chat_app.rest.paging import SEQ_MAX

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    # Django's classes take type arguments in its stubs only.
    _Admin = admin.ModelAdmin[Any]
    _Inline = admin.TabularInline[Any, Any]
    _Paginator = Paginator[Any]
    _UserAdmin = UserAdmin[User]
else:
    _Admin = admin.ModelAdmin
    _Inline = admin.TabularInline
    _Paginator = Paginator
    _UserAdmin = UserAdmin

TRANSCRIPT_EVENTS: Final = 100
COUNTED_ROWS: Final = 10_000
FILTERED_ROWS: Final = 500
"""Rows that a filter or a search without an index looks at."""


class CappedPaginator(_Paginator):
    """Pages of the first COUNTED_ROWS rows: a longer list is for filters, not for paging."""

    @cached_property
    def count(self) -> int:
        """Return the number of rows, counted up to the cap."""
        rows: Any = self.object_list
        counted: int = rows.order_by().values("pk")[:COUNTED_ROWS].count()
        return counted


class ReadOnly:
    """No add, no change, no delete, for people of any rights; the rows record what happened."""

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:  # noqa: ARG002 the interface's
        """Refuse to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Refuse to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 the interface's
        """Refuse to delete; this also takes `delete_selected` away."""
        return False


class HistoryAdmin(ReadOnly, _Admin):
    """A list of rows that are never changed, the newest first.

    What a search looks for is asked of one column after another: together, and in other tables, no
    index would serve them.
    """

    list_per_page = 50
    show_full_result_count = False
    paginator = CappedPaginator
    ordering: ClassVar[Any] = ("-pk",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Return the rows that one of `search_fields` finds, at most COUNTED_ROWS of each."""
        if not search_term:
            return queryset, False
        found: set[Any] = set()
        for field in self.get_search_fields(request):
            rows: QuerySet[Any] = queryset.model.objects.order_by()
            lookup = field
            if not field.endswith("__exact"):
                # A part of a text is looked for in the newest rows.
                rows = rows.filter(pk__in=newest_keys(queryset.model, self.ordering))
                lookup = f"{field}__icontains"
            try:
                found.update(
                    rows.filter(**{lookup: search_term}).values_list("pk", flat=True)[:COUNTED_ROWS]
                )
            except (ValidationError, ValueError):
                continue  # a column of numbers or UUIDs has no such value
        return queryset.filter(pk__in=found), False


def newest_keys(model: Any, ordering: Sequence[str]) -> list[Any]:
    """Return the keys of the first rows of a list, as values: a subquery would be a full scan."""
    return list(model.objects.order_by(*ordering).values_list("pk", flat=True)[:FILTERED_ROWS])


def pretty(value: Any) -> SafeString:
    """Return JSON as a person reads it."""
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return format_html('<pre class="record">{}</pre>', text)


class ValueFilter(admin.SimpleListFilter):
    """A filter by known values among the newest rows.

    Asking the table which values it has would read all of it, and so would a rare one of a column
    that no index orders.
    """

    values: ClassVar[Sequence[str]]

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:  # noqa: ARG002 the interface's
        """Return the values."""
        self.ordering = model_admin.ordering
        return [(value, value) for value in self.values]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:  # noqa: ARG002 the interface's
        """Return the rows that have the chosen value."""
        value = self.value()
        if not value:
            return queryset
        newest = newest_keys(queryset.model, self.ordering)
        return queryset.filter(pk__in=newest, **{str(self.parameter_name): value})


class RoleFilter(ValueFilter):
    """The role of the sender (UAMP §8.5)."""

    title = "role, of the newest"
    parameter_name = "role"
    values = ("user", "assistant", "system", "tool")


class MessageStatusFilter(ValueFilter):
    """How a text came to its end."""

    title = "status, of the newest"
    parameter_name = "status"
    values = tuple(Message.Status.values)


class EventTypeFilter(ValueFilter):
    """What is kept in a log."""

    title = "type, of the newest"
    parameter_name = "type"
    values = (
        "message.created",
        "message.read",
        "participant.joined",
        "participant.left",
        "response.created",
        "tool.call_done",
        *ChatEvent.TERMINAL,
    )


class ParticipantInline(ReadOnly, _Inline):
    """The members of a chat; they come and go through the chat's log."""

    model = Participant
    fields = ("user", "agent", "role", "trigger", "joined_at", "left_at")
    extra = 0

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
        "id", "title", "kind", "payer", "epoch", "last_seq", "created_by", "created_at",
        "latest_at",
    )  # fmt: skip
    readonly_fields = (*(name for name in fields if name != "title"), "money")
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
        return (*fields, "money") if sees else fields

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
        "entries": [_entry(event, messages.get(event.seq), responses) for event in events],
        "older": seqs[0] if more else None,
        "newest": not seqs or seqs[-1] == chat.last_seq,
    }


def _entry(event: ChatEvent, message: Message | None, responses: dict[str, Any]) -> dict[str, Any]:
    response = responses.get(event.response_id)
    return {
        "event": event,
        "message": message,
        "html": mark_safe(markdown.render(message.content)) if message else "",  # noqa: S308 sanitised
        "items": pretty(message.content_items) if message and message.content_items else "",
        "response": response,
        "calls": response.tool_calls.all() if response and event.type in ChatEvent.TERMINAL else (),
        "data": pretty(event.payload),
    }


@admin.register(Message)
class MessageAdmin(HistoryAdmin):
    """Messages, chat by chat."""

    list_display = ("seq", "chat", "name", "role", "beginning", "status", "created_at")
    list_display_links = ("seq", "beginning")
    list_filter = (RoleFilter, MessageStatusFilter)
    list_select_related = ("chat",)
    search_fields = ("id__exact", "chat__id__exact", "response_id__exact")
    search_help_text = "The id of a message, a chat or a response."
    ordering = ("-chat", "-seq")  # in the order of their index
    fields = (
        "id", "chat", "seq", "role", "sender_user", "sender_agent", "name", "body", "items",
        "response_id", "status", "created_at",
    )  # fmt: skip
    readonly_fields = ("body", "items")

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
        """Return the event as it goes over the wire."""
        return pretty(row.payload)


@admin.register(Participant)
class ParticipantAdmin(HistoryAdmin):
    """The members of chats."""

    list_display = ("chat", "user", "agent", "role", "trigger", "joined_at", "left_at")
    list_filter = ("role", "trigger")
    list_select_related = ("chat", "user", "agent")
    search_fields = ("chat__id__exact", "user__username__exact")
    search_help_text = "The id of a chat, or a person's name."


@admin.register(Content)
class ContentAdmin(HistoryAdmin):
    """Stored files; their bytes are read through the address that checks the reader."""

    list_display = ("__str__", "mime_type", "size_bytes", "owner", "created_at")
    list_filter = ("created_at",)
    list_select_related = ("owner",)
    search_fields = ("id__exact", "sha256__exact", "owner__username__exact")
    search_help_text = "The id, the SHA-256, or the owner's name."
    ordering = ("-created_at",)
    fields = (
        "id", "filename", "mime_type", "size_bytes", "sha256", "owner", "owner_key", "created_at",
        "file",
    )  # fmt: skip
    readonly_fields = ("file",)

    @admin.display(description="file")
    def file(self, content: Content) -> SafeString:
        """Return the way to the bytes, which works for 15 minutes."""
        return format_html('<a href="{}">Open</a>', contents.signed_url(content.pk))


@admin.register(ContentUse)
class ContentUseAdmin(HistoryAdmin):
    """In which chats a content is shown."""

    list_display = ("content", "chat")
    list_select_related = ("content", "chat")
    search_fields = ("chat__id__exact", "content__id__exact")
    search_help_text = "The id of a chat or a content."


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
