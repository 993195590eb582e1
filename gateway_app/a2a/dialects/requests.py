"""The request parameters that all versions of A2A share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from gateway_app.a2a.tasks.messages import HistoryLength, Id, SentMessage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway_app.a2a.tasks.task import TaskPart
    from gateway_app.types.webhook_receiver import WebhookReceiver

RequiredId = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
OptionalId = Annotated[str, msgspec.Meta(max_length=256)]
Filename = Annotated[str, msgspec.Meta(max_length=255)]
MediaType = Annotated[str, msgspec.Meta(max_length=127)]
_FREE = frozenset({"metadata", "data"})
# The output modes of clients that accept values; "data" comes from the first versions.
_DATA_MODES = frozenset({"application/json", "application/*", "*/*", "data"})
PARTS = msgspec.Meta(min_length=1, max_length=64)


class WireParams(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Base class of client input; unknown members are ignored."""


class WireMessage(WireParams, frozen=True, kw_only=True):
    """A message of a client, without its role and parts."""

    message_id: Id
    context_id: OptionalId | None = None
    task_id: OptionalId | None = None
    metadata: dict[str, Any] | None = None


class WireConfiguration(WireParams, frozen=True, kw_only=True):
    """The client's options for the answer; the versions name the blocking option differently."""

    accepted_output_modes: tuple[str, ...] | None = None
    history_length: HistoryLength | None = None


class TaskParams(WireParams, frozen=True, kw_only=True):
    """The parameters of methods that concern one task."""

    id: Id
    history_length: HistoryLength | None = None


def sent_message(
    message: WireMessage,
    parts: Iterable[TaskPart],
    *,
    configuration: WireConfiguration,
    metadata: Mapping[str, Any] | None,
    blocking: bool,
    receiver: WebhookReceiver | None,
) -> SentMessage:
    """Build the message of a request; its own metadata overrides the request's `metadata`."""
    modes = {
        mode.partition(";")[0].strip().lower() for mode in configuration.accepted_output_modes or ()
    }
    return SentMessage(
        message_id=message.message_id,
        parts=tuple(parts),
        context_id=message.context_id or "",
        task_id=message.task_id or "",
        metadata={**(metadata or {}), **(message.metadata or {})},
        blocking=blocking,
        history_length=configuration.history_length,
        receiver=receiver,
        accepts_data=not modes or not modes.isdisjoint(_DATA_MODES),
    )


def json_names(params: Any) -> Any:
    """Rename parameters to their JSON names; ProtoJSON also accepts `task_id` for `taskId`.

    Values that belong to the client, such as `metadata` and `data`, keep their names.
    """
    if isinstance(params, list):
        return [json_names(item) for item in params]
    if not isinstance(params, dict):
        return params
    return {
        _json_name(name): value if name in _FREE else json_names(value)
        for name, value in params.items()
    }


def _json_name(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)
