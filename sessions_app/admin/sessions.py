"""Sessions, responses and tool calls in the admin.

Rows are displayed but not edited. Operators' actions (end a session, cancel a response, rerun a
tool call) go through the services that people and programs use.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.db.models import BooleanField, ExpressionWrapper
from django.utils import timezone
from django.utils.html import format_html

from audit_app.admin.column_search import FILTERED_ROWS
from audit_app.admin.columns import (
    badge,
    id_link,
    linked,
    list_buttons,
    list_link,
    moment,
    row_link,
    short,
    short_id,
)
from audit_app.admin.filters import DateRangeFilter
from audit_app.admin.operations import OperationsAdmin
from audit_app.admin.records import RecordInline
from chat_app.admin.history_pages import HistoryAdmin, pretty
from sessions_app import session_states
from sessions_app.admin.filters import (
    AgentFilter,
    OpenFilter,
    StuckAnswerFilter,
    StuckCallFilter,
    UnclaimedCallFilter,
)
from sessions_app.admin.money import PaymentRequestInline, cost_line, ledger_link, sees_money
from sessions_app.admin.operations import (
    CANCEL_RESPONSE,
    CANCEL_TOOL,
    END_SESSION,
    REFUND_ANSWER,
    REQUEUE_TOOL,
)
from sessions_app.admin.timeline.links import link_to_chat, link_to_response
from sessions_app.admin.timeline.pages import TimelinePages
from sessions_app.models import (
    ApiKey,
    Response,
    Session,
    ToolCall,
)
from sessions_app.reporting.figures import LOST_LEASE_SECONDS
from sessions_app.selectors import parked_responses
from sessions_app.states import ToolCallState
from uamp import ResponseState, SessionState

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest
    from django.urls import URLPattern
    from django.utils.safestring import SafeString

    # Django's classes accept type arguments only in the stubs.
    _Form = forms.ModelForm[ApiKey]
else:
    _Form = forms.ModelForm

MINUTE = 60
CAUSE_CHARS = 200
_TONES = {
    "completed": "good",
    "done": "good",
    "failed": "bad",
    "unknown": "bad",
    "cancelled": "quiet",
    "queued": "quiet",
}


@admin.register(Session)
class SessionAdmin(OperationsAdmin, HistoryAdmin):
    """UAMP sessions (§8.8), which operators may end."""

    find_by = ("id__begins",)
    list_display = (
        short_id(), linked("user"), linked("agent"), linked("chat"), "transport", "state",
        moment("created_at"),
    )  # fmt: skip
    list_filter = ("status", "transport", AgentFilter, ("created_at", DateRangeFilter))
    list_select_related = ("user", "agent", "chat")
    search_fields = (
        "id__exact",
        "client_id__exact",
        "user__username__exact",
        "api_key__prefix__exact",
        "principal__exact",
        "chat__id__exact",
    )
    filled_only = ("client_id",)
    search_help_text = (
        "The id of a session or chat, a person's name, the prefix of a key, or a principal."
    )
    ordering = ("-created_at",)
    fields = (
        "id", "client_id", "user", "principal", "api_key", "agent", "chat", "chat_scoped", "status",
        "transport", "uamp_version", "configuration", "capabilities", "created_at", "closed_at",
        "close_reason",
    )  # fmt: skip
    readonly_fields = ("configuration", "capabilities", "money")
    content_fields = ("configuration",)
    operations = (END_SESSION,)

    def row_links(self, request: HttpRequest, row: Session) -> list[dict[str, str]]:
        """Return links to its chat's timeline and to its answers."""
        answers = ("sessions_app.response", "Answers", {"q": row.pk})
        return [link_to_chat(row.chat_id), *list_buttons(request, answers)]

    @admin.display(description="state")
    def state(self, session: Session) -> SafeString:
        """Return whether a connection holds it; `status` is swept only every minute."""
        lost = timezone.now() - timedelta(seconds=session_states.LET_GO_SECONDS)
        if session.status == SessionState.CLOSED:
            return badge("closed", "quiet")
        if session.status == SessionState.IDLE or session.seen_at < lost:
            return badge("not connected", "quiet")
        return badge("connected", "good")

    def get_fields(self, request: HttpRequest, obj: Session | None = None) -> Any:
        """Add a link to its chat's money for staff with access to the ledger."""
        fields = super().get_fields(request, obj)
        return (*fields, "money") if sees_money(request) else fields

    @admin.display(description="money of its chat")
    def money(self, session: Session) -> SafeString:
        """Return a link to its chat's transfers."""
        return ledger_link("transfer", "Transfers", session.chat_id)

    @admin.display(description="configuration")
    def configuration(self, session: Session) -> SafeString:
        """Return the client's configuration."""
        return pretty(session.config)

    @admin.display(description="client capabilities")
    def capabilities(self, session: Session) -> SafeString:
        """Return the capabilities declared by the client."""
        return pretty(session.client_capabilities)


def cause_of_call(call: ToolCall) -> str:
    """Return the kind of a call's failure, which holds no words of people or tools."""
    if not call.is_error or call.status == ToolCallState.CANCELLED:
        return ""
    return call.cause or "not recorded"


class ToolCallInline(RecordInline):
    """The tool calls of a response."""

    model = ToolCall
    fields = (
        "name", "call_id", "kind", "status", "failure", "arguments", "result", "finished_at",
    )  # fmt: skip
    readonly_fields = ("failure",)
    content_fields = ("arguments", "result")
    show_change_link = True

    @admin.display(description="cause")
    def failure(self, call: ToolCall) -> str:
        """Return the kind of its failure."""
        return cause_of_call(call) or "-"


@admin.register(Response)
class ResponseAdmin(OperationsAdmin, HistoryAdmin):
    """Answers of agents; running ones can be cancelled."""

    find_by = ("id__begins",)
    list_display = (
        short_id(), "asked_by", linked("agent"), linked("chat"), "state", moment("created_at"),
        "took",
    )  # fmt: skip
    list_filter = ("status", StuckAnswerFilter, AgentFilter, ("created_at", DateRangeFilter))
    list_select_related = ("agent", "chat", "session__user")
    search_fields = (
        "id__exact",
        "chat__id__exact",
        "session__id__exact",
        "session__user__username__exact",
    )
    search_help_text = "The id of an answer, chat or session, or the name of the person who asked."
    ordering = ("-created_at",)
    fields = (
        "id", "status", "failure", "cause", "asked_by", "agent", "chat", "session", "message",
        "messages_of_it", "created_at", "finished_at", "took", "money", "usage_facts",
        "transport", "text", "answer", "configuration", "process", "fence", "lease_until",
        "cancel_requested_at", "cancel_requested_by",
    )  # fmt: skip
    readonly_fields = (
        "transport", "configuration", "answer", "usage_facts", "failure", "cause", "money",
        "messages_of_it", "asked_by", "took",
    )  # fmt: skip
    content_fields = ("configuration", "text", "answer")
    inlines = (ToolCallInline, PaymentRequestInline)
    operations = (CANCEL_RESPONSE, REFUND_ANSWER)

    def rows_with_words(self, text: str, *, limit: int) -> list[tuple[Response, str]]:
        """Return answers with a text in their cause or among their requests' ids, and the cause.

        They are looked for among the newest failed answers, and among the newest.
        """
        newest = Response.objects.order_by("-created_at", "-id").values_list("pk", flat=True)
        failed = newest.filter(status=ResponseState.FAILED)
        rows = Response.objects.select_related("agent").order_by("-created_at", "-id")
        by_pk: dict[str, Response] = {}
        for keys, column in ((failed, "error_cause"), (newest, "inferences")):
            condition = {f"{column}__icontains": text, "pk__in": list(keys[:FILTERED_ROWS])}
            by_pk |= {row.pk: row for row in rows.filter(**condition)[:limit]}
        return [(row, row.error_cause or "") for row in list(by_pk.values())[:limit]]

    def row_links(self, request: HttpRequest, row: Response) -> list[dict[str, str]]:
        """Return a link to its timeline."""
        del request
        return [link_to_response(row.pk)]

    def get_fields(self, request: HttpRequest, obj: Response | None = None) -> Any:
        """Add its money for staff with access to the ledger; leave out an empty error."""
        fields = super().get_fields(request, obj)
        if obj is not None and obj.error is None:
            fields = [name for name in fields if name not in {"failure", "cause"}]
        return fields if sees_money(request) else [name for name in fields if name != "money"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Response]:
        """Read with the answers whether they need no process now."""
        rows: QuerySet[Response] = super().get_queryset(request)
        return rows.annotate(is_parked=ExpressionWrapper(parked_responses(), BooleanField()))

    def get_urls(self) -> list[URLPattern]:
        """Add the timelines of chats and responses."""
        return [*TimelinePages(self.admin_site).urls(), *super().get_urls()]

    @admin.display(description="state")
    def state(self, response: Any) -> SafeString:
        """Return its state, including whether its process has died."""
        lost = timezone.now() - timedelta(seconds=LOST_LEASE_SECONDS)
        is_lost = response.lease_until and response.lease_until < lost
        if response.finished_at is None and is_lost and not response.is_parked:
            return badge("no process", "bad")
        state = badge(response.status.replace("_", " "), _TONES.get(response.status, "busy"))
        if response.error is None:
            return state
        cause = response.error_cause or str(response.error.get("message", ""))
        return format_html(
            '{} {}<span class="cause" title="{}">{}</span>',
            state,
            response.error.get("code", ""),
            cause,
            short(cause, CAUSE_CHARS),
        )

    @admin.display(description="asked by")
    def asked_by(self, response: Response) -> SafeString | str:
        """Return a link to the person whose session asked for it."""
        user = response.session.user if response.session else None
        return "-" if user is None else row_link("auth.user", user.pk, user.username)

    @admin.display(description="took")
    def took(self, response: Response) -> str:
        """Return its duration so far or in total, and its tokens."""
        seconds = ((response.finished_at or timezone.now()) - response.created_at).total_seconds()
        time = f"{seconds:.1f} s" if seconds < MINUTE else str(timedelta(seconds=int(seconds)))
        total = (response.usage or {}).get("total_tokens")
        return time if total is None else f"{time}, {total:,} tokens"

    @admin.display(description="its messages")
    def messages_of_it(self, response: Response) -> SafeString:
        """Return a link to the messages that it wrote."""
        return list_link("chat_app.message", f"q={response.pk}", "Messages")

    @admin.display(description="transport")
    def transport(self, response: Response) -> str:
        """Return the transport that opened its session."""
        return response.session.get_transport_display() if response.session else ""

    @admin.display(description="money")
    def money(self, response: Response) -> SafeString:
        """Return its cost, with links to its transfers and holds."""
        return cost_line(response.pk)

    @admin.display(description="request")
    def configuration(self, response: Response) -> SafeString:
        """Return its overrides of the session."""
        return pretty(response.request)

    @admin.display(description="output")
    def answer(self, response: Response) -> SafeString:
        """Return the output items."""
        return pretty(response.output)

    @admin.display(description="usage")
    def usage_facts(self, response: Response) -> SafeString:
        """Return its usage."""
        return pretty(response.usage)

    @admin.display(description="error")
    def failure(self, response: Response) -> str:
        """Return the error as the person saw it."""
        error = response.error or {}
        return f"{error.get('code', 'unknown')}: {error.get('message', '')}"

    @admin.display(description="cause")
    def cause(self, response: Response) -> SafeString | str:
        """Return the provider's own words, of each attempt."""
        if not response.error_cause:
            return "Not recorded."
        return format_html('<pre class="record">{}</pre>', response.error_cause)


@admin.register(ToolCall)
class ToolCallAdmin(OperationsAdmin, HistoryAdmin):
    """Tool calls and their progress."""

    find_by = ("call_id__begins",)
    list_display = (
        "name", short_id("call_id", "call"), linked("response", "answer"), "state",
        "attempts", moment("created_at"), moment("finished_at"),
    )  # fmt: skip
    list_filter = ("status", OpenFilter, StuckCallFilter, UnclaimedCallFilter, "kind")
    list_select_related = ("response",)
    search_fields = ("call_id__exact", "response__id__exact")
    search_help_text = "The id of a call or an answer."
    readonly_fields = ("asked_in_chat", "failure")
    fields = (
        "name", "call_id", "response", "kind", "status", "failure", "arguments", "result",
        "is_error", "content_items", "progress", "attempts", "lease_until", "deadline",
        "asked_in_chat", "decided_by", "decided_at", "created_at", "finished_at",
    )  # fmt: skip
    content_fields = ("arguments", "result", "content_items", "progress")
    operations = (REQUEUE_TOOL, CANCEL_TOOL)

    def row_links(self, request: HttpRequest, row: ToolCall) -> list[dict[str, str]]:
        """Return a link to its response's timeline."""
        del request
        return [link_to_response(row.response_id)]

    asked_in_chat = staticmethod(id_link("asked_in", "chat_app.chat", "approval asked in"))

    @admin.display(description="state")
    def state(self, call: ToolCall) -> SafeString:
        """Return its state, including whether its worker has died or it is overdue."""
        lost = timezone.now() - timedelta(seconds=LOST_LEASE_SECONDS)
        over = call.deadline < lost or (call.lease_until is not None and call.lease_until < lost)
        if call.finished_at is None and over:
            return badge("overdue", "bad")
        state = badge(call.get_status_display(), _TONES.get(call.status, "busy"))
        cause = cause_of_call(call)
        return format_html('{} <span class="cause">{}</span>', state, cause) if cause else state

    @admin.display(description="cause")
    def failure(self, call: ToolCall) -> str:
        """Return the kind of its failure."""
        return cause_of_call(call) or "-"
