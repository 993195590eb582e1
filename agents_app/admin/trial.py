"""One question to an agent from the admin, without a chat.

A trial uses the same runtime as every answer, but has no turn. The operator who runs it pays for an
agent with a price; apart from that, only the fact that it took place is recorded. Operators may
read a provider's own messages, but keys are never shown. Tools that need a chat, a worker or a
client refuse with a message.
"""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import msgspec
from asgiref.sync import sync_to_async
from django import forms
from django.conf import settings
from django.contrib import admin
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from agents_app.conversation.delegation_orders import DelegationOrder
from agents_app.models import Agent
from agents_app.runtime.agent_run import AgentError, RunRequest, run_agent
from agents_app.selectors import AgentSpec, get_spec
from agents_app.tools.registry import ServerTool, ToolError, ToolOutcome
from audit_app.admin.records import record_request
from audit_app.record import AuditAction
from uamp.errors import ErrorCode
from uamp.events import Event, UsageDelta, text_delta
from uamp.json_patch import PatchOperation
from uamp.output import OutputBuilder
from uamp.shared_state import VersionedState
from uamp.types.content import ContentItem, Message, ToolCallData
from uamp.types.session import UsageStats

PROMPT_CHARS = 32_000
PERMISSION = "agents_app.try_agent"
PROBE = "Answer with the one word: ready."
"""The question of a probe, sent to the bare model without tools or instructions."""
PROBE_TOKENS = 64
"""The tokens that a probe's answer may have: some models think before they answer."""
PROBE_SECONDS = 20.0
_MINUTE = 60


@dataclass(kw_only=True)
class Trial:
    """The outcome of a trial: content items as builtins, usage and errors.

    `error` is the message for users; `detail` is the provider's own message, for operators.
    """

    output: list[dict[str, Any]] = field(default_factory=list)
    usage: UsageStats | None = None
    model: str = ""
    steps: int = 0
    seconds: float = 0.0
    error: str = ""
    code: str = ""
    detail: str = ""
    cost: str = ""


class TrialPaymentPort(Protocol):
    """Reserves and settles the cost of a trial; raises AgentError if a reservation fails."""

    async def open(self) -> None:
        """Reserve the first step."""

    async def admit_step(self) -> None:
        """Reserve another step."""

    async def admit_tool(self, call: ToolCallData) -> None:
        """Reserve the price of a tool."""

    async def wrote(self, text: str) -> None:
        """Reserve the cost of text that the model writes into its calls."""

    def inference_sent(self) -> None:
        """Count the input of an inference that is being sent."""

    async def saw(self, event: Event) -> None:
        """Reserve the cost of an event."""

    async def close(self, code: str | None) -> object:
        """Settle what was used, release the rest and return the amount charged.

        `code` is the error with which the trial ended, if any.
        """


class _NothingDue:
    """The payment port of a free agent; refuses an agent with a price, as there is no payer."""

    def __init__(self, *, is_free: bool) -> None:
        self._is_free = is_free

    async def open(self) -> None:
        if not self._is_free:
            raise AgentError("This trial has no payer.", code=ErrorCode.PAYMENT_REQUIRED)

    async def admit_step(self) -> None:
        """Allow it."""

    async def admit_tool(self, call: ToolCallData) -> None:
        """Allow it."""

    async def wrote(self, text: str) -> None:
        """Allow it."""

    def inference_sent(self) -> None:
        """Allow it."""

    async def saw(self, event: Event) -> None:
        """Allow it."""

    async def close(self, code: str | None) -> str:
        del code
        return ""


_payment: Callable[[int, AgentSpec, RunRequest], TrialPaymentPort] | None = None


def paid_by(payment: Callable[[int, AgentSpec, RunRequest], TrialPaymentPort]) -> None:
    """Set the factory of payments, called with the operator's id, the agent and the request."""
    global _payment  # noqa: PLW0603 one for the process
    _payment = payment


def _payment_of(spec: AgentSpec, request: RunRequest, user_id: int | None) -> TrialPaymentPort:
    if spec.pricing.is_free or _payment is None or user_id is None:
        return _NothingDue(is_free=spec.pricing.is_free)
    return _payment(user_id, spec, request)


async def probe_agent(spec: AgentSpec, *, user_id: int | None = None) -> Trial:
    """Ask the bare model of an agent for one word, within tight limits (PROBE…)."""
    bare = msgspec.structs.replace(
        spec,
        instructions="",
        tools=(),
        source_tools=(),
        approvals=(),
        delegates=(),
        strategy="loop",
        strategy_options={},
        max_steps=1,
        max_output_tokens=min(PROBE_TOKENS, spec.max_output_tokens or PROBE_TOKENS),
    )
    seconds = min(PROBE_SECONDS, settings.UAMP_TRIAL_SECONDS)
    return await try_agent(bare, PROBE, user_id=user_id, seconds=seconds)


async def try_agent(
    spec: AgentSpec, prompt: str, *, user_id: int | None = None, seconds: float | None = None
) -> Trial:
    """Ask an agent once, for at most `seconds` (UAMP_TRIAL_SECONDS); failures are in the Trial.

    `user_id` pays for an agent with a price; without a payer, it is refused.
    """
    trial, builder, began = Trial(), OutputBuilder(), time.monotonic()
    request = RunRequest(
        response_id="trial", history=[Message(role="user", content=prompt)], params={}
    )
    payment = _payment_of(spec, request, user_id)
    broker = TrialBroker(payment)

    async def receive(output: Event | str) -> None:
        event = text_delta(request.response_id, output) if isinstance(output, str) else output
        await payment.saw(event)
        if isinstance(event, UsageDelta):
            trial.usage = _added(trial.usage, event.delta)
        else:
            builder.add(event)

    try:
        await payment.open()
        async with asyncio.timeout(seconds or settings.UAMP_TRIAL_SECONDS):
            end = await run_agent(spec, request, receive, broker=broker, media=broker)
        trial.usage, trial.model, trial.steps = end.usage, end.model, end.steps
    except TimeoutError:
        trial.code, trial.error = "timeout", "The trial took too long and was stopped."
    except AgentError as error:
        trial.code, trial.error = str(error.code), error.message
        trial.detail = error.cause
    finally:
        trial.cost = str(await payment.close(trial.code or None))
    trial.seconds = time.monotonic() - began
    trial.output = msgspec.to_builtins(builder.output)
    return trial


def _added(usage: UsageStats | None, more: UsageStats) -> UsageStats:
    usage = usage or UsageStats()
    return UsageStats(
        input_tokens=(usage.input_tokens or 0) + (more.input_tokens or 0),
        output_tokens=(usage.output_tokens or 0) + (more.output_tokens or 0),
    )


class TrialBroker:
    """The broker of a run without a chat: the operator pays, and no other agent takes part."""

    def __init__(self, payment: TrialPaymentPort) -> None:
        self._payment = payment

    async def admit_step(self) -> None:
        """Allow the step once it is paid for."""
        await self._payment.admit_step()

    async def admit_tool(self, call: ToolCallData) -> None:
        """Allow the call once it is paid for."""
        await self._payment.admit_tool(call)

    async def wrote(self, text: str) -> None:
        """Count the text once it is paid for."""
        await self._payment.wrote(text)

    def inference_sent(self) -> None:
        """Count the input."""
        self._payment.inference_sent()

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Refuse: a trial has no contents."""
        raise LookupError(content_id)

    async def present(self, content_ids: Sequence[str]) -> tuple[ContentItem, ...]:
        """Refuse: a trial has no chat."""
        raise ToolError(f"A trial has no chat that could be shown {len(content_ids)} contents.")

    async def shared_state(self) -> VersionedState:
        """Return the state of a new chat, as a trial has none."""
        return VersionedState()

    async def change_state(
        self, patch: Sequence[PatchOperation], *, version: int
    ) -> VersionedState:
        """Refuse: a trial has no chat."""
        raise ToolError(
            f"A trial has no state that could have {len(patch)} changes (version {version})."
        )

    async def delegate(self, call: ToolCallData, order: DelegationOrder) -> ToolOutcome:
        """Refuse: delegated work needs a chat."""
        return _refused(f"{call.name} is not run in a trial: {order.agent} was not asked.")

    async def hand_over(self, call: ToolCallData) -> None:
        """Do nothing: a trial declares no client tools."""

    async def client_tool(self, call: ToolCallData) -> ToolOutcome:
        """Refuse: there is no client."""
        return _refused(f"{call.name} is not run in a trial: there is no client.")

    async def long_tool(self, tool: ServerTool, call: ToolCallData) -> ToolOutcome:
        """Refuse: a long tool needs a worker, and a chat for its files."""
        return _refused(
            f"{tool.name} is a long-running tool and is not run in a trial."
            f" Ask the agent in a chat. It was called with {call.arguments[:500]}."
        )


def _refused(words: str) -> ToolOutcome:
    return ToolOutcome(result=words, is_error=True)


# --- The page ---


class TrialForm(forms.Form):
    """The question to the agent."""

    prompt = forms.CharField(max_length=PROMPT_CHARS, widget=forms.Textarea(attrs={"rows": 4}))


@never_cache
async def trial_view(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Show the form and the outcome of a trial, without blocking a thread on the model.

    Needs `agents_app.try_agent`; raises PermissionDenied without it, and Http404 for an unknown
    agent.
    """
    user = await request.auser()
    if not (isinstance(user, User) and user.is_active and user.is_staff):
        return redirect_to_login(request.get_full_path(), reverse("admin:login"))
    if not await user.ahas_perm(PERMISSION):
        raise PermissionDenied
    agent = await Agent.objects.filter(pk=agent_id).afirst()
    if agent is None:
        raise Http404
    is_probe = request.method == "POST" and "probe" in request.POST
    sent = {"prompt": PROBE} if is_probe else request.POST
    form = TrialForm(sent if request.method == "POST" else None)
    trial, status = None, 200
    if form.is_valid():
        if await is_admitted(user):
            spec = await sync_to_async(get_spec)(agent.pk)
            done = "Probed it" if is_probe else "Tried it"
            await sync_to_async(record_trial)(request, agent, done)
            if is_probe:
                trial = await probe_agent(spec, user_id=user.pk)
            else:
                trial = await try_agent(spec, form.cleaned_data["prompt"], user_id=user.pk)
            await sync_to_async(log_outcome)(user, agent, trial, done)
        else:
            status = 429
            form.add_error(None, too_many())
    return await sync_to_async(_page)(request, agent, form, trial, status)


async def is_admitted(user: User) -> bool:
    """Count a trial or an address lookup against a person's limit; return whether it is allowed."""
    return await sync_to_async(may_look)(user)


def may_look(user: User) -> bool:
    """Do the same as `is_admitted`. Synchronous."""
    key = f"trials:{user.pk}:{int(time.time()) // _MINUTE}"
    cache.add(key, 0, timeout=_MINUTE)
    return bool(cache.incr(key) <= settings.UAMP_TRIALS_PER_MINUTE)


def too_many() -> str:
    """Say that a person's limit is reached."""
    return f"You have run {settings.UAMP_TRIALS_PER_MINUTE} trials in a minute. Wait a moment."


def record_trial(request: HttpRequest, agent: Agent | None, done: str) -> None:
    """Record a trial, but not its question; `agent` is None if it has no row.

    It is recorded before it begins, since it is stopped when the operator disconnects.
    """
    subject = agent or (Agent._meta.label_lower, "")  # noqa: SLF001 documented API
    record_request(request, AuditAction.AGENT_PROBED, subject, detail=f"{done}.")


def log_outcome(user: User, agent: Agent, trial: Trial, done: str) -> None:
    """Write the outcome of a trial to the history of its agent."""
    end = f"it failed ({trial.code})" if trial.code else f"{trial.steps} steps"
    detail = f"{done}: {end}, {trial.seconds:.1f} s."
    LogEntry.objects.log_actions(user.pk, [agent], CHANGE, detail, single_object=True)


def _page(
    request: HttpRequest, agent: Agent, form: TrialForm, trial: Trial | None, status: int
) -> HttpResponse:
    context = {
        **admin.site.each_context(request),
        "opts": Agent._meta,  # noqa: SLF001 the admin's templates need it
        "original": agent,
        "title": f"Try {agent.name}",
        "form": form,
        "trial": trial,
        "price": agent.pricing,
        "currency": agent.pricing.get("currency", "USD"),
        "seconds": settings.UAMP_TRIAL_SECONDS,
    }
    return render(request, "admin/agents_app/agent/trial.html", context, status=status)
