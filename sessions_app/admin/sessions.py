"""Sessions, responses, tool calls and keys in the admin.

Rows are shown and not changed. What an operator may do (end a session, cancel a response, make and
revoke a key) goes through the services that people and programs use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.template.response import TemplateResponse
from django.utils import timezone

from agents_app.admin.records import RecordInline
from chat_app.admin.history_pages import HistoryAdmin, pretty
from sessions_app import session_states
from sessions_app.admin.money import PaymentRequestInline, cost_line, ledger_link, sees_money
from sessions_app.models import (
    ApiKey,
    HttpConnection,
    InboundEvent,
    PendingInput,
    Response,
    Session,
    Ticket,
    ToolCall,
    UnansweredRequest,
)
from sessions_app.store.responses import request_cancel

if TYPE_CHECKING:
    from django.db.models import QuerySet
    from django.http import HttpRequest, HttpResponse
    from django.utils.safestring import SafeString

    # Django's classes take type arguments in its stubs only.
    _Form = forms.ModelForm[ApiKey]
else:
    _Form = forms.ModelForm

END_REASON = "ended by an operator"


@admin.register(Session)
class SessionAdmin(HistoryAdmin):
    """UAMP sessions (§8.8); an operator may end them."""

    list_display = ("id", "user", "agent", "chat", "transport", "status", "created_at", "closed_at")
    list_filter = ("status", "transport", "agent")
    list_select_related = ("user", "agent", "chat")
    search_fields = (
        "id__exact",
        "client_id__exact",
        "user__username__exact",
        "principal__exact",
        "chat__id__exact",
    )
    search_help_text = "The id of a session or chat, a person's name, or a principal."
    ordering = ("-created_at",)
    fields = (
        "id", "client_id", "user", "principal", "api_key", "agent", "chat", "chat_scoped", "status",
        "transport", "uamp_version", "configuration", "capabilities", "created_at", "closed_at",
        "close_reason",
    )  # fmt: skip
    readonly_fields = ("configuration", "capabilities", "money")
    actions = ("end_sessions",)

    def get_fields(self, request: HttpRequest, obj: Session | None = None) -> Any:
        """Add the link to its chat's money for staff who may see the ledger."""
        fields = super().get_fields(request, obj)
        return (*fields, "money") if sees_money(request) else fields

    @admin.display(description="money of its chat")
    def money(self, session: Session) -> SafeString:
        """Return a link to the transfers of its chat."""
        return ledger_link("transfer", "Transfers", session.chat_id)

    @admin.display(description="configuration")
    def configuration(self, session: Session) -> SafeString:
        """Return what the client configured."""
        return pretty(session.config)

    @admin.display(description="client capabilities")
    def capabilities(self, session: Session) -> SafeString:
        """Return the capabilities that the client declared."""
        return pretty(session.client_capabilities)

    def has_end_session_permission(self, request: HttpRequest) -> bool:
        """Return whether a person may end sessions of others."""
        return request.user.has_perm("sessions_app.end_session")

    @admin.action(description="End the selected sessions", permissions=["end_session"])
    def end_sessions(self, request: HttpRequest, sessions: QuerySet[Session]) -> None:
        """End sessions that are open; their responses go on."""
        ended = [
            session
            for session in sessions.filter(status__in=Session.OPEN)
            if session_states.close_session(session.pk, reason=END_REASON)
        ]
        for session in ended:
            self.log_change(request, session, "Ended the session.")
        self.message_user(request, f"Ended {len(ended)} sessions.", messages.SUCCESS)


class ToolCallInline(RecordInline):
    """The tool calls of a response."""

    model = ToolCall
    fields = ("name", "call_id", "kind", "status", "arguments", "result", "finished_at")
    show_change_link = True


@admin.register(Response)
class ResponseAdmin(HistoryAdmin):
    """Answers of agents; one that runs may be cancelled."""

    list_display = (
        "id", "agent", "chat", "status", "transport", "tokens", "error_code", "created_at",
        "finished_at",
    )  # fmt: skip
    list_filter = ("status", "agent")
    list_select_related = ("agent", "chat", "session")
    search_fields = ("id__exact", "chat__id__exact", "session__id__exact")
    search_help_text = "The id of a response, a chat or a session."
    ordering = ("-created_at",)
    fields = (
        "id", "chat", "session", "agent", "message", "status", "transport", "configuration", "text",
        "answer", "usage_facts", "failure", "process", "fence", "lease_until",
        "cancel_requested_at", "cancel_requested_by", "created_at", "finished_at",
    )  # fmt: skip
    readonly_fields = ("transport", "configuration", "answer", "usage_facts", "failure", "money")
    inlines = (ToolCallInline, PaymentRequestInline)
    actions = ("cancel_responses",)

    def get_fields(self, request: HttpRequest, obj: Response | None = None) -> Any:
        """Add the link to its money for staff who may see the ledger."""
        fields = super().get_fields(request, obj)
        return (*fields, "money") if sees_money(request) else fields

    @admin.display(description="transport")
    def transport(self, response: Response) -> str:
        """Return how its session was opened."""
        return response.session.get_transport_display() if response.session else ""

    @admin.display(description="money")
    def money(self, response: Response) -> SafeString:
        """Return its cost, with links to its transfers and holds."""
        return cost_line(response.pk)

    @admin.display(description="tokens")
    def tokens(self, response: Response) -> str:
        """Return how many tokens went in and out."""
        usage = response.usage or {}
        total = usage.get("total_tokens")
        return "-" if total is None else str(total)

    @admin.display(description="error")
    def error_code(self, response: Response) -> str:
        """Return why it failed."""
        return str((response.error or {}).get("code", "-"))

    @admin.display(description="request")
    def configuration(self, response: Response) -> SafeString:
        """Return what it overrides of its session."""
        return pretty(response.request)

    @admin.display(description="output")
    def answer(self, response: Response) -> SafeString:
        """Return the output items."""
        return pretty(response.output)

    @admin.display(description="usage")
    def usage_facts(self, response: Response) -> SafeString:
        """Return what it used."""
        return pretty(response.usage)

    @admin.display(description="error")
    def failure(self, response: Response) -> SafeString:
        """Return the error whole."""
        return pretty(response.error)

    def has_cancel_response_permission(self, request: HttpRequest) -> bool:
        """Return whether a person may stop answers of others."""
        return request.user.has_perm("sessions_app.change_response")

    @admin.action(description="Cancel the selected responses", permissions=["cancel_response"])
    def cancel_responses(self, request: HttpRequest, responses: QuerySet[Response]) -> None:
        """Request the cancel of running responses."""
        running = list(responses.filter(status__in=Response.LIVE))
        for response in running:
            request_cancel(response.pk, request.user.pk)
            self.log_change(request, response, "Asked to cancel the response.")
        self.message_user(request, f"Asked to cancel {len(running)} responses.", messages.SUCCESS)


@admin.register(ToolCall)
class ToolCallAdmin(HistoryAdmin):
    """Tool calls, with how far they are."""

    list_display = ("name", "call_id", "kind", "status", "response", "attempts", "created_at")
    list_filter = ("status", "kind")
    list_select_related = ("response",)
    search_fields = ("response__id__exact",)
    search_help_text = "The id of a response."


@admin.register(PendingInput)
class PendingInputAdmin(HistoryAdmin):
    """Inputs that came over HTTP and wait for their response.create."""

    list_display = ("session", "event_id", "created_at")
    list_select_related = ("session",)
    search_fields = ("session__id__exact",)
    search_help_text = "The id of a session."


@admin.register(InboundEvent)
class InboundEventAdmin(HistoryAdmin):
    """What each event of a client led to."""

    list_display = ("session", "event_id", "created_at")
    list_select_related = ("session",)
    search_fields = ("session__id__exact",)
    search_help_text = "The id of a session."


@admin.register(Ticket)
class TicketAdmin(HistoryAdmin):
    """One-time tickets that wait to be used, and client secrets."""

    list_display = ("user", "kind", "agent", "api_key", "expires_at")
    list_select_related = ("user", "api_key")
    fields = ("user", "kind", "agent", "api_key", "expires_at")
    search_fields = ("user__username__exact",)
    search_help_text = "The owner's name."
    ordering = ("-expires_at",)


@admin.register(HttpConnection)
class HttpConnectionAdmin(HistoryAdmin):
    """Connections over several HTTP requests; the id is a visitor's credential."""

    list_display = ("principal", "transport", "agent", "created_at", "seen_at")
    list_filter = ("transport",)
    fields = ("principal", "transport", "agent", "created_at", "seen_at")
    search_fields = ("principal__exact",)
    search_help_text = "A principal, such as user:1."
    ordering = ("-seen_at",)


@admin.register(UnansweredRequest)
class UnansweredRequestAdmin(HistoryAdmin):
    """Requests whose answers wait for a stream of their connection."""

    list_display = ("connection", "request_id", "session", "response_id", "created_at")
    list_select_related = ("connection", "session")
    fields = ("connection", "request_id", "session", "response_id", "created_at")
    search_fields = ("session__id__exact",)
    search_help_text = "The id of a session."


class ApiKeyForm(_Form):
    """A new key: whose it is, what for, and until when."""

    class Meta:
        """The secret part is made, not written."""

        model = ApiKey
        fields: ClassVar = ["user", "name", "expires_at"]


@admin.register(ApiKey)
class ApiKeyAdmin(HistoryAdmin):
    """Keys of programs: the prefix is shown, the secret once, right after it is made."""

    form = ApiKeyForm
    list_display = (
        "prefix", "user", "name", "created_at", "used_at", "expires_at", "revoked_at",
    )  # fmt: skip
    list_filter = ("revoked_at", "expires_at", "used_at")
    list_select_related = ("user",)
    search_fields = ("prefix__exact", "user__username__exact")
    search_help_text = "The prefix, or the owner's name."
    fields = (
        "prefix", "user", "name", "created_at", "used_at", "expires_at", "revoked_at",
    )  # fmt: skip
    raw_id_fields = ("user",)
    actions = ("revoke",)

    def has_add_permission(self, request: HttpRequest, *_args: Any) -> bool:
        """Return whether a person may make keys."""
        return request.user.has_perm("sessions_app.add_apikey")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        """Return whether a person may revoke keys."""
        return request.user.has_perm("sessions_app.change_apikey")

    def get_fields(self, request: HttpRequest, obj: ApiKey | None = None) -> Any:
        """Ask a new key only for what a person decides."""
        return super().get_fields(request, obj) if obj else ApiKeyForm.Meta.fields

    def save_model(self, request: HttpRequest, obj: ApiKey, form: Any, change: Any) -> None:
        """Make the secret and keep its hash."""
        secret = ApiKey.make_secret()
        obj.prefix, obj.sha256 = ApiKey.split_secret(secret)
        super().save_model(request, obj, form, change)
        obj.secret = secret  # type: ignore[attr-defined]  # for response_add, which shows it

    def response_add(
        self,
        request: HttpRequest,
        obj: Any,
        post_url_continue: str | None = None,  # noqa: ARG002 the interface's
    ) -> HttpResponse:
        """Show the secret in the answer itself: a message would keep it in a cookie."""
        return TemplateResponse(
            request,
            "admin/sessions_app/apikey/created.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "original": obj,
                "secret": obj.secret,
                "title": "The new key",
            },
        )

    @admin.action(description="Revoke the selected keys", permissions=["revoke"])
    def revoke(self, request: HttpRequest, keys: QuerySet[ApiKey]) -> None:
        """Revoke keys; a key that was revoked before keeps its time."""
        good = list(keys.filter(revoked_at__isnull=True))
        ApiKey.objects.filter(pk__in=[key.pk for key in good]).update(revoked_at=timezone.now())
        for key in good:
            self.log_change(request, key, "Revoked the key.")
        self.message_user(request, f"Revoked {len(good)} keys.", messages.SUCCESS)
