"""Connected daemons in the admin, which operators disconnect: one, or all of an agent's.

The confirmation says what becomes of running answers, and how to keep a daemon from connecting
again. People who may see agents see the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.db import transaction
from django.db.models import OuterRef, Subquery
from django.http import HttpResponseRedirect
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.http import urlencode

from agents_app import connections
from agents_app.admin.agents import program_of
from agents_app.models import AgentConnection
from audit_app.admin.columns import badge, linked, list_link, moment, row_link
from audit_app.admin.operations import Operation, OperationsAdmin
from audit_app.admin.records import RecordAdmin, record_request
from audit_app.record import AuditAction
from sessions_app.access import keys
from sessions_app.connected.disconnecting import disconnect
from sessions_app.models import ApiKey

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.db.models import Model, QuerySet
    from django.http import HttpRequest
    from django.http.response import HttpResponseBase
    from django.utils.safestring import SafeString

    from agents_app.models import Agent

RIGHT: Final = "agents_app.change_agent"
KEYS: Final = 10
"""The most keys that a confirmation lists."""


def _open(agent: Agent) -> list[AgentConnection]:
    """Return an agent's connections that are not being ended, oldest first."""
    return list(agent.connections.filter(disconnect_requested_at=None).order_by("pk"))


def _newest(agent: Agent) -> str:
    """Return the newest connection, so that a form sent again spares daemons that came later."""
    return str(max((row.pk for row in _open(agent)), default=""))


def _disconnect_agent(agent: Agent, data: dict[str, Any], request: HttpRequest) -> str:
    del request
    newest = int(data["seen"]) if data["seen"].isdecimal() else 0
    count = disconnect([row.pk for row in _open(agent) if row.pk <= newest])
    return "" if not count else "1 daemon" if count == 1 else f"{count} daemons"


def _agent_facts(agent: Agent) -> SafeString | str:
    return _facts(agent, _open(agent))


def _disconnect_daemon(row: AgentConnection, data: dict[str, Any], request: HttpRequest) -> str:
    since = f"{row.connected_at:%Y-%m-%d %H:%M:%S} UTC"
    done = f"the daemon that was connected since {since} to {row.process_id}"
    with transaction.atomic():
        if not disconnect([row.pk]):
            return ""
        # The row is deleted when the connection ends, and the agent remains.
        record_request(
            request,
            AuditAction.DAEMON_DISCONNECTED,
            row.agent,
            reason=data["reason"],
            detail=f"Disconnect: {done}" + (f", from {row.address}" if row.address else ""),
        )
    return done


def _facts(agent: Agent, rows: Sequence[AgentConnection]) -> SafeString | str:
    if not rows:
        return f"No daemon of {agent.name} is connected."
    return format_html(
        "Disconnects {} of {} and closes sockets on which no other agent is registered. {} {}",
        "1 daemon" if len(rows) == 1 else f"{len(rows)} daemons",
        agent.name,
        _about_answers(agent, sum(row.answers for row in rows)),
        _about_coming_back(agent),
    )


def _about_answers(agent: Agent, count: int) -> str:
    if not count:
        return "No answer is running."
    running = "1 answer is running." if count == 1 else f"{count:,} answers are running."
    ends = "will end as interrupted; its text is kept, and what it delivered is charged."
    if agent.options.get("starts_over") is False:
        return f"{running} Each {ends}"
    return (
        f"{running} One that has begun {ends} One that has not begun moves to another daemon of the"
        " agent, or ends as offline if there is none."
    )


def _about_coming_back(agent: Agent) -> SafeString | str:
    if not agent.is_enabled:
        return "The agent is disabled, so no daemon can connect."
    able = _keys_of(agent)
    disable = reverse("admin:agents_app_agent_operate", args=[quote(agent.pk), "disable"])
    if not able:
        return format_html(
            "Its owner has no valid connect token for it. To be sure that no daemon connects again,"
            ' <a href="{}">disable the agent</a>.',
            disable,
        )
    revoke = "admin:sessions_app_apikey_operate"
    links = (
        (reverse(revoke, args=[quote(key.pk), "revoke"]), f"{key.prefix}…") for key in able[:KEYS]
    )
    return format_html(
        "A daemon with a valid connect token will connect again within seconds, unless you revoke"
        ' the token ({}{}) or <a href="{}">disable the agent</a>.',
        format_html_join(", ", '<a href="{}">{}</a>', links),
        _more(able[KEYS:]),
        disable,
    )


def _more(others: Sequence[ApiKey]) -> SafeString | str:
    if not others:
        return ""
    query = urlencode({"q": others[0].user.username})
    return format_html(" and {}", list_link("sessions_app.apikey", query, f"{len(others)} more"))


def _keys_of(agent: Agent) -> list[ApiKey]:
    """Return the keys of an agent's owner with which a daemon can register it."""
    owner_keys = keys.keys_of(agent.owner_id) if agent.owner_id is not None else []
    return [
        key
        for key in owner_keys
        if agent.pk in (key.agents or ()) and key.rights.has(connections.CONNECT)
    ]


DISCONNECT_AGENT: Final = Operation(
    name="disconnect",
    label="Disconnect",
    right=RIGHT,
    act=AuditAction.DAEMON_DISCONNECTED,
    run=_disconnect_agent,
    facts=_agent_facts,
    is_available=lambda agent: bool(_open(agent)),
    seen=_newest,
    in_list=True,
)

DISCONNECT_DAEMON: Final = Operation(
    name="disconnect",
    label="Disconnect",
    right=RIGHT,
    act=None,
    run=_disconnect_daemon,
    facts=lambda row: _facts(row.agent, [row]),
    is_available=lambda row: row.disconnect_requested_at is None,
    in_list=True,
)


@admin.register(AgentConnection)
class AgentConnectionAdmin(OperationsAdmin, RecordAdmin):
    """The agents that daemons have registered, by socket."""

    list_display = (
        moment("connected_at"), linked("agent"), "owner", "address", "token", "program", "state",
    )  # fmt: skip
    list_select_related = ("agent__owner",)
    fields = (
        "agent", "owner", "address", "token", "program", "connected_at", "state", "process_id",
        "disconnect_requested_at",
    )  # fmt: skip
    readonly_fields = ("owner", "token", "program", "state")
    operations = (DISCONNECT_DAEMON,)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:  # noqa: ARG002 required by the interface
        """Return whether a person may see agents."""
        return request.user.has_perm("agents_app.view_agent")

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Return the same."""
        return self.has_view_permission(request)

    def get_queryset(self, request: HttpRequest) -> QuerySet[AgentConnection]:
        """Read the prefixes of the keys with the connections."""
        prefix = ApiKey.objects.filter(pk=OuterRef("api_key_id")).values("prefix")[:1]
        rows: QuerySet[AgentConnection] = super().get_queryset(request)
        return rows.annotate(prefix=Subquery(prefix))

    def operate_view(self, request: HttpRequest, object_id: str, name: str) -> HttpResponseBase:
        """Disconnect a daemon; a form sent after it has gone does nothing."""
        if request.method == "POST" and self.get_object(request, unquote(object_id)) is None:
            operation = self._operation(request, name)
            text = f"{operation.label}: there was nothing left to do."
            self.message_user(request, text, messages.INFO)
            return HttpResponseRedirect(reverse("admin:agents_app_agentconnection_changelist"))
        return super().operate_view(request, object_id, name)

    def _page_of(self, row: Model) -> str:
        """Return the page of the agent, because the row is about to be deleted."""
        agent_id = getattr(row, "agent_id")  # noqa: B009 the base knows no fields
        return reverse("admin:agents_app_agent_change", args=[quote(agent_id)])

    @admin.display(description="owner")
    def owner(self, row: AgentConnection) -> SafeString | str:
        """Return a link to the person whose agent it is."""
        owner = row.agent.owner
        return "-" if owner is None else row_link("auth.user", owner.pk, owner.username)

    @admin.display(description="connect token")
    def token(self, row: Any) -> SafeString | str:
        """Return a link to the key that it registered with."""
        return row_link("sessions_app.apikey", row.api_key_id, row.prefix and f"{row.prefix}…")

    @admin.display(description="program")
    def program(self, row: AgentConnection) -> str:
        """Return the program and version that it announced."""
        return program_of(row) or "-"

    @admin.display(description="state")
    def state(self, row: AgentConnection) -> SafeString:
        """Return whether it is being disconnected, and how many answers it is working on."""
        if row.disconnect_requested_at is not None:
            return badge("disconnecting", "bad")
        if row.is_closing:
            return badge("closing", "quiet")
        return badge(f"{row.answers} running", "busy") if row.answers else badge("idle", "good")
