"""Agents in the admin: operators add, change and switch them off here."""

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin

from agents_app.models import Agent
from agents_app.scripts import SCRIPTS
from agents_app.tools import server_tools

if TYPE_CHECKING:
    # Django's classes take type arguments in its stubs only.
    _AgentForm = forms.ModelForm[Agent]
    _AgentAdmin = admin.ModelAdmin[Agent]
else:
    _AgentForm = forms.ModelForm
    _AgentAdmin = admin.ModelAdmin


class AgentForm(_AgentForm):
    """Checks what would only fail when somebody asks the agent."""

    def clean_tools(self) -> Any:
        """Refuse names that no tool of this server has."""
        tools = self.cleaned_data["tools"]
        if isinstance(tools, list):
            unknown = [str(name) for name in tools if name not in server_tools()]
            if unknown:
                known = ", ".join(server_tools()) or "none"
                raise forms.ValidationError(
                    f"No such tool: {', '.join(unknown)}. This server has: {known}."
                )
        return tools

    def clean_options(self) -> Any:
        """Refuse a key in a row: rows are shown, copied and backed up."""
        options = self.cleaned_data["options"]
        if isinstance(options, dict) and "api_key" in options:
            raise forms.ValidationError(
                "Keep keys out of the database: put the key into an environment variable and its"
                ' name here, as {"api_key_env": "MY_KEY"}.'
            )
        return options

    def clean(self) -> dict[str, Any]:
        """Check that something can answer for the agent."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        options = values.get("options")
        if isinstance(options, dict):
            script = options.get("script", values.get("name"))
            if values.get("provider") == Agent.Provider.SCRIPTED and script not in SCRIPTS:
                self.add_error(
                    "options", f'Name a script, as {{"script": "echo"}}: {", ".join(SCRIPTS)}.'
                )
        if values.get("provider") != Agent.Provider.SCRIPTED and not values.get("model"):
            self.add_error("model", "Name the model that answers.")
        return values


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
    readonly_fields = ("id", "created_at", "updated_at")
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
                    "strategy",
                    "strategy_options",
                    "max_steps",
                ]
            },
        ),
        ("Record", {"fields": ["id", "created_at", "updated_at"]}),
    ]
