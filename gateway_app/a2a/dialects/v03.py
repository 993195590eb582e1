"""The A2A 0.3 dialect: its requests, and its JSON, in which `kind` names the type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, TypeAlias

from gateway_app.a2a.dialects import push, requests_v03
from gateway_app.a2a.dialects.requests import PARTS, WireMessage, WireParams
from gateway_app.a2a.dialects.requests_v03 import file_part, parse_message_v03
from gateway_app.a2a.dialects.writing import (
    TaskDialect,
    TaskJson,
    Vocabulary,
    named_file,
    object_of,
)
from gateway_app.a2a.tasks.task import TaskPart

if TYPE_CHECKING:
    from gateway_app.a2a.tasks.messages import SentMessage


class TextPartV03(WireParams, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """Text."""

    text: str


class FilePartV03(WireParams, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """A file."""

    file: requests_v03.FileV03


class DataPartV03(WireParams, frozen=True, kw_only=True, tag_field="kind", tag="data"):
    """A value."""

    data: dict[str, Any]


PartV03: TypeAlias = TextPartV03 | FilePartV03 | DataPartV03


class MessageV03(WireMessage, frozen=True, kw_only=True):
    """A message of a client."""

    role: Literal["user"]
    parts: Annotated[tuple[PartV03, ...], PARTS]


class SendParamsV03(WireParams, frozen=True, kw_only=True):
    """The parameters of message/send and message/stream."""

    message: MessageV03
    configuration: requests_v03.ConfigurationV03 | None = None
    metadata: dict[str, Any] | None = None


def _sent_of(params: SendParamsV03) -> SentMessage:
    return parse_message_v03(
        params.message,
        map(_part, params.message.parts),
        configuration=params.configuration,
        metadata=params.metadata,
    )


def _part(part: PartV03) -> TaskPart:
    match part:
        case TextPartV03():
            return TaskPart(text=part.text)
        case DataPartV03():
            return TaskPart(data=part.data)
    return file_part(part.file, "bytes or a uri")


def _shown_part(part: TaskPart) -> dict[str, Any]:
    if part.text is not None:
        return {"kind": "text", "text": part.text}
    if part.raw is None and part.url is None:
        return {"kind": "data", "data": object_of(part.data)}
    file = {"bytes": part.raw} if part.url is None else {"uri": part.url}
    return {"kind": "file", "file": named_file(file, part)}


DIALECT: Final = TaskDialect(
    version="0.3",
    send_params=SendParamsV03,
    parse_message=_sent_of,
    json=TaskJson(
        Vocabulary(
            roles={"user": "user", "agent": "agent"},
            state=str,
            part=_shown_part,
            has_kinds=True,
            has_final=True,
        )
    ),
    push=push.V03,
    names_task=False,
)
