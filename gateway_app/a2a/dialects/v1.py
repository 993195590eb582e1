"""The A2A 1.0 dialect: its requests, and tasks and updates in ProtoJSON (A2A §4, §5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec

from gateway_app.a2a.dialects import push
from gateway_app.a2a.dialects.push import PushConfigV1, receiver_v1
from gateway_app.a2a.dialects.requests import (
    PARTS,
    Filename,
    MediaType,
    OptionalId,
    WireConfiguration,
    WireMessage,
    WireParams,
    sent_message,
)
from gateway_app.a2a.dialects.writing import TaskDialect, TaskJson, Vocabulary
from gateway_app.a2a.tasks.messages import HistoryLength, SentMessage, invalid
from gateway_app.a2a.tasks.task import TaskPart

if TYPE_CHECKING:
    from collections.abc import Mapping

PAGE_SIZE: Final = 50
ROLES: Final[Mapping[Literal["user", "agent"], str]] = {"user": "ROLE_USER", "agent": "ROLE_AGENT"}


class PartV1(WireParams, frozen=True, kw_only=True):
    """A part of a message; exactly one of text, raw, url and data is set."""

    text: str | None = None
    raw: str | None = None
    url: str | None = None
    data: Any = msgspec.UNSET
    filename: Filename | None = None
    media_type: MediaType | None = None


class MessageV1(WireMessage, frozen=True, kw_only=True):
    """A message of a client."""

    role: Literal["ROLE_USER"]
    parts: Annotated[tuple[PartV1, ...], PARTS]


class ConfigurationV1(WireConfiguration, frozen=True, kw_only=True):
    """The client's options for the answer."""

    task_push_notification_config: PushConfigV1 | None = None
    return_immediately: bool = False


class SendParamsV1(WireParams, frozen=True, kw_only=True):
    """The parameters of SendMessage and SendStreamingMessage."""

    message: MessageV1
    configuration: ConfigurationV1 | None = None
    metadata: dict[str, Any] | None = None


class ListParams(WireParams, frozen=True, kw_only=True):
    """The parameters of ListTasks."""

    context_id: OptionalId = ""
    status: str = ""
    page_size: Annotated[int, msgspec.Meta(ge=1, le=100)] = PAGE_SIZE
    page_token: Annotated[str, msgspec.Meta(max_length=512)] = ""
    history_length: HistoryLength | None = None
    status_timestamp_after: str = ""
    include_artifacts: bool = False


def _sent_of(params: SendParamsV1) -> SentMessage:
    configuration = params.configuration or ConfigurationV1()
    config = configuration.task_push_notification_config
    return sent_message(
        params.message,
        map(_part, params.message.parts),
        configuration=configuration,
        metadata=params.metadata,
        blocking=not configuration.return_immediately,
        receiver=None if config is None else receiver_v1(config),
    )


def _part(part: PartV1) -> TaskPart:
    contents = (part.text, part.raw, part.url)
    has_data = part.data is not msgspec.UNSET
    if sum(content is not None for content in contents) + has_data != 1:
        raise invalid("A part must have exactly one of text, raw, url and data.")
    return TaskPart(
        text=part.text,
        raw=part.raw,
        url=part.url,
        data=part.data if has_data else None,
        filename=part.filename,
        media_type=part.media_type,
    )


def task_state(state: str) -> str:
    """Return a state in the spelling of 1.0."""
    return "TASK_STATE_" + state.upper().replace("-", "_")


def _shown_part(part: TaskPart) -> dict[str, Any]:
    members: dict[str, Any] = {}
    if part.text is not None:
        members["text"] = part.text
    elif part.raw is not None:
        members["raw"] = part.raw
    elif part.url is not None:
        members["url"] = part.url
    else:
        members["data"] = part.data
    if part.filename:
        members["filename"] = part.filename
    if part.media_type:
        members["mediaType"] = part.media_type
    return members


DIALECT: Final = TaskDialect(
    version="1.0",
    send_params=SendParamsV1,
    parse_message=_sent_of,
    json=TaskJson(Vocabulary(roles=ROLES, state=task_state, part=_shown_part)),
    push=push.V1,
    names_task=True,
)
