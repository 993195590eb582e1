"""A2A's push notification formats: the receivers of a task's states (A2A §3.1.7, §4.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec

from gateway_app.a2a.dialects.requests import OptionalId, RequiredId, WireParams
from gateway_app.types.webhook_receiver import WebhookReceiver

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

# Limited to characters that a header may contain, since these values are sent in headers.
Url = Annotated[str, msgspec.Meta(min_length=1, max_length=2048)]
Token = Annotated[str, msgspec.Meta(max_length=1024, pattern=r"\A[\x21-\x7e]*\Z")]
Scheme = Annotated[str, msgspec.Meta(max_length=64, pattern=r"\A[A-Za-z0-9!#$%&'*+.^_`|~-]*\Z")]
Credentials = Annotated[str, msgspec.Meta(max_length=4096, pattern=r"\A[\x20-\x7e]*\Z")]


# --- 1.0 ---


class PushAuthenticationV1(WireParams, frozen=True, kw_only=True):
    """The credentials with which the server authenticates itself to a receiver."""

    scheme: Scheme = ""
    credentials: Credentials | None = None


class PushConfigV1(WireParams, frozen=True, kw_only=True):
    """A receiver, in the configuration of a message."""

    url: Url
    id: OptionalId = ""
    token: Token | None = None
    authentication: PushAuthenticationV1 | None = None


class TaskPushConfigV1(PushConfigV1, frozen=True, kw_only=True):
    """A receiver of a task."""

    task_id: RequiredId


class PushKeyV1(WireParams, frozen=True, kw_only=True):
    """The task and the name of a receiver."""

    task_id: RequiredId
    id: RequiredId


class PushTaskV1(WireParams, frozen=True, kw_only=True):
    """The task whose receivers are listed, all on one page."""

    task_id: RequiredId


def receiver_v1(config: PushConfigV1) -> WebhookReceiver:
    """Convert a configuration to a receiver, named '' if it has no id."""
    known_by = config.authentication or PushAuthenticationV1()
    return WebhookReceiver(
        name=config.id,
        url=config.url,
        token=config.token or "",
        scheme=known_by.scheme,
        credentials=known_by.credentials or "",
    )


def _config_v1(task_id: str, receiver: WebhookReceiver) -> dict[str, Any]:
    config: dict[str, Any] = {"taskId": task_id, "id": receiver.name, "url": receiver.url}
    if receiver.token:
        config["token"] = receiver.token
    if receiver.scheme:
        config["authentication"] = {"scheme": receiver.scheme}
    return config


# --- 0.3 ---


class PushAuthenticationV03(WireParams, frozen=True, kw_only=True):
    """The schemes by which the server authenticates itself to a receiver; the first one counts."""

    schemes: Annotated[tuple[Scheme, ...], msgspec.Meta(max_length=8)] = ()
    credentials: Credentials | None = None


class PushConfigV03(WireParams, frozen=True, kw_only=True):
    """A receiver."""

    url: Url
    id: OptionalId | None = None
    token: Token | None = None
    authentication: PushAuthenticationV03 | None = None


class TaskPushConfigV03(WireParams, frozen=True, kw_only=True):
    """A receiver of a task."""

    task_id: RequiredId
    push_notification_config: PushConfigV03


class PushKeyV03(WireParams, frozen=True, kw_only=True):
    """The task and the name of a receiver; without a name, the one that was set first."""

    id: RequiredId
    push_notification_config_id: OptionalId | None = None


class PushTaskV03(WireParams, frozen=True, kw_only=True):
    """The task whose receivers are listed."""

    id: RequiredId


class ProtoPushConfig(WireParams, frozen=True, kw_only=True):
    """A receiver in the body of a REST request."""

    push_notification_config: PushConfigV03


class ProtoTaskPushConfig(WireParams, frozen=True, kw_only=True):
    """A receiver of a task over REST; its id may be given beside it."""

    task_id: RequiredId
    config_id: OptionalId = ""
    config: ProtoPushConfig


def receiver_v03(config: PushConfigV03) -> WebhookReceiver:
    """Convert a configuration to a receiver, named '' if it has no id."""
    known_by = config.authentication or PushAuthenticationV03()
    return WebhookReceiver(
        name=config.id or "",
        url=config.url,
        token=config.token or "",
        scheme=next(iter(known_by.schemes), ""),
        credentials=known_by.credentials or "",
    )


def _config_v03(receiver: WebhookReceiver) -> dict[str, Any]:
    config: dict[str, Any] = {"id": receiver.name, "url": receiver.url}
    if receiver.token:
        config["token"] = receiver.token
    if receiver.scheme:
        config["authentication"] = {"schemes": [receiver.scheme]}
    return config


def _task_config_v03(task_id: str, receiver: WebhookReceiver) -> dict[str, Any]:
    return {"taskId": task_id, "pushNotificationConfig": _config_v03(receiver)}


def _config_proto(task_id: str, receiver: WebhookReceiver) -> dict[str, Any]:
    return {
        "name": f"tasks/{task_id}/pushNotificationConfigs/{receiver.name}",
        "pushNotificationConfig": _config_v03(receiver),
    }


def _proto_receiver(params: ProtoTaskPushConfig) -> WebhookReceiver:
    config = params.config.push_notification_config
    return receiver_v03(msgspec.structs.replace(config, id=config.id or params.config_id))


# --- The format of each dialect ---


@dataclass(frozen=True, kw_only=True, slots=True)
class PushWords:
    """A dialect's requests about receivers, and the way it writes them.

    `set_params` holds the task as `task_id`, and is read by `receiver_of`. `key_of` returns the
    task and the receiver's name from `key_params`, `task_of` the task from `list_params`.
    """

    set_params: type[Any]
    receiver_of: Callable[[Any], WebhookReceiver]
    key_params: type[Any]
    key_of: Callable[[Any], tuple[str, str]]
    list_params: type[Any]
    task_of: Callable[[Any], str]
    config: Callable[[str, WebhookReceiver], dict[str, Any]]
    config_list: Callable[[list[dict[str, Any]]], Any]
    deleted: Any


def _key_v1(params: PushKeyV1) -> tuple[str, str]:
    return params.task_id, params.id


def _key_v03(params: PushKeyV03) -> tuple[str, str]:
    return params.id, params.push_notification_config_id or ""


def _page(configs: Iterable[dict[str, Any]]) -> dict[str, Any]:
    return {"configs": list(configs), "nextPageToken": ""}


V1: Final = PushWords(
    set_params=TaskPushConfigV1,
    receiver_of=receiver_v1,
    key_params=PushKeyV1,
    key_of=_key_v1,
    list_params=PushTaskV1,
    task_of=lambda params: str(params.task_id),
    config=_config_v1,
    config_list=_page,
    deleted={},
)
V03: Final = PushWords(
    set_params=TaskPushConfigV03,
    receiver_of=lambda params: receiver_v03(params.push_notification_config),
    key_params=PushKeyV03,
    key_of=_key_v03,
    list_params=PushTaskV03,
    task_of=lambda params: str(params.id),
    config=_task_config_v03,
    config_list=list,
    deleted=None,
)
V03_REST: Final = PushWords(
    set_params=ProtoTaskPushConfig,
    receiver_of=_proto_receiver,
    key_params=PushKeyV1,
    key_of=_key_v1,
    list_params=PushTaskV1,
    task_of=lambda params: str(params.task_id),
    config=_config_proto,
    config_list=_page,
    deleted={},
)
