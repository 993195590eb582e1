"""The parameters of requests, as far as all versions of A2A have the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from gateway_app.a2a.tasks.messages import HistoryLength, Id, SentMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway_app.a2a.tasks.task import TaskPart
    from gateway_app.shapes.webhook_receiver import WebhookReceiver

RequiredId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
OptionalId = Annotated[str, msgspec.Meta(max_length=256)]
Filename = Annotated[str, msgspec.Meta(max_length=255)]
MediaType = Annotated[str, msgspec.Meta(max_length=127)]
_FREE = frozenset({"metadata", "data"})
# What a client accepts that reads values; "data" is that of the first versions.
_DATA_MODES = frozenset({"application/json", "application/*", "*/*", "data"})
PARTS = msgspec.Meta(min_length=1, max_length=64)


class WireParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base of what a client sends; unknown members are ignored."""


class WireMessage(WireParams, frozen=True, kw_only=True):
    """A message of a client, without its role and parts."""

    message_id: Id
    context_id: OptionalId | None = None
    task_id: OptionalId | None = None
    metadata: dict[str, Any] | None = None


class WireConfiguration(WireParams, frozen=True, kw_only=True):
    """How the client wants the answer; whether it waits for it has two names."""

    accepted_output_modes: tuple[str, ...] | None = None
    history_length: HistoryLength | None = None


class TaskParams(WireParams, frozen=True, kw_only=True):
    """The parameters of methods of one task."""

    id: Id
    history_length: HistoryLength | None = None


def sent_message(
    message: WireMessage,
    parts: Iterable[TaskPart],
    *,
    wanted: WireConfiguration,
    metadata: Mapping[str, Any] | None,
    blocking: bool,
    receiver: WebhookReceiver | None,
) -> SentMessage:
    """Return the message of a request, whose own `metadata` is under that of the message."""
    modes = {mode.partition(";")[0].strip().lower() for mode in wanted.accepted_output_modes or ()}
    return SentMessage(
        message_id=message.message_id,
        parts=tuple(parts),
        context_id=message.context_id or "",
        task_id=message.task_id or "",
        metadata={**(metadata or {}), **(message.metadata or {})},
        blocking=blocking,
        history_length=wanted.history_length,
        receiver=receiver,
        accepts_data=not modes or not modes.isdisjoint(_DATA_MODES),
    )


def json_names(params: Any) -> Any:
    """Return parameters under their JSON names; ProtoJSON takes `task_id` for `taskId` too.

    What is a client's own, as `metadata` and `data`, keeps its names.
    """
    if isinstance(params, list):
        return [json_names(one) for one in params]
    if not isinstance(params, dict):
        return params
    return {
        _json_name(name): value if name in _FREE else json_names(value)
        for name, value in params.items()
    }


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
