"""The request parameters that both bindings of A2A 0.3 share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from gateway_app.a2a.dialects import push
from gateway_app.a2a.dialects.requests import (
    Filename,
    MediaType,
    WireConfiguration,
    WireMessage,
    WireParams,
    sent_message,
)
from gateway_app.a2a.tasks.messages import invalid
from gateway_app.a2a.tasks.task import TaskPart

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gateway_app.a2a.tasks.messages import SentMessage


class FileV03(WireParams, frozen=True, kw_only=True):
    """The file of a part, as base64 bytes or a URI."""

    bytes: str | None = None
    uri: str | None = None
    name: Filename | None = None
    mime_type: MediaType | None = None


class ConfigurationV03(WireConfiguration, frozen=True, kw_only=True):
    """The client's options for the answer; calls block by default."""

    receiver: push.PushConfigV03 | None = msgspec.field(default=None, name="pushNotificationConfig")
    blocking: bool | None = None


def parse_message_v03(
    message: WireMessage,
    parts: Iterable[TaskPart],
    *,
    configuration: ConfigurationV03 | None,
    metadata: Mapping[str, Any] | None,
) -> SentMessage:
    """Build the message of a request over either binding."""
    configuration = configuration or ConfigurationV03()
    return sent_message(
        message,
        parts,
        configuration=configuration,
        metadata=metadata,
        blocking=configuration.blocking is not False,
        receiver=None
        if configuration.receiver is None
        else push.receiver_v03(configuration.receiver),
    )


def file_part(file: FileV03, names: str) -> TaskPart:
    """Convert a file to a part; `names` is how errors call its bytes and its URI."""
    if (file.bytes is None) == (file.uri is None):
        raise invalid(f"A file must have {names}.")
    return TaskPart(raw=file.bytes, url=file.uri, filename=file.name, media_type=file.mime_type)
