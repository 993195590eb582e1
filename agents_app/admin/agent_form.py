"""The form of an agent, with pickers for its tools and validated inputs for options and prices."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from django import forms
from django.contrib.auth.models import User

from agents_app.admin.form_fields import FormPart, ListField, NamesField, PartsField
from agents_app.admin.owner_fields import owners_changes
from agents_app.conversation.presentation import PRESENT
from agents_app.conversation.state_changes import SET_STATE
from agents_app.delegates import unknown_to_owner
from agents_app.mcp.listing import all_of, listed_tools
from agents_app.models import Agent, AgentKind, ModelProvider
from agents_app.outbound.keys import KEY_CHARS
from agents_app.providers.clients import is_key_name
from agents_app.providers.options import problem_of_new, unknown_options
from agents_app.providers.readiness import problem_of_address
from agents_app.providers.scripts import SCRIPTS
from agents_app.remote.rules import (
    NOT_FOR_PEERS,
    PEERS,
    complete,
    is_of_peer,
    problem_of_key,
    problems_of,
)
from agents_app.strategies import MAX_STEPS
from agents_app.tools.registry import server_tools
from audit_app.authority import may_act_as

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.contrib.auth.models import AnonymousUser

    # Django's classes are generic only in the stubs.
    _AgentForm = forms.ModelForm[Agent]
else:
    _AgentForm = forms.ModelForm

_SCRIPTED: Final = (ModelProvider.SCRIPTED.value,)
_MODELS: Final = tuple(value for value in ModelProvider.values if value not in _SCRIPTED)
_REALTIME: Final = (ModelProvider.OPENAI_REALTIME.value,)
_COMPATIBLE: Final = (ModelProvider.OPENAI_COMPAT.value,)
_SAMPLED: Final = (ModelProvider.OPENAI_COMPAT.value, ModelProvider.ANTHROPIC.value)
MAX_TOKENS: Final = 10_000_000
DELEGATES: Final = 200
"""The most agents offered as delegates; others can be set by name over REST."""


def _number(lowest: float, highest: float) -> forms.Field:
    return forms.FloatField(min_value=lowest, max_value=highest)


def _whole(lowest: int, highest: int) -> forms.Field:
    return forms.IntegerField(min_value=lowest, max_value=highest)


def _tokens(help_text: str = "") -> forms.Field:
    return forms.IntegerField(min_value=1, max_value=MAX_TOKENS, help_text=help_text)


def _price() -> forms.Field:
    return forms.DecimalField(
        min_value=0,
        max_digits=18,
        decimal_places=9,
        widget=forms.TextInput(attrs={"inputmode": "decimal", "size": 12}),
    )


def _option_parts() -> list[FormPart]:
    keys = ", ".join(sorted(name for name in os.environ if is_key_name(name)))
    return [
        FormPart(
            path=("script",),
            label="Script",
            field=forms.ChoiceField(choices=[("", "-"), *((name, name) for name in SCRIPTS)]),
            only=_SCRIPTED,
        ),
        FormPart(
            path=("delay",), label="Delay between words", field=_number(0, 60), unit="seconds",
            only=_SCRIPTED,
        ),
        FormPart(
            path=("base_url",), label="Server URL",
            field=forms.CharField(max_length=500, help_text="Leave empty for the provider's own."),
            only=_MODELS,
        ),
        FormPart(
            path=("api_key_env",), label="Key from environment variable",
            field=forms.CharField(
                max_length=100,
                help_text=f"Set on this server: {keys}." if keys else "None is set on this server.",
            ),
            only=_MODELS,
        ),
        FormPart(path=("timeout",), label="Timeout", field=_number(0.1, 3600),
             unit="seconds", only=_MODELS),
        FormPart(path=("context_window",), label="Context window", field=_tokens(),
             unit="tokens"),
        FormPart(path=("max_output_tokens",), label="Maximum output", field=_tokens(),
             unit="tokens"),
        FormPart(path=("reasoning_tokens",), label="Reasoning budget", field=_tokens(),
             unit="tokens"),
        FormPart(path=("params", "temperature"), label="Temperature", field=_number(0, 2),
             only=_SAMPLED),
        FormPart(path=("params", "top_p"), label="Top p", field=_number(0, 1), only=_SAMPLED),
        FormPart(
            path=("models",), label="Models that clients may choose",
            field=ListField(help_text="One per line."), only=_MODELS,
        ),
        FormPart(path=("audio",), label="Model accepts audio", field=forms.BooleanField(),
             only=_COMPATIBLE),
        FormPart(path=("voice",), label="Voice", field=forms.CharField(max_length=64),
             only=_REALTIME),
        FormPart(
            path=("transcription",), label="Transcription model",
            field=forms.CharField(max_length=100), only=_REALTIME,
        ),
    ]  # fmt: skip


def _price_parts(tools: Iterable[str]) -> list[FormPart]:
    thousand = "USD per 1,000 tokens"
    single = [
        ("per_answer", "Per answer", "USD"),
        ("input_per_1k", "Input", thousand),
        ("output_per_1k", "Output", thousand),
        ("cache_read_per_1k", "Cached input", thousand),
        ("cache_write_per_1k", "Cache writes", thousand),
        ("audio_input_per_1k", "Audio input", thousand),
        ("audio_output_per_1k", "Audio output", thousand),
    ]
    unfinished = [
        ("whole", "the full price per answer"),
        ("share", "a share, by the tokens of a typical answer"),
    ]
    return [
        *(
            FormPart(path=(name,), label=label, field=_price(), unit=unit)
            for name, label, unit in single
        ),
        FormPart(
            path=("unfinished",), label="Price of a stopped answer", unless="whole",
            field=forms.ChoiceField(choices=unfinished),
        ),
        FormPart(
            path=("expected_tokens",), label="Typical length of an answer",
            field=_whole(1, 1_000_000), unit="tokens",
        ),
        *(
            FormPart(path=("tools", name), label=f"Per call of {name}", field=_price(), unit="USD")
            for name in tools
            if not name.endswith("*")
        ),
    ]  # fmt: skip


def _strategy_parts() -> list[FormPart]:
    return [
        FormPart(
            path=("reasoning_prompt",), label="Reasoning prompt", only=("react",),
            field=forms.CharField(max_length=4000, widget=forms.Textarea(attrs={"rows": 3})),
        ),
        FormPart(path=("max_plan_steps",), label="Maximum plan steps", only=("plan",),
             field=_whole(1, MAX_STEPS)),
        FormPart(path=("allow_replan",), label="Keep the first plan", only=("plan",),
             field=forms.BooleanField(), means=False),
    ]  # fmt: skip


class AgentForm(_AgentForm):
    """Rejects settings that would only fail when the agent is used."""

    options = PartsField([], follows="id_provider", label="Provider options")
    pricing = PartsField([], label="Prices", help_text="Leave empty if the agent is free.")
    strategy_options = PartsField([], follows="id_strategy", label="Strategy options")
    tools = NamesField(label="Tools")
    approvals = NamesField(
        label="Needs approval",
        help_text="Long-running tools that a person has to approve each time.",
    )
    delegates = NamesField(label="Delegates to")
    key = forms.CharField(
        required=False,
        max_length=KEY_CHARS,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text="Key of the model or the remote agent, or the capability token of a peer. Stored"
        " encrypted and never shown again. Leave empty to keep the stored key, which is only sent"
        " to the same host.",
    )
    remove_key = forms.BooleanField(required=False, label="Delete the stored key")
    operator: User | AnonymousUser | None = None
    """Who fills in the form; None for code of this server."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        agent: Agent = self.instance
        fields: dict[str, Any] = self.fields
        priced = agent.pricing.get("tools", {}) if isinstance(agent.pricing, dict) else {}
        tools = agent.tools if isinstance(agent.tools, list) else []
        names = [name for name in dict.fromkeys([*tools, *priced]) if isinstance(name, str)]
        parts = {
            "options": _option_parts(),
            "pricing": _price_parts(names),
            "strategy_options": _strategy_parts(),
        }
        for name, field_parts in parts.items():
            if name in fields:
                fields[name].set_parts(field_parts)
        offered = {
            "tools": (offered_tools(), agent.tools),
            "approvals": (_long_tools(), agent.approvals),
            "delegates": (_other_agents(agent.pk), agent.delegates),
        }
        for name, (groups, stored) in offered.items():
            if name in fields:
                fields[name].offer(groups, stored)

    def clean_tools(self) -> Any:
        """Reject unknown tool names."""
        names = [name for group in offered_tools().values() for name in group]
        unknown = [name for name in self.cleaned_data["tools"] if name not in names]
        if unknown:
            tool_list = ", ".join(names) or "none"
            raise forms.ValidationError(
                f"No such tool: {', '.join(unknown)}. This server has: {tool_list}."
            )
        return self.cleaned_data["tools"]

    def clean_approvals(self) -> Any:
        """Reject tools that cannot wait for a person: only long tools can."""
        long = {name for group in _long_tools().values() for name in group}
        short = [name for name in self.cleaned_data["approvals"] if name not in long]
        if short:
            raise forms.ValidationError(
                "Only long-running tools can wait for approval."
                f" Not among them: {', '.join(short)}."
            )
        return self.cleaned_data["approvals"]

    def clean_delegates(self) -> Any:
        """Reject unknown agents."""
        delegates = self.cleaned_data["delegates"]
        if missing := unknown_to_owner(delegates, None):
            raise forms.ValidationError(f"No such agent: {', '.join(missing)}.")
        return delegates

    def clean_options(self) -> Any:
        """Refuse a key among the options, which are shown."""
        options = self.cleaned_data["options"]
        if "api_key" in options:
            raise forms.ValidationError(
                "Enter the key in the field Key, which is stored encrypted, or name an environment"
                " variable here, such as MY_API_KEY."
            )
        variable = options.get("api_key_env")
        if variable is not None and not is_key_name(variable):
            raise forms.ValidationError(
                "The environment variable of a key has a name that ends in _API_KEY."
            )
        return options

    def clean(self) -> dict[str, Any]:
        """Check that something can answer for the agent."""
        values: dict[str, Any] = super().clean() or self.cleaned_data
        self._check_owners_fields(values)
        self._check_delegates(values)
        if values.get("kind") == AgentKind.REMOTE:
            for field, words in problems_of(values).items():
                self.add_error(field, words)
            if not self._may_make(str(values.get("kind")), str(values.get("protocol"))):
                self.add_error("protocol", NOT_FOR_PEERS)
            return values
        if key := values.get("key"):
            kind, provider = str(values.get("kind")), str(values.get("provider"))
            problem = problem_of_key(key, kind, provider, values.get("options") or {})
            if problem is not None:
                self.add_error("key", problem)
        if values.get("kind") != AgentKind.CONNECTED:
            self._check_model(values)
            return values
        options = values.get("options") or {}
        if unknown := unknown_options(AgentKind.CONNECTED, options):
            self.add_error("options", f"Unknown options: {', '.join(unknown)}.")
        elif (problem := problem_of_new(AgentKind.CONNECTED, options)) is not None:
            self.add_error("options", problem)
        if values.get("owner") is None:
            self.add_error("owner", "A connected agent needs an owner, whose daemon registers it.")
        return values

    def _check_owners_fields(self, values: dict[str, Any]) -> None:
        """Refuse changes that only the owner may make."""
        owner, operator = self.instance.owner, self.operator
        if owner is None or not isinstance(operator, User) or may_act_as(operator, owner):
            return
        changed = owners_changes(self.instance, self.changed_data, values)
        for field in changed:
            self.add_error(
                field,
                f"Only {owner.get_username()}, and operators who may act as them, change this:"
                " it decides who reads what the agent is sent, or who pays for it.",
            )

    def _check_delegates(self, values: dict[str, Any]) -> None:
        """Refuse delegates that the agent's owner may not use, unless they were stored before."""
        owner = values.get("owner")
        if owner is None or not {"delegates", "owner"} & {*self.changed_data}:
            return
        if private := unknown_to_owner(values.get("delegates", ()), owner.pk):
            self.add_error(
                "delegates", f"The owner may not use these agents: {', '.join(private)}."
            )

    def _may_make(self, kind: str, protocol: str) -> bool:
        if self.operator is None or not is_of_peer(kind, protocol):
            return True
        return self.operator.has_perm(PEERS)

    def _check_model(self, values: dict[str, Any]) -> None:
        """Check that a script or a model of this server can answer for the agent."""
        options, provider = values.get("options"), values.get("provider")
        if isinstance(options, dict) and provider is not None:
            script = options.get("script", values.get("name"))
            problem = problem_of_new(provider, options)
            if unknown := unknown_options(provider, options):
                self.add_error("options", f"Unknown options: {', '.join(unknown)}.")
            if problem is not None:
                self.add_error("options", problem)
            elif provider == ModelProvider.SCRIPTED and script not in SCRIPTS:
                self.add_error("options", f"Choose a script: {', '.join(SCRIPTS)}.")
            elif provider != ModelProvider.SCRIPTED and values.get("is_enabled"):
                # A disabled agent may be prepared, and can always be disabled.
                self._check_address(str(provider), options)
        if values.get("provider") != ModelProvider.SCRIPTED and not values.get("model"):
            self.add_error("model", "Enter the name of the model.")

    def _check_address(self, provider: str, options: dict[str, Any]) -> None:
        """Refuse an address that this server never calls, and mark it at its input."""
        problem = problem_of_address(provider, options)
        if problem is not None:
            field: Any = self.fields["options"]
            field.widget.errors["base_url" if "base_url" in options else "api_key_env"] = problem
            self.add_error("options", problem)

    def save(self, commit: bool = True) -> Agent:  # noqa: FBT001, FBT002 part of the interface
        """Save the row with the key from the form."""
        key = "" if self.cleaned_data.get("remove_key") else self.cleaned_data.get("key") or None
        complete(self.instance, key)
        return super().save(commit=commit)


def offered_tools() -> dict[str, dict[str, str]]:
    """Return the tools that an agent can have: names and descriptions, grouped by origin."""
    groups = {
        "In every chat": {
            PRESENT: "Shows files of the chat in its answer.",
            SET_STATE: "Changes the shared state of the chat.",
        },
        "This server": {name: tool.description for name, tool in server_tools().items()},
    }
    for tool in listed_tools():
        group = groups.setdefault(f"MCP server {tool.source}", {})
        group.setdefault(all_of(tool.source), "All of its tools, including later ones.")
        group[tool.name] = tool.description
    return groups


def _long_tools() -> dict[str, dict[str, str]]:
    """Return the tools that can wait for a person."""
    groups = {
        "This server": {
            name: tool.description for name, tool in server_tools().items() if tool.long_running
        }
    }
    for tool in listed_tools():
        groups.setdefault(f"MCP server {tool.source}", {})[tool.name] = tool.description
    return groups


def _other_agents(agent_id: str) -> dict[str, dict[str, str]]:
    others = Agent.objects.exclude(pk=agent_id).order_by("name")[:DELEGATES]
    return {"Agents": {agent.name: agent.description for agent in others}}
