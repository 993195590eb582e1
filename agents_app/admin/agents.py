"""Agents in the admin, where operators add, change and disable them."""

from typing import Any, ClassVar, Final

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils import timezone
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from agents_app.admin.agent_form import AgentForm
from agents_app.admin.drafts import draft_view
from agents_app.admin.mcp import ToolSourceAdmin
from agents_app.admin.model_names import models_view
from agents_app.admin.remote import remote_view
from agents_app.admin.trial import PERMISSION, trial_view
from agents_app.models import Agent, AgentConnection, AgentKind
from agents_app.providers.readiness import missing_key
from agents_app.remote.discovery import facts_of
from agents_app.remote.rules import PEERS, has_model, is_of_peer
from agents_app.sponsorships import budgets_of
from audit_app.admin.columns import linked, moment, row_link
from audit_app.admin.records import AuditedAdmin

# Importing ToolSourceAdmin registers it.
__all__ = ["AgentAdmin", "AgentForm", "ToolSourceAdmin"]


DAEMONS = 20
"""The most daemons of a connected agent that its page lists."""


_UNITS: Final = {
    "per_answer": "an answer",
    "input_per_1k": "for 1,000 input tokens",
    "output_per_1k": "for 1,000 output tokens",
    "cache_read_per_1k": "for 1,000 tokens read from a cache",
    "cache_write_per_1k": "for 1,000 tokens written to a cache",
    "audio_input_per_1k": "for 1,000 tokens of sound in",
    "audio_output_per_1k": "for 1,000 tokens of sound out",
}
"""The names of prices, in words."""


@admin.register(Agent)
class AgentAdmin(AuditedAdmin):
    """The list of agents and the form of one agent."""

    find_by = ("id__begins", "name")
    form = AgentForm
    list_display = (
        "name",
        "kind",
        "model",
        "price",
        "is_enabled",
        linked("owner"),
        moment("updated_at"),
    )
    list_filter = ("is_enabled", "is_connected", "is_public", "kind", "provider", "trigger")
    list_select_related = ("owner",)
    search_fields = ("name", "description", "model", "id")
    # The list of an autocomplete widget has no accessible name.
    raw_id_fields = ("owner",)
    readonly_fields = (
        "id",
        "created_at",
        "updated_at",
        "sponsoring",
        "has_key",
        "health",
        "discovery_summary",
    )
    fieldsets: ClassVar = [
        (None, {"fields": ["name", "description", "is_enabled", "is_public", "owner", "trigger"]}),
        (
            "Model and tools",
            {
                "fields": [
                    "kind",
                    "provider",
                    "model",
                    "instructions",
                    "options",
                    "tools",
                    "approvals",
                    "delegates",
                    "strategy",
                    "strategy_options",
                ]
            },
        ),
        ("Key", {"fields": ["key", "has_key", "remove_key"]}),
        (
            "Remote agent",
            {
                "description": "Remote agents only. <em>Model</em> is its name on its server.",
                "fields": ["url", "protocol", "discovery_summary", "health"],
            },
        ),
        (
            "Limits per answer",
            {"fields": ["max_steps", "max_output_tokens", "max_seconds", "history_messages"]},
        ),
        ("Pricing", {"fields": ["pricing", "sponsoring"]}),
        ("Record", {"fields": ["id", "created_at", "updated_at"]}),
    ]

    @admin.display(description="price in USD", ordering=None)
    def price(self, agent: Agent) -> str:
        """Return the amounts of its prices, each with what it is for."""
        pricing = agent.pricing or {}
        words = [f"{pricing[name]} {unit}" for name, unit in _UNITS.items() if name in pricing]
        if tools := pricing.get("tools"):
            words.append("1 priced tool" if len(tools) == 1 else f"{len(tools)} priced tools")
        return ", ".join(words) or "free"

    @admin.display(description="sponsored by its owner")
    def sponsoring(self, agent: Agent) -> str:
        """Return the owner's budgets, which only the owner can set, over REST."""
        budgets = budgets_of(agent.pk)
        agreed = (f"{amount} USD per {period}" for period, amount in budgets.items())
        return ", ".join(agreed) or "no"

    @admin.display(description="key stored", boolean=True)
    def has_key(self, agent: Agent) -> bool:
        """Return whether a key of its model or its server is stored."""
        return bool(agent.secret)

    @admin.display(description="health")
    def health(self, agent: Agent) -> str:
        """Return the health of a remote agent, or the daemons of a connected one."""
        if agent.kind == AgentKind.HOSTED:
            return "Runs on this server."
        failed = (
            f"{agent.failed_at:%Y-%m-%d %H:%M} UTC: {agent.last_error}" if agent.failed_at else ""
        )
        if agent.kind == AgentKind.CONNECTED:
            daemons = _daemons_of(agent)
            since = "" if agent.failures else "It has answered since its last error. "
            return format_html("{} {}Last error: {}", daemons, since, failed) if failed else daemons
        if not agent.failures:
            return f"Reachable. Last error: {failed}" if failed else "Reachable."
        pause = f" Paused until {agent.retry_at:%H:%M:%S} UTC." if agent.retry_at else ""
        return f"The last {agent.failures} calls failed.{pause} Last error: {failed}"

    def has_change_permission(self, request: HttpRequest, obj: Agent | None = None) -> bool:
        """Let only those who may change peers change what this server asks of a peer's agent."""
        may = super().has_change_permission(request, obj)
        return may and (
            obj is None or not is_of_peer(obj.kind, obj.protocol) or request.user.has_perm(PEERS)
        )

    def get_form(
        self,
        request: HttpRequest,
        obj: Any = None,
        change: bool = False,  # noqa: FBT001, FBT002 part of the interface
        **kwargs: Any,
    ) -> Any:
        """Return the form, which checks the operator's rights."""
        form = super().get_form(request, obj, change, **kwargs)
        return type("AgentForm", (form,), {"operator": request.user})

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,  # noqa: FBT001, FBT002 part of the interface
        change: bool = False,  # noqa: FBT001, FBT002 part of the interface
        form_url: str = "",
        obj: Agent | None = None,
    ) -> HttpResponse:
        """Show the form, beside it a trial of its values for those who may save and try them."""
        may_save = self.has_add_permission(request) if add else self.has_change_permission(request)
        page, models = "admin:agents_app_agent_draft", "admin:agents_app_agent_models"
        context |= {
            "models_address": (
                (reverse(models) if obj is None else reverse(f"{models}_of", args=[obj.pk]))
                if may_save
                else ""
            ),
            "may_try_draft": may_save and request.user.has_perm(PERMISSION),
            "draft_address": reverse(page) if obj is None else reverse(f"{page}_of", args=[obj.pk]),
        }
        return super().render_change_form(request, context, add, change, form_url, obj)

    def get_urls(self) -> list[URLPattern]:
        """Add the async views, which check permissions themselves."""
        # The types of Django's admin know no async views.
        admin_view: Any = self.admin_site.admin_view
        trial = path("<str:agent_id>/try/", admin_view(trial_view), name="agents_app_agent_try")
        remote = path("remote/", admin_view(remote_view), name="agents_app_agent_remote")
        drafts = [
            path("draft/", admin_view(draft_view), name="agents_app_agent_draft"),
            path("<str:agent_id>/draft/", admin_view(draft_view), name="agents_app_agent_draft_of"),
        ]
        models = [
            path("models/", admin_view(self.models), name="agents_app_agent_models"),
            path(
                "<str:agent_id>/models/", admin_view(self.models), name="agents_app_agent_models_of"
            ),
        ]
        return [trial, remote, *drafts, *models, *super().get_urls()]

    def models(self, request: HttpRequest, agent_id: str = "") -> HttpResponse:
        """Return the models to suggest for the unsaved form of an agent."""
        return models_view(request, self, agent_id)

    def get_changeform_initial_data(self, request: HttpRequest) -> dict[str, Any]:
        """Return the initial values in the query; the page for remote agents links here."""
        initial: dict[str, Any] = dict(super().get_changeform_initial_data(request))
        if initial.pop("streams", None) == "0":
            initial["options"] = {"streams": False}
        return initial

    def save_model(self, request: HttpRequest, obj: Agent, form: Any, change: bool) -> None:  # noqa: FBT001 part of the interface
        """Save the row, with a warning if its model lacks a key.

        For a remote agent, also save what its address says now.
        """
        if obj.kind == AgentKind.REMOTE and (
            {"url", "key"} & {*form.changed_data} or not obj.found
        ):
            obj.found, obj.probed_at = facts_of(obj), timezone.now()
        super().save_model(request, obj, form, change)
        if has_model(obj.kind, obj.provider):
            lack = missing_key(obj.provider, obj.options, is_stored=bool(obj.secret))
            if lack is not None:
                text = f"{obj.name} cannot answer: {lack}. Enter a key, or set one on the server."
                self.message_user(request, text, messages.WARNING)

    @admin.display(description="discovered")
    def discovery_summary(self, agent: Agent) -> str:
        """Return the description that a remote agent's address gave when it was saved."""
        facts = agent.found if isinstance(agent.found, dict) else {}
        prices = ", ".join(f"{name}: {price}" for name, price in facts.get("pricing", {}).items())
        ways = {str(way.get("protocol")) for way in facts.get("ways", ())}
        texts = (
            facts.get("name", ""),
            facts.get("description", ""),
            f"Price on its server: {prices}." if prices else "",
            f"Tools: {', '.join(facts.get('tools', ()))}." if facts.get("tools") else "",
            f"Protocols: {', '.join(sorted(ways))}." if ways else "",
        )
        return " ".join(text for text in texts if text) or "nothing"


def _daemons_of(agent: Agent) -> str:
    """Return the daemons of a connected agent, the oldest DAEMONS of them with their facts."""
    count = agent.connections.count()
    if not count:
        return "Not connected."
    rows = agent.connections.order_by("connected_at", "pk")[:DAEMONS]
    daemons = "1 daemon" if count == 1 else f"{count} daemons"
    return format_html(
        "{} connected.{}",
        daemons,
        format_html_join("", "<div>{}</div>", ((_daemon_line(r),) for r in rows)),
    )


def _daemon_line(row: AgentConnection) -> SafeString:
    """Return since when a daemon is connected, from where, its process, answers and program."""
    program = program_of(row)
    closing = "closing" if row.disconnect_requested_at is None else "disconnecting"
    facts = [
        *([f"from {row.address}"] if row.address else []),
        f"process {row.process_id}",
        f"{row.answers} running" if row.answers else "idle",
        *([closing] if row.is_closing else []),
        *([program] if program else []),
    ]
    since = f"Since {row.connected_at:%Y-%m-%d %H:%M:%S} UTC"
    link = row_link("agents_app.agentconnection", row.pk, since)
    return format_html("{}, {}", link, ", ".join(facts))


def program_of(row: AgentConnection) -> str:
    """Return the program that a daemon announced, with its version; "" if it did not."""
    capabilities = row.capabilities if isinstance(row.capabilities, dict) else {}
    return " ".join(
        str(capabilities[name])[:80] for name in ("provider", "id") if capabilities.get(name)
    )
