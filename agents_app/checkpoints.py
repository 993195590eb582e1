"""Saved progress of responses, from which another process can continue (UAP §12).

A checkpoint holds what a response has added to its conversation and the output shown so far. It
never holds the conversation itself, which is in the chat. Each step replaces the checkpoint; it is
deleted when the response ends.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec

from agents_app.models import Checkpoint
from uamp.storable_text import storable_json
from uamp.types.content import ContentItem, TextContent, ThinkingContent
from uamp.types.session import UsageStats
from uap import VERSION, AgentState, InvalidState
from upp import ToolResultMessage
from upp.conversation.messages import with_joined_results


class UnreadableCheckpointError(ValueError):
    """The checkpoint was written by another version of this server."""


@dataclass(frozen=True, kw_only=True)
class ResponseCheckpoint:
    """The state of a response after its last completed step.

    `state` holds only the messages of this response. `output` is what had been shown and `usage`
    what had been used by then, None if an older version saved it. `step` counts the steps so far,
    and `fence` is the number of the takeover that saved it.
    """

    state: AgentState
    output: tuple[ContentItem, ...]
    step: int
    fence: int
    usage: UsageStats | None = None

    @property
    def tool_rounds(self) -> int:
        """The number of tool rounds in the response so far."""
        messages = with_joined_results(self.state.messages)
        return sum(isinstance(message, ToolResultMessage) for message in messages)

    def output_since(self, output: Sequence[ContentItem]) -> tuple[ContentItem, ...]:
        """Return the part of a later `output` that this checkpoint does not have yet."""
        whole = len(self.output)
        rest = tuple(output[whole:])
        if not whole or len(output) < whole:
            return rest
        # Only the last item can have grown.
        match self.output[-1], output[whole - 1]:
            case TextContent(text=before), TextContent(text=now) if len(now) > len(before):
                return (TextContent(text=now[len(before) :]), *rest)
            case ThinkingContent(thinking=before), ThinkingContent(thinking=now) if len(now) > len(
                before
            ):
                return (ThinkingContent(thinking=now[len(before) :]), *rest)
        return rest


# --- Rows; synchronous ---


def save(
    response_id: str,
    *,
    state: AgentState,
    output: Sequence[ContentItem],
    usage: UsageStats | None = None,
    step: int,
    fence: int,
    at: datetime,
) -> None:
    """Save a checkpoint, replacing the response's previous one."""
    Checkpoint.objects.update_or_create(
        response_id=response_id,
        defaults={
            "state": storable_json(state.to_json()),
            "output": msgspec.to_builtins(tuple(output)),
            "usage": msgspec.to_builtins(usage or UsageStats()),
            "step": step,
            "version": VERSION,
            "fence": fence,
            "updated_at": at,
        },
    )


def load(response_id: str) -> ResponseCheckpoint | None:
    """Return a response's checkpoint, or None. Raises UnreadableCheckpointError."""
    row = Checkpoint.objects.filter(pk=response_id).first()
    if row is None:
        return None
    try:
        state = AgentState.from_json(row.state)
        output = msgspec.convert(row.output, tuple[ContentItem, ...])
        usage = msgspec.convert(row.usage, UsageStats | None)
    except (InvalidState, msgspec.ValidationError) as error:
        raise UnreadableCheckpointError(f"{response_id}, version {row.version}") from error
    return ResponseCheckpoint(
        state=state, output=output, step=row.step, fence=row.fence, usage=usage
    )


def delete(response_ids: Collection[str]) -> None:
    """Delete the checkpoints of responses that have ended. Missing checkpoints are ignored."""
    Checkpoint.objects.filter(pk__in=response_ids).delete()


def saved_before(at: datetime) -> list[str]:
    """Return the responses whose checkpoints were last saved before `at`."""
    return list(Checkpoint.objects.filter(updated_at__lt=at).values_list("pk", flat=True))


def of_response(state: AgentState, *, after: int) -> AgentState:
    """Return a copy of `state` without the `after` messages that precede the response."""
    return replace(state, messages=state.messages[after:])
