"""Operators' actions on agents, and links to what an agent did.

The form of an agent is in agents_app, which knows no answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin

from agents_app.admin.agents import AgentAdmin
from agents_app.models import Agent
from audit_app.admin.columns import list_buttons
from audit_app.admin.operations import Operation, OperationsAdmin
from audit_app.record import AuditAction
from sessions_app.admin.daemons import DISCONNECT_AGENT
from sessions_app.admin.operations import running_text
from sessions_app.models import Response

if TYPE_CHECKING:
    from django.http import HttpRequest


def _switch(agent: Agent, *, is_enabled: bool) -> str:
    rows = Agent.objects.filter(pk=agent.pk).exclude(is_enabled=is_enabled)
    done = "enabled" if is_enabled else "disabled"
    return done if rows.update(is_enabled=is_enabled) else ""


def _disabled_facts(agent: Agent) -> str:
    live = Response.objects.filter(agent=agent, finished_at__isnull=True).count()
    return f"{agent.name} will stop answering. {running_text(live)}"


DISABLE_AGENT = Operation(
    name="disable",
    label="Disable",
    right="agents_app.change_agent",
    act=AuditAction.AGENT_DISABLED,
    run=lambda agent, _options, _request: _switch(agent, is_enabled=False),
    facts=_disabled_facts,
    is_available=lambda agent: agent.is_enabled,
    in_list=True,
)
ENABLE_AGENT = Operation(
    name="enable",
    label="Enable",
    right="agents_app.change_agent",
    act=AuditAction.AGENT_ENABLED,
    run=lambda agent, _options, _request: _switch(agent, is_enabled=True),
    facts=lambda agent: f"{agent.name} will answer again.",
    is_available=lambda agent: not agent.is_enabled,
    in_list=True,
)

admin.site.unregister(Agent)


@admin.register(Agent)
class OperatedAgentAdmin(OperationsAdmin, AgentAdmin):
    """Agents, which operators may disable, and whose daemons they may disconnect."""

    change_form_template = "admin/agents_app/agent/change_form.html"
    operations = (DISCONNECT_AGENT, DISABLE_AGENT, ENABLE_AGENT)

    def row_links(self, request: HttpRequest, row: Any) -> list[dict[str, str]]:
        """Return links to its answers, chats, account and transfers."""
        return list_buttons(
            request,
            ("sessions_app.response", "Answers", {"agent": row.pk}),
            ("chat_app.participant", "Chats", {"q": row.pk}),
            ("payments_app.account", "Account", {"q": row.pk}),
            ("payments_app.transfer", "Transfers", {"q": row.pk}),
        )
