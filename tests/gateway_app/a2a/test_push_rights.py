"""The scopes for the receivers of a task: reading them and changing them, over both bindings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from gateway_app.a2a import methods, rest, rpc
from sessions_app.models import Response, Webhook
from tests.gateway_app.a2a.calls import call, old_message, send, text_message
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

TOKEN: Final = "token-of-a-webhook"
ADDRESS: Final = "https://example.org/"
NEW: Final = {"url": ADDRESS, "id": "new"}
READ, WRITE = "webhooks:read", "webhooks:write"


@dataclass(frozen=True)
class Method:
    """A method of JSON-RPC, or a method and path of HTTP, and the scope that it needs."""

    scope: str
    name: str
    params: dict[str, Any]

    def call(self, web: httpx.Client, who: Person, task: str) -> str:
        """Call the method for a task, and return the answer."""
        params = {k: task if v == "{task}" else v for k, v in self.params.items()}
        verb, _, path = self.name.partition(" ")
        if not path:
            headers = {"A2A-Version": "0.3" if "/" in verb else "1.0"}
            return str(call(web, "echo", verb, params, who=who, headers=headers))
        url = f"/agents/echo/a2a/rest/{path.format(task=task)}"
        headers = {**who.headers, "A2A-Version": "1.0"}
        return web.request(verb, url, headers=headers, json=params or None).text


TASK: Final = {"taskId": "{task}"}
OLD: Final = {"id": "{task}"}
SINGLE: Final = {"pushNotificationConfigId": "kept"}
PATH: Final = "tasks/{task}/pushNotificationConfigs"
METHODS: Final = [
    Method(WRITE, "CreateTaskPushNotificationConfig", {**TASK, **NEW}),
    Method(READ, "GetTaskPushNotificationConfig", {**TASK, "id": "kept"}),
    Method(READ, "ListTaskPushNotificationConfigs", TASK),
    Method(WRITE, "DeleteTaskPushNotificationConfig", {**TASK, "id": "kept"}),
    Method(
        WRITE,
        "tasks/pushNotificationConfig/set",
        {**TASK, "pushNotificationConfig": NEW},
    ),
    Method(READ, "tasks/pushNotificationConfig/get", {**OLD, **SINGLE}),
    Method(READ, "tasks/pushNotificationConfig/list", OLD),
    Method(WRITE, "tasks/pushNotificationConfig/delete", {**OLD, **SINGLE}),
    Method(WRITE, f"POST {PATH}", NEW),
    Method(READ, f"GET {PATH}", {}),
    Method(READ, f"GET {PATH}/kept", {}),
    Method(WRITE, f"DELETE {PATH}/kept", {}),
]


def names() -> list[str]:
    return sorted(Webhook.objects.values_list("name", flat=True))


@pytest.fixture
def task(web: httpx.Client, alice: Person) -> str:
    task_id: str = send(web, "echo", "Hello", who=alice)["id"]
    config = {"taskId": task_id, "url": ADDRESS, "id": "kept", "token": TOKEN}
    call(web, "echo", "CreateTaskPushNotificationConfig", config, who=alice)
    return task_id


@pytest.mark.sampled(4)
@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_receiver_needs_the_scope_of_webhooks(
    web: httpx.Client, alice: Person, task: str, method: Method
) -> None:
    other = READ if method.scope == WRITE else WRITE
    for scopes in (("chats:read",), ("chats:read", "messages:write", other)):
        refused = method.call(web, key_of(alice, *scopes), task)
        assert method.scope in refused
        assert TOKEN not in refused
        assert names() == ["kept"]

    allowed = method.call(web, key_of(alice, "chats:read", method.scope), task)

    assert "forbidden" not in allowed.lower()
    assert (TOKEN in allowed) == (method.scope == READ)
    assert (names() == ["kept"]) == (method.scope == READ)


@pytest.mark.parametrize(
    ("method", "message"),
    [
        ("SendMessage", text_message("Hi")),
        ("SendStreamingMessage", text_message("Hi")),
        ("message/send", old_message("Hi")),
        ("message/stream", old_message("Hi")),
    ],
)
def test_a_message_with_a_receiver_that_may_not_be_set_begins_nothing(
    web: httpx.Client, alice: Person, method: str, message: dict[str, Any]
) -> None:
    who = key_of(alice, "chats:read", "messages:write")
    name = "pushNotificationConfig" if "/" in method else "taskPushNotificationConfig"
    params = {"message": message, "configuration": {name: {"url": ADDRESS}}}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
    headers = {**who.headers, "A2A-Version": "0.3" if "/" in method else "1.0"}

    refused = web.post("/agents/echo/a2a", json=body, headers=headers).text

    assert WRITE in refused
    assert not Response.objects.exists()
    assert not Webhook.objects.exists()


def test_every_method_on_receivers_is_in_the_table() -> None:
    on_receivers = {
        methods.set_receiver,
        methods.get_receiver,
        methods.list_receivers,
        methods.delete_receiver,
    }
    over_rpc = {name for name, (_, method) in rpc.METHODS.items() if method in on_receivers}
    over_http = [verb for verb, _, method in rest._ROUTES if method in on_receivers]
    assert {call.name for call in METHODS if " " not in call.name} == over_rpc
    assert sorted(call.name.split()[0] for call in METHODS if " " in call.name) == sorted(over_http)
