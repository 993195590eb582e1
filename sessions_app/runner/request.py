"""What a transport asks for, and what a response asks of its agent (UAMP §5.12)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

import uamp
from agents_app.runtime import RunRequest

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_app.checkpoints import Checkpoint
    from agents_app.selectors import AgentSpec
    from payments_app.money import Money
    from sessions_app.payers import Source
    from sessions_app.runner.run import Run
    from sessions_app.selectors import OpenSession
    from uamp import events as ev

    Pay: TypeAlias = Callable[[OpenSession, AgentSpec, Money], Awaitable[Source]]


@dataclass(frozen=True, kw_only=True, slots=True)
class TurnRequest:
    """A turn as a transport asks for it. `sha256` is the digest of everything that it says."""

    session: OpenSession
    event_id: str
    sha256: str
    inputs: Sequence[ev.InputEvent]
    create: ev.ResponseCreate
    pending_input_ids: Sequence[int] = ()
    origin: str = ""
    # Items that were checked before; the message gets them after what it says itself.
    attachments: Sequence[uamp.ContentItem] = ()
    # What a transport does about an answer that nothing pays for yet, before anything is written:
    # it returns what pays, or refuses the turn. None: somebody is asked while the answer waits.
    pay: Pay | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StartedTurn:
    """What a turn led to; for a repeated event, what it led to the first time."""

    response_ids: Sequence[str]
    runs: Sequence[Run] = ()
    repeated: bool = False


class ResponseRequest(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a response overrides of its session, as its row keeps it (UAMP §5.12).

    `context` is the whole conversation of a stateless turn; `before` are system and assistant
    inputs that come before the message.
    """

    instructions: str | None = None
    tools: tuple[uamp.ToolDefinition, ...] | None = None
    modalities: tuple[str, ...] | None = None
    response_format: uamp.ResponseFormat | None = None
    model: str | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    context: tuple[uamp.Message, ...] | None = None
    before: tuple[uamp.Message, ...] = ()


def run_request(
    response_id: str,
    config: uamp.SessionConfig,
    overrides: ResponseRequest,
    history: Sequence[uamp.Message],
    *,
    resume: Sequence[uamp.ContentItem] = (),
    checkpoint: Checkpoint | None = None,
    written: int = 0,
) -> RunRequest:
    """Return what an agent is asked, from its session and what this response overrides."""
    params: dict[str, Any] = {
        name: value
        for name in ("model", "temperature", "max_tokens")
        if (value := getattr(overrides, name) or config.extensions.get(name)) is not None
    }
    return RunRequest(
        response_id=response_id,
        history=history,
        instructions=overrides.instructions or config.instructions,
        tools=config.tools if overrides.tools is None else overrides.tools,
        response_format=overrides.response_format or config.response_format,
        params=params,
        resume=resume,
        checkpoint=checkpoint,
        written=written,
    )
