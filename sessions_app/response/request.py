"""Requests to agents: a session's options and a response's overrides (UAMP §5.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from agents_app.pricing import FREE, Pricing
from agents_app.providers.options import SPEECH_FORMATS
from agents_app.runtime.agent_run import RunRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.checkpoints import ResponseCheckpoint
    from agents_app.remote.tasks import TaskHandle
    from agents_app.selectors import AgentSpec
    from uamp.shared_state import VersionedState

_OPTIONS: Final = ("model", *uamp.GenerationOptions.__struct_fields__)


class ResponseRequest(uamp.GenerationOptions, frozen=True, kw_only=True, omit_defaults=True):
    """A response's overrides of its session, as stored in its row (UAMP §5.12).

    `context` is the whole conversation of a stateless turn; `before` are system and assistant
    inputs that precede the message.
    """

    instructions: str | None = None
    tools: tuple[uamp.ToolDefinition, ...] | None = None
    modalities: tuple[str, ...] | None = None
    voice: uamp.VoiceConfig | None = None
    output_audio_format: str | None = None
    response_format: uamp.ResponseFormat | None = None
    model: str | None = None
    context: tuple[uamp.Message, ...] | None = None
    before: tuple[uamp.Message, ...] = ()
    # Whether the conversation ends with the message of the turn, which a row of its own has.
    has_message: bool = False
    # Whether a call to a client tool ends the response instead of waiting for `tool.result`.
    ends_at_tools: bool = False
    # The digest of the conversation that a request sent whose answer may end at its tools, with
    # which a later request has to begin to continue the answer.
    conversation: str = ""
    # The first version of the answer that this one replaces.
    replaces: str | None = None
    # The root message of the answer's thread.
    thread: str | None = None
    # The number of consecutive agent-to-agent mentions that led to this response.
    hops: int = 0
    # The asker's credential, whose budget counts the cost.
    credential: str = ""
    # Whether its asker neither addressed the agent nor chose its trigger. Their standing approvals
    # and their session's token then pay nothing.
    unprompted: bool = False
    # How many responses of the same answer came before, each of which ended at a client's tool.
    rounds: int = 0
    # The payment token that was attached when it was asked for.
    payment_token: str = ""
    # Who passed the asker's token on (Principal.actors).
    actors: tuple[tuple[str, int], ...] = ()
    # The ids of the agents that the asker's credential may ask; None restricts nothing.
    agents: tuple[str, ...] | None = None
    # The ids of the chats that the asker's credential is for; None restricts nothing.
    chats: tuple[str, ...] | None = None
    # How many servers forwarded the request (docs/agents.md#remote-agents).
    servers: int = 0
    # The message that it answers, and its hash at the time (`question`).
    question_id: str | None = None
    question_hash: str = ""
    # What its asker agreed to: later prices of the agent do not apply. None if it is free.
    pricing: Pricing | None = None


def history_of(
    overrides: ResponseRequest, visible: Sequence[uamp.Message], *, has_message: bool
) -> list[uamp.Message]:
    """Return the conversation that an agent answers; with `has_message` it ends with the turn's.

    `visible` is what the agent sees of the chat, or only that message in a stateless turn.
    """
    history = [*(overrides.context or ()), *visible]
    at = len(history) - has_message
    history[at:at] = overrides.before
    return history


def with_agreed_prices(spec: AgentSpec, pricing: object) -> AgentSpec:
    """Return an agent with the prices at which a response was started, as stored in its row."""
    agreed = FREE if pricing is None else msgspec.convert(pricing, Pricing)
    return spec if spec.pricing == agreed else msgspec.structs.replace(spec, pricing=agreed)


def run_request(
    response_id: str,
    config: uamp.SessionConfig,
    overrides: ResponseRequest,
    history: Sequence[uamp.Message],
    *,
    resume: Sequence[uamp.ContentItem] = (),
    checkpoint: ResponseCheckpoint | None = None,
    remote_task: TaskHandle | None = None,
    written: int = 0,
    asker: str = "",
    shared_state: VersionedState | None = None,
) -> RunRequest:
    """Build the request to an agent from its session and the response's overrides."""
    return RunRequest(
        response_id=response_id,
        history=history,
        ends_at_tools=overrides.ends_at_tools,
        instructions=_first(overrides.instructions, config.instructions),
        tools=config.tools if overrides.tools is None else overrides.tools,
        response_format=_first(overrides.response_format, config.response_format),
        params=_params(config, overrides),
        resume=resume,
        checkpoint=checkpoint,
        remote_task=remote_task,
        written=written,
        asker=asker,
        servers=overrides.servers,
        shared_state=shared_state,
    )


def _params(config: uamp.SessionConfig, overrides: ResponseRequest) -> dict[str, Any]:
    """Return the model's options as builtins; the response's take precedence."""
    params: dict[str, Any] = {}
    for name in _OPTIONS:
        override = getattr(overrides, name)
        value = config.extensions.get(name) if override is None else msgspec.to_builtins(override)
        if value is not None:
            params[name] = value
    if "audio" in (overrides.modalities or config.modalities):
        voice = overrides.voice or config.voice or uamp.VoiceConfig()
        audio_format = _first(overrides.output_audio_format, config.output_audio_format)
        params["speech"] = {"voice": voice.voice_id, "format": speech_format(audio_format)}
    if config.extensions:
        params["extensions"] = config.extensions
    return params


def speech_format(audio_format: str | None) -> str:
    """Return the audio format for speaking an answer."""
    return audio_format if audio_format in SPEECH_FORMATS else SPEECH_FORMATS[0]


def _first(override: Any, of_session: Any) -> Any:
    """Return the override unless it is None; 0, "" and [] are values."""
    return of_session if override is None else override
