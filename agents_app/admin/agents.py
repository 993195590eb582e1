"""Agents in the admin: operators add, change and switch them off here."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.urls import URLPattern, path

from agents_app.admin.mcp import ToolSourceAdmin
from agents_app.admin.trial import trial_view
from agents_app.conversation.presentation import PRESENT
from agents_app.conversation.state_changes import SET_STATE
from agents_app.mcp.listing import all_of, listed_tools
from agents_app.models import Agent, ModelProvider
from agents_app.providers.clients import is_key_name
from agents_app.providers.options import problem_of, unknown_options
from agents_app.providers.scripts import SCRIPTS
from agents_app.sponsorships import budgets_of
from agents_app.tools.registry import server_tools

if TYPE_CHECKING:
    # Django's classes take type arguments in its stubs only.
    _AgentForm = forms.ModelForm[Agent]
    _AgentAdmin = admin.ModelAdmin[Agent]
else:
    _AgentForm = forms.ModelForm
    _AgentAdmin = admin.ModelAdmin

# Importing it is what registers it.
__all__ = ["AgentAdmin", "AgentForm", "ToolSourceAdmin"]


class AgentForm(_AgentForm):
    """Checks what would only fail when the agent is asked."""

    def clean_tools(self) -> Any:
        """Refuse names that no tool of this server has."""
        tools = self.cleaned_data["tools"]
        if isinstance(tools, list):
            of_sources = listed_tools()
            names = [
                PRESENT,
                SET_STATE,
                *server_tools(),
                *dict.fromkeys(all_of(tool.source) for tool in of_sources),
                *(tool.name for tool in of_sources),
            ]
            unknown = [str(name) for name in tools if name not in names]
            if unknown:
                known = ", ".join(names) or "none"
                raise forms.ValidationError(
                    f"No such tool: {', '.join(unknown)}. This server has: {known}."
                )
        return tools

    def clean_approvals(self) -> Any:
        """Refuse tools that cannot wait for a person: only long ones can."""
        approvals = self.cleaned_data["approvals"]
        if _is_names(approvals):
            long = {name for name, tool in server_tools().items() if tool.long_running}
            long.update(tool.name for tool in listed_tools())
            short = [name for name in approvals if name not in long]
            if short:
                raise forms.ValidationError(
                    f"Only a long tool can wait for a person, and these are none: "
                    f"{', '.join(short)}."
                )
        return approvals

    def clean_delegates(self) -> Any:
        """Refuse agents that there are not."""
        delegates = self.cleaned_data["delegates"]
        if _is_names(delegates):
            known = {name.casefold() for name in Agent.objects.values_list("name", flat=True)}
            missing = [name for name in delegates if name.casefold() not in known]
            if missing:
                raise forms.ValidationError(f"No such agent: {', '.join(missing)}.")
        return delegates

    def clean_options(self) -> Any:
        """Refuse a key in a row: rows are shown, copied and backed up."""
        options = self.cleaned_data["options"]
        if isinstance(options, dict) and "api_key" in options:
            raise forms.ValidationError(
                "Keep keys out of the database: put the key into an environment variable and its"
                ' name here, as {"api_key_env": "MY_API_KEY"}.'
            )
        if isinstance(options, dict):
            variable = options.get("api_key_env")
            if variable is not None and not is_key_name(variable):
                raise forms.ValidationError(
                    "The environment variable of a key has a name that ends in _API_KEY."
                )
        return options

    def clean(self) -> dict[str, Any]:
        """Check that something can answer for the agent."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        options, provider = values.get("options"), values.get("provider")
        if isinstance(options, dict) and provider is not None:
            script = options.get("script", values.get("name"))
            problem = problem_of(provider, options)
            if unknown := unknown_options(provider, options):
                self.add_error("options", f"There are no such options: {', '.join(unknown)}.")
            if problem is not None:
                self.add_error("options", problem)
            elif provider == ModelProvider.SCRIPTED and script not in SCRIPTS:
                self.add_error(
                    "options", f'Name a script, as {{"script": "echo"}}: {", ".join(SCRIPTS)}.'
                )
        if values.get("provider") != ModelProvider.SCRIPTED and not values.get("model"):
            self.add_error("model", "Name the model that answers.")
        return values


def _is_names(value: Any) -> bool:
    """Return whether a field holds a list of names; the model reports it where it does not."""
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


@admin.register(Agent)
class AgentAdmin(_AgentAdmin):
    """The list of agents and the form of one."""

    form = AgentForm
    list_display = (
        "name",
        "kind",
        "provider",
        "model",
        "is_public",
        "is_enabled",
        "trigger",
        "owner",
        "updated_at",
    )
    list_filter = ("is_enabled", "is_public", "kind", "provider", "trigger")
    list_select_related = ("owner",)
    search_fields = ("name", "description", "model", "id")
    autocomplete_fields = ("owner",)
    readonly_fields = ("id", "created_at", "updated_at", "sponsoring")
    fieldsets: ClassVar = [
        (None, {"fields": ["name", "description", "is_enabled", "is_public", "owner", "trigger"]}),
        (
            "What answers",
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
        (
            "Limits of one answer",
            {"fields": ["max_steps", "max_output_tokens", "max_seconds", "history_messages"]},
        ),
        ("What it costs", {"fields": ["pricing", "sponsoring"]}),
        ("Record", {"fields": ["id", "created_at", "updated_at"]}),
    ]

    @admin.display(description="its owner pays for others")
    def sponsoring(self, agent: Agent) -> str:
        """Return the owner's budgets; only they can set them, over REST."""
        budgets = budgets_of(agent.pk)
        agreed = (f"{amount} USD by {period}" for period, amount in budgets.items())
        return ", ".join(agreed) or "nothing: the owner has not agreed to"

    def get_urls(self) -> list[URLPattern]:
        """Add the trial, which asks for itself who comes: the admin's own check is synchronous."""
        trial = path("<str:agent_id>/try/", trial_view, name="agents_app_agent_try")
        return [trial, *super().get_urls()]
