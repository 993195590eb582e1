"""What a response asks of its agent: the session's configuration and its overrides (UAMP §5.12)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

import uamp
from agents_app.runtime import RunRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_app.checkpoints import Checkpoint


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
    )
