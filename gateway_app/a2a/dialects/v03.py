"""The words of A2A 0.3: its requests, and its JSON, in which `kind` names the type."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal, TypeAlias

from gateway_app.a2a.dialects import push
from gateway_app.a2a.dialects.push import PushConfigV03, receiver_v03
from gateway_app.a2a.dialects.requests import (
    PARTS,
    Filename,
    MediaType,
    WireConfiguration,
    WireMessage,
    WireParams,
    sent_message,
)
from gateway_app.a2a.dialects.writing import (
    TaskDialect,
    TaskJson,
    Vocabulary,
    named_file,
    object_of,
)
from gateway_app.a2a.tasks.messages import SentMessage, invalid
from gateway_app.a2a.tasks.task import TaskPart


class FileV03(WireParams, frozen=True, kw_only=True):
    """The file of a part: base64 bytes, or a URI."""

    bytes: str | None = None
    uri: str | None = None
    name: Filename | None = None
    mime_type: MediaType | None = None


class TextPartV03(WireParams, frozen=True, kw_only=True, tag_field="kind", tag="text"):
    """Text."""

    text: str


class FilePartV03(WireParams, frozen=True, kw_only=True, tag_field="kind", tag="file"):
    """A file."""

    file: FileV03


class DataPartV03(WireParams, frozen=True, kw_only=True, tag_field="kind", tag="data"):
    """A value."""

    data: dict[str, Any]


PartV03: TypeAlias = TextPartV03 | FilePartV03 | DataPartV03


class MessageV03(WireMessage, frozen=True, kw_only=True):
    """A message of a client."""

    role: Literal["user"]
    parts: Annotated[tuple[PartV03, ...], PARTS]


class ConfigurationV03(WireConfiguration, frozen=True, kw_only=True):
    """How the client wants the answer; a client that names nothing waits for it."""

    push_notification_config: PushConfigV03 | None = None
    blocking: bool | None = None


class SendParamsV03(WireParams, frozen=True, kw_only=True):
    """The parameters of message/send and message/stream."""

    message: MessageV03
    configuration: ConfigurationV03 | None = None
    metadata: dict[str, Any] | None = None


def _sent_of(params: SendParamsV03) -> SentMessage:
    wanted = params.configuration or ConfigurationV03()
    config = wanted.push_notification_config
    return sent_message(
        params.message,
        map(_part, params.message.parts),
        wanted=wanted,
        metadata=params.metadata,
        blocking=wanted.blocking is not False,
        receiver=None if config is None else receiver_v03(config),
    )


def _part(part: PartV03) -> TaskPart:
    match part:
        case TextPartV03():
            return TaskPart(text=part.text)
        case DataPartV03():
            return TaskPart(data=part.data)
    file = part.file
    if (file.bytes is None) == (file.uri is None):
        raise invalid("A file has bytes or a uri.")
    return TaskPart(raw=file.bytes, url=file.uri, filename=file.name, media_type=file.mime_type)


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
    sent_of=_sent_of,
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
