"""The A2A 0.3 dialect over REST, with the JSON of its protocol buffers.

It differs both from 0.3 over JSON-RPC and from 1.0: a message has `content`, a file is
`fileWithUri` or `fileWithBytes`, and the state of a cancelled task is CANCELLED.
"""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

import msgspec

from gateway_app.a2a.dialects import push
from gateway_app.a2a.dialects.requests import PARTS, WireMessage, WireParams
from gateway_app.a2a.dialects.requests_v03 import (
    ConfigurationV03,
    FileV03,
    file_part,
    parse_message_v03,
)
from gateway_app.a2a.dialects.v1 import ROLES, task_state
from gateway_app.a2a.dialects.writing import (
    TaskDialect,
    TaskJson,
    Vocabulary,
    named_file,
    object_of,
)
from gateway_app.a2a.tasks.messages import SentMessage, invalid
from gateway_app.a2a.tasks.task import TaskPart


class ProtoFile(FileV03, frozen=True, kw_only=True):
    """The file of a part."""

    bytes: str | None = msgspec.field(default=None, name="fileWithBytes")
    uri: str | None = msgspec.field(default=None, name="fileWithUri")


class ProtoData(WireParams, frozen=True, kw_only=True):
    """The value of a part."""

    data: dict[str, Any]


class ProtoPart(WireParams, frozen=True, kw_only=True):
    """A part of a message; exactly one member is set."""

    text: str | None = None
    file: ProtoFile | None = None
    data: ProtoData | None = None


class ProtoMessage(WireMessage, frozen=True, kw_only=True):
    """A message of a client."""

    role: Literal["ROLE_USER"]
    content: Annotated[tuple[ProtoPart, ...], PARTS]


class ProtoConfiguration(ConfigurationV03, frozen=True, kw_only=True):
    """The client's options for the answer."""

    receiver: push.PushConfigV03 | None = msgspec.field(default=None, name="pushNotification")


class ProtoSendParams(WireParams, frozen=True, kw_only=True):
    """The body of message:send and message:stream."""

    message: ProtoMessage
    configuration: ProtoConfiguration | None = None
    metadata: dict[str, Any] | None = None


def _sent_of(params: ProtoSendParams) -> SentMessage:
    return parse_message_v03(
        params.message,
        map(_part, params.message.content),
        configuration=params.configuration,
        metadata=params.metadata,
    )


def _part(part: ProtoPart) -> TaskPart:
    if sum(member is not None for member in (part.text, part.file, part.data)) != 1:
        raise invalid("A part must have exactly one of text, file and data.")
    if part.data is not None:
        return TaskPart(data=part.data.data)
    file = part.file
    if file is None:
        return TaskPart(text=part.text)
    return file_part(file, "fileWithUri or fileWithBytes")


def _state(state: str) -> str:
    return task_state(state).replace("CANCELED", "CANCELLED")


def _shown_part(part: TaskPart) -> dict[str, Any]:
    if part.text is not None:
        return {"text": part.text}
    if part.raw is None and part.url is None:
        return {"data": {"data": object_of(part.data)}}
    file = {"fileWithUri": part.url} if part.url is not None else {"fileWithBytes": part.raw}
    return {"file": named_file(file, part)}


DIALECT: Final = TaskDialect(
    version="0.3",
    send_params=ProtoSendParams,
    parse_message=_sent_of,
    json=TaskJson(
        Vocabulary(roles=ROLES, state=_state, part=_shown_part, parts="content", has_final=True)
    ),
    push=push.V03_REST,
    names_task=True,
)
