"""Agents as rows: their model, tools, prices and owner.

A row is pure configuration. Each run reads it once, as an AgentSpec.
"""

from __future__ import annotations

import re
import uuid
from typing import Any, ClassVar

from django.conf import settings
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator, RegexValidator
from django.db import models
from django.db.models import Q
from django.db.models.functions import Lower
from django.dispatch import Signal
from django.utils import timezone

from agents_app.group_names import problem_of_name
from agents_app.pricing import read_pricing, without_zeros
from agents_app.strategies import MAX_STEPS, make_strategy

NAME_PATTERN = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9_-])?")
"""An agent's name: at most 64 letters, digits and . _ -, with no dot at either end."""

AGENT_ID = re.compile(r"agent_[0-9a-f]{32}")


presence_changed = Signal()
"""Sent when agents (`agents`) are switched on or off, or their first daemon connects or their last
one disconnects. The rows have been saved but may not be committed yet."""


def new_agent_id() -> str:
    """Return an agent id: `agent_` and 128 random bits in hex."""
    return f"agent_{uuid.uuid4().hex}"


class AgentKind(models.TextChoices):
    """The place where an agent runs: on this server, at a URL, or in a daemon that dials in."""

    HOSTED = "hosted"
    REMOTE = "remote", "remote (called by URL)"
    CONNECTED = "connected", "connected (connects to this server)"


class RemoteProtocol(models.TextChoices):
    """The protocol used to call a remote agent."""

    UAMP = "uamp", "UAMP (WebSocket)"
    UAMP_HTTP = "uamp_http", "UAMP (HTTP)"
    COMPLETIONS = "completions", "OpenAI Chat Completions"
    RESPONSES = "responses", "OpenAI Responses"
    A2A = "a2a", "A2A 1.0"
    A2A_03 = "a2a_03", "A2A 0.3"
    AG_UI = "ag_ui", "AG-UI"
    ACP = "acp", "Agent Client Protocol (WebSocket)"
    ENVELOPE = "envelope", "Signed envelope (WebSocket)"
    ENVELOPE_HTTP = "envelope_http", "Signed envelope (HTTP)"
    ENVELOPE_GRPC = "envelope_grpc", "Signed envelope (gRPC)"


ENVELOPES = frozenset(
    {
        RemoteProtocol.ENVELOPE.value,
        RemoteProtocol.ENVELOPE_HTTP.value,
        RemoteProtocol.ENVELOPE_GRPC.value,
    }
)
"""The protocols in which this server, in its own name, calls an agent of a peer."""


class ModelProvider(models.TextChoices):
    """The provider that answers for a hosted agent."""

    SCRIPTED = "scripted", "scripted (no model)"
    OPENAI_COMPAT = "openai_compat", "OpenAI-compatible server"
    OPENAI_REALTIME = "openai_realtime", "OpenAI Realtime (listens and speaks)"
    ANTHROPIC = "anthropic", "Anthropic"
    GOOGLE = "google", "Google Gemini"


class StrategyName(models.TextChoices):
    """How a hosted agent arrives at its answer (UAP §5)."""

    LOOP = "loop", "loop (call tools until the answer is complete)"
    REACT = "react", "react (think before each action)"
    PLAN = "plan", "plan (make a plan, then carry it out)"


class AgentReplyTrigger(models.TextChoices):
    """When the agent answers in a chat with other members."""

    MENTION = "mention", "when mentioned"
    ALWAYS = "always", "always"
    NEVER = "never", "never"


class Agent(models.Model):
    """An agent that people and programs can talk to."""

    id = models.CharField(primary_key=True, max_length=40, default=new_agent_id, editable=False)
    name = models.CharField(
        max_length=64,
        validators=[
            RegexValidator(
                rf"^(?:{NAME_PATTERN.pattern})\Z",
                "Use letters, digits and . _ - only, and no dot at the start or the end.",
            )
        ],
        help_text="What people write after the @. Upper and lower case are the same.",
    )
    description = models.TextField(blank=True, help_text="Shown to people who choose an agent.")
    kind = models.CharField(max_length=10, choices=AgentKind, default=AgentKind.HOSTED)
    provider = models.CharField(
        max_length=20, choices=ModelProvider, default=ModelProvider.SCRIPTED
    )
    model = models.CharField(
        max_length=200,
        blank=True,
        help_text="The model's name at the provider; for a remote agent, its name on its server.",
    )
    url = models.CharField(
        "address",
        max_length=2000,
        blank=True,
        help_text="For remote agents: the address to call, beginning with https://.",
    )
    protocol = models.CharField(
        max_length=20,
        choices=RemoteProtocol,
        blank=True,
        help_text="For remote agents: the protocol in which it is called.",
    )
    # The key of its model or of the remote agent, encrypted (agents_app.outbound.keys).
    secret = models.TextField(blank=True, editable=False)
    instructions = models.TextField(
        blank=True, help_text="The system prompt. It is never sent to clients."
    )
    options = models.JSONField(
        default=dict,
        blank=True,
        help_text='Options of the provider, such as {"script": "echo"} or {"base_url": "https://…"}.',
    )
    tools = models.JSONField(
        default=list, blank=True, help_text='Names of server tools, such as ["csv_report"].'
    )
    approvals = models.JSONField(
        default=list,
        blank=True,
        help_text="Long-running tools that a person has to approve each time, such as"
        ' ["edit_picture"].',
    )
    delegates = models.JSONField(
        default=list,
        blank=True,
        help_text='Agents that it may delegate to, such as ["report"].',
    )
    pricing = models.JSONField(
        default=dict,
        blank=True,
        help_text='Prices in USD: {"per_answer": "0.01", "input_per_1k": "0.001",'
        ' "output_per_1k": "0.002", "tools": {"csv_report": "0.05"}}. Leave empty if it is free. A'
        " stopped answer costs the full price of an answer once it has begun; with"
        ' {"unfinished": "share", "expected_tokens": 400}, the share of 400 tokens written so far.',
    )
    strategy = models.CharField(max_length=10, choices=StrategyName, default=StrategyName.LOOP)
    strategy_options = models.JSONField(
        default=dict,
        blank=True,
        help_text='For react: {"reasoning_prompt": "…"}. For plan: {"max_plan_steps": 5,'
        ' "allow_replan": false}.',
    )
    is_public = models.BooleanField(
        default=False,
        help_text="If set, everyone who is signed in may use it; otherwise only its owner, staff,"
        " and members of chats that its owner added it to."
        " Visitors may use it too, unless a model answers without a price"
        " (UAMP_ANONYMOUS_MODELS).",
    )
    is_enabled = models.BooleanField(default=True)
    # Whether a connected agent has a registered daemon. Written only by `agents_app.connections`.
    is_connected = models.BooleanField(default=False, db_default=False, editable=False)
    owner = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        models.SET_NULL,
        null=True,
        blank=True,
        related_name="agents",
    )
    trigger = models.CharField(
        max_length=10, choices=AgentReplyTrigger, default=AgentReplyTrigger.MENTION
    )
    max_steps = models.PositiveIntegerField(
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(MAX_STEPS)],
        help_text="Rounds of tool calls in one answer, at most 32; also the steps of a plan.",
    )
    max_output_tokens = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Tokens that the model may write in one answer, over all of its steps. Leave"
        " empty for the provider's limit.",
    )
    max_seconds = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Time limit of an answer, in seconds. If empty or higher: UAMP_RESPONSE_SECONDS.",
    )
    history_messages = models.PositiveIntegerField(
        null=True,
        blank=True,
        validators=[MinValueValidator(1)],
        help_text="Messages of the chat that it reads. If empty or higher: UAMP_HISTORY_MESSAGES.",
    )
    # What the address of a remote agent says about it (agents_app.remote.discovery).
    found = models.JSONField(default=dict, blank=True, editable=False)
    # The health of an agent elsewhere (agents_app.remote.health): consecutive failed calls, the
    # last error as operators see it, and the time before which a remote agent is not called.
    failures = models.PositiveIntegerField(default=0, editable=False)
    last_error = models.TextField(blank=True, editable=False)
    failed_at = models.DateTimeField(null=True, blank=True, editable=False)
    # When its address was last probed.
    probed_at = models.DateTimeField(null=True, blank=True, editable=False)
    retry_at = models.DateTimeField(null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        """Each constraint is named after the sentence that it keeps true."""

        ordering: ClassVar = ["name"]
        permissions: ClassVar = [("try_agent", "Can try agent")]
        constraints: ClassVar = [
            models.UniqueConstraint(
                Lower("name"),
                name="agent_name_is_unique",
                violation_error_message="There is already an agent with this name.",
            ),
            models.CheckConstraint(condition=~Q(name=""), name="agent_has_a_name"),
            models.CheckConstraint(
                condition=Q(kind__in=["hosted", "remote", "connected"]),
                name="agent_kind_is_known",
            ),
            models.CheckConstraint(
                condition=Q(protocol__in=["", *RemoteProtocol.values]),
                name="agent_protocol_is_known",
            ),
            models.CheckConstraint(
                condition=Q(provider__in=ModelProvider.values),
                name="agent_provider_is_known",
            ),
            models.CheckConstraint(
                condition=Q(strategy__in=["loop", "react", "plan"]),
                name="agent_strategy_is_known",
            ),
            models.CheckConstraint(
                condition=Q(trigger__in=["mention", "always", "never"]),
                name="agent_trigger_is_known",
            ),
            models.CheckConstraint(
                condition=Q(max_steps__gte=1, max_steps__lte=32),
                name="agent_steps_are_1_to_32",
            ),
            models.CheckConstraint(
                condition=Q(max_output_tokens__isnull=True) | Q(max_output_tokens__gte=1),
                name="agent_may_write_a_token",
            ),
            models.CheckConstraint(
                condition=Q(max_seconds__isnull=True) | Q(max_seconds__gte=1),
                name="agent_has_a_second",
            ),
            models.CheckConstraint(
                condition=Q(history_messages__isnull=True) | Q(history_messages__gte=1),
                name="agent_is_shown_a_message",
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save the row; a sponsorship by a previous owner ends.

        Sends `presence_changed` if this switches an existing agent on or off.
        """
        is_new = self._state.adding
        before = None if is_new else Agent.objects.filter(pk=self.pk).first()
        if before is not None and kwargs.get("update_fields") is None:
            # A daemon may have connected or disconnected since this row was read.
            self.is_connected = before.is_connected
            fields = (field for field in self._meta.concrete_fields if not field.primary_key)
            kwargs["update_fields"] = [f.name for f in fields if f.name != "is_connected"]
        super().save(*args, **kwargs)
        if not is_new:
            self.sponsorships.exclude(user=self.owner).delete()
        if before is not None and before.is_online != self.is_online:
            presence_changed.send(sender=Agent, agents=[self])

    def clean(self) -> None:
        """Validate fields that depend on each other.

        Raises ValidationError for a new name that addresses others; for options that are not an
        object or that the strategy does not have; for tools, approvals or delegates that are not
        lists of names; for approvals of tools that it does not have; and for invalid prices.
        """
        errors: dict[str, Any] = {}
        is_renamed = not Agent.objects.filter(pk=self.pk, name=self.name).exists()
        if is_renamed and (refusal := problem_of_name(self.name, self.owner_id)):
            errors["name"] = refusal
        if not isinstance(self.options, dict):
            errors["options"] = "Enter a JSON object."
        if not isinstance(self.tools, list) or not all(isinstance(t, str) for t in self.tools):
            errors["tools"] = "Enter a JSON list of tool names."
        elif (problem := self._approvals_problem()) is not None:
            errors["approvals"] = problem
        if (problem := self._delegates_problem()) is not None:
            errors["delegates"] = problem
        try:
            read_pricing(self.pricing)
            self.pricing = without_zeros(self.pricing or {})
        except ValueError as error:
            errors["pricing"] = str(error)
        if self.strategy in StrategyName.values:
            try:
                make_strategy(self.strategy, self.strategy_options, max_steps=self.max_steps or 1)
            except ValueError as error:
                errors["strategy_options"] = str(error)
        if errors:
            raise ValidationError(errors)

    @property
    def is_online(self) -> bool:
        """Whether it can answer: enabled, and either hosted, reachable or connected."""
        if self.kind == AgentKind.REMOTE:
            return self.is_enabled and (self.retry_at is None or self.retry_at <= timezone.now())
        return self.is_enabled and (self.kind == AgentKind.HOSTED or self.is_connected)

    def _delegates_problem(self) -> str | None:
        names = self.delegates
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            return "Enter a JSON list of agent names."
        if self.name.casefold() in {name.casefold() for name in names}:
            return "An agent cannot give work to itself."
        return None

    def _approvals_problem(self) -> str | None:
        approvals = self.approvals
        if not isinstance(approvals, list) or not all(isinstance(n, str) for n in approvals):
            return "Enter a JSON list of tool names."
        missing = [name for name in approvals if not _is_among(name, self.tools)]
        return f"It does not have these tools: {', '.join(missing)}." if missing else None


def _is_among(name: str, tools: list[str]) -> bool:
    """Return whether an agent has a tool, by name or through all tools of its source."""
    return name in tools or f"{name.partition('__')[0]}__*" in tools


class BudgetPeriod(models.TextChoices):
    """The period that a budget covers."""

    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    TOTAL = "total", "in total"


class Sponsorship(models.Model):
    """A budget that an agent's owner sets aside to pay for its answers to others.

    `amount` is a decimal string in the currency of the agent's prices. Without a row, the owner
    pays for nothing.
    """

    agent = models.ForeignKey(Agent, models.CASCADE, related_name="sponsorships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    period = models.CharField(max_length=10, choices=BudgetPeriod)
    amount = models.CharField(max_length=40)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        """Each constraint is named after the sentence that it keeps true."""

        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["agent", "period"], name="agent_has_one_budget_for_a_period"
            ),
            models.CheckConstraint(
                condition=Q(period__in=["day", "week", "month", "total"]),
                name="sponsorship_period_is_known",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.amount} by {self.period} for {self.agent}"
