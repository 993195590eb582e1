"""Push notifications: receivers of a task, and what they are sent."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from django.utils import timezone

from chat_app.models import Message
from sessions_app.models import Response, Webhook, WebhookDelivery
from sessions_app.states import DeliveryState
from tests.client import wait_until
from tests.gateway_app.a2a.calls import call, error_of, old_message, send, text_message
from tests.webhook_receiver import receiver

if TYPE_CHECKING:
    import httpx
    from pytest_django.fixtures import Settings

    from tests.live_server import Person
    from tests.webhook_receiver import Receiver

__all__ = ["receiver"]

NOW = {"returnImmediately": True}


def config(receiver: Receiver, **members: Any) -> dict[str, Any]:
    return {"taskPushNotificationConfig": {"url": receiver.url, **members}}


def ended(receiver: Receiver, state: str) -> dict[str, Any]:
    """Wait for a state of 1.0, and return its task."""

    def states() -> list[str]:
        return [body["task"]["status"]["state"] for body in receiver.bodies]

    wait_until(lambda: state in states())
    task: dict[str, Any] = receiver.bodies[states().index(state)]["task"]
    return task


def test_the_end_of_a_task_is_sent(web: httpx.Client, alice: Person, receiver: Receiver) -> None:
    secrets = {"scheme": "Bearer", "credentials": "of-the-client"}
    configuration = config(receiver, token="its-token", authentication=secrets)
    task = send(web, "echo", "Hello", who=alice, configuration=configuration)

    assert ended(receiver, "TASK_STATE_COMPLETED") == task
    headers, body = receiver.seen[-1]
    assert headers["X-A2A-Notification-Token"] == "its-token"
    assert headers["Authorization"] == "Bearer of-the-client"
    assert headers["Content-Type"] == "application/a2a+json"
    keys = {key["kid"]: jwt.PyJWK(key) for key in web.get("/.well-known/jwks.json").json()["keys"]}
    signature = headers["X-UAMP-Signature"]
    claims = jwt.decode(
        signature,
        keys[jwt.get_unverified_header(signature)["kid"]],
        algorithms=["RS256"],
        audience=receiver.url,
    )
    assert claims["request_body_sha256"] == hashlib.sha256(body).hexdigest()
    assert claims["taskId"] == task["id"]
    row = Webhook.objects.get()
    assert row.look_at is None
    assert "of-the-client" not in row.secrets
    assert "its-token" not in row.secrets
    wait_until(lambda: WebhookDelivery.objects.get(state="completed").status == DeliveryState.SENT)
    delivery = WebhookDelivery.objects.get(state="completed")
    assert (delivery.attempts, delivery.http_status, delivery.body) == (1, 200, "")


def test_a_receiver_without_credentials_gets_the_signature_as_bearer(
    web: httpx.Client, receiver: Receiver
) -> None:
    message = old_message("Hi")
    configuration = {"pushNotificationConfig": {"url": receiver.url, "id": "mine"}}
    call(web, "echo", "message/send", {"message": message, "configuration": configuration})

    wait_until(lambda: [body["status"]["state"] for body in receiver.bodies][-1:] == ["completed"])
    headers, _ = receiver.seen[-1]
    assert receiver.bodies[-1]["kind"] == "task"
    assert headers["Authorization"] == f"Bearer {headers['X-UAMP-Signature']}"
    assert "X-A2A-Notification-Token" not in headers


def test_each_state_is_sent_once_and_in_order(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    search = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
    task = send(
        web,
        "tool-user",
        "Find it",
        who=alice,
        metadata={"uamp_tools": [search]},
        configuration=config(receiver),
    )
    waiting_task = ended(receiver, "TASK_STATE_INPUT_REQUIRED")
    assert waiting_task["status"]["message"]["parts"][1]["data"]["name"] == "search"

    send(web, "tool-user", "42", who=alice, taskId=task["id"])

    ended(receiver, "TASK_STATE_COMPLETED")
    wait_until(lambda: not WebhookDelivery.objects.filter(finished_at=None).exists())
    numbers = list(WebhookDelivery.objects.order_by("id").values_list("number", "attempts"))
    assert numbers == [(n, 1) for n in range(1, len(numbers) + 1)]
    states = [body["task"]["status"]["state"] for body in receiver.bodies]
    assert len(states) == len(numbers)
    # A busy machine finds the task at work in between.
    others = [state for state in states if state != "TASK_STATE_WORKING"]
    assert others[-2:] == ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"]


def test_a_refused_delivery_is_sent_again(
    web: httpx.Client, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sessions_app.webhooks.deliveries.BACKOFF_SECONDS", (0, 0))
    receiver.statuses = [500, 429]
    send(web, "echo", "Hello", configuration=config(receiver))

    wait_until(lambda: len(receiver.seen) == 3)
    assert len({body for _, body in receiver.seen}) == 1
    wait_until(lambda: WebhookDelivery.objects.get().status == DeliveryState.SENT)
    assert WebhookDelivery.objects.get().attempts == 3


@pytest.mark.parametrize(("status", "attempts"), [(410, 1), (302, 1), (503, 2)])
def test_a_receiver_that_refuses_for_good_is_disabled(
    web: httpx.Client,
    receiver: Receiver,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    attempts: int,
) -> None:
    settings.UAMP_WEBHOOK_ATTEMPTS = 2
    monkeypatch.setattr("sessions_app.webhooks.deliveries.BACKOFF_SECONDS", (0, 0))
    receiver.statuses = [status] * 10
    send(web, "echo", "Hello", configuration=config(receiver))

    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert Webhook.objects.get().disabled_reason == f"The receiver answered {status}."
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.attempts) == (DeliveryState.FAILED, attempts)
    assert (delivery.http_status, delivery.body) == (status, "")
    assert len(receiver.seen) == attempts


def test_receivers_are_set_read_listed_and_deleted(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    task = send(web, "slow", "Count", who=alice, configuration=NOW)
    key = {"taskId": task["id"], "id": "mine"}
    secrets = {"scheme": "Basic", "credentials": "secret"}
    settings = {**key, "url": receiver.url, "token": "t", "authentication": secrets}

    created_config = call(web, "slow", "CreateTaskPushNotificationConfig", settings, who=alice)[
        "result"
    ]

    assert created_config == {**settings, "authentication": {"scheme": "Basic"}}
    fetched_config = call(web, "slow", "GetTaskPushNotificationConfig", key, who=alice)["result"]
    assert fetched_config == created_config
    call(web, "slow", "CreateTaskPushNotificationConfig", {**settings, "token": "u"}, who=alice)
    listed = call(
        web, "slow", "ListTaskPushNotificationConfigs", {"taskId": task["id"]}, who=alice
    )["result"]
    assert listed == {"configs": [{**created_config, "token": "u"}], "nextPageToken": ""}
    for method in ("Create", "Get", "Delete"):
        answer = call(web, "slow", f"{method}TaskPushNotificationConfig", settings, who=bob)
        assert error_of(answer) == (-32001, "TASK_NOT_FOUND")
    for _ in range(2):
        gone = call(web, "slow", "DeleteTaskPushNotificationConfig", key, who=alice)
        assert gone["result"] == {}
    missing = call(web, "slow", "GetTaskPushNotificationConfig", key, who=alice)
    assert error_of(missing) == (-32001, "TASK_NOT_FOUND")
    call(web, "slow", "CancelTask", {"id": task["id"]}, who=alice)


def test_receivers_in_the_words_of_0_3(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    params = {"message": old_message("Count"), "configuration": {"blocking": False}}
    task = call(web, "slow", "message/send", params, who=alice)["result"]
    settings = {"taskId": task["id"], "pushNotificationConfig": {"url": receiver.url}}
    stored_config = {**settings, "pushNotificationConfig": {"url": receiver.url, "id": task["id"]}}
    method = "tasks/pushNotificationConfig/"

    assert call(web, "slow", f"{method}set", settings, who=alice)["result"] == stored_config
    assert (
        call(web, "slow", f"{method}get", {"id": task["id"]}, who=alice)["result"] == stored_config
    )
    default = {"id": task["id"], "pushNotificationConfigId": "default"}
    assert call(web, "slow", f"{method}get", default, who=alice)["result"] == stored_config
    assert call(web, "slow", f"{method}list", {"id": task["id"]}, who=alice)["result"] == [
        stored_config
    ]
    key = {"id": task["id"], "pushNotificationConfigId": task["id"]}
    assert call(web, "slow", f"{method}delete", key, who=alice)["result"] is None
    assert call(web, "slow", f"{method}list", {"id": task["id"]}, who=alice)["result"] == []
    call(web, "slow", "tasks/cancel", {"id": task["id"]}, who=alice)


@pytest.mark.parametrize("version", ["", "v1/"])
def test_receivers_over_rest(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver, version: str
) -> None:
    task = send(web, "echo", "Hi", who=alice)
    path = f"/agents/echo/a2a/rest/{version}tasks/{task['id']}/pushNotificationConfigs"
    body: dict[str, Any] = {"id": "mine", "url": receiver.url}
    if version:
        body = {"configId": "mine", "config": {"pushNotificationConfig": {"url": receiver.url}}}

    created = web.post(path, json=body, headers=alice.headers)

    assert created.status_code == 200, created.text
    assert web.get(f"{path}/mine", headers=alice.headers).json() == created.json()
    assert web.get(path, headers=alice.headers).json()["configs"] == [created.json()]
    assert web.delete(f"{path}/mine", headers=alice.headers).json() == {}
    assert web.get(f"{path}/mine", headers=alice.headers).status_code == 404
    assert web.get(path, headers=bob.headers).status_code == 404


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    "wrong",
    [
        {"url": "http://example.org/"},
        {"url": "https://127.0.0.1/"},
        {"url": "ftp://example.org/"},
        {"url": "https://example.org:22/"},
        {"url": "https://user:pass@example.org/"},
        {"url": "https://example.org/" + "x" * 3000},
        {"url": ""},
        {"token": "a\r\nX-Other: b"},
        {"authentication": {"scheme": "Bearer x", "credentials": "y"}},
        {"authentication": {"scheme": "Bearer", "credentials": "y\n"}},
        {"id": "x" * 1000},
    ],
)
def test_a_receiver_that_cannot_be_is_refused(web: httpx.Client, wrong: dict[str, Any]) -> None:
    configuration = {"taskPushNotificationConfig": {"url": "https://example.org/", **wrong}}
    params = {"message": text_message("Hi"), "configuration": configuration}

    assert error_of(call(web, "echo", "SendMessage", params)) == (-32602, "INVALID_PARAMS")
    assert not Response.objects.exists()


def test_a_private_address_is_never_asked(
    web: httpx.Client, receiver: Receiver, settings: Settings
) -> None:
    settings.UAMP_FETCH_ALLOW_HOSTS = []
    settings.UAMP_WEBHOOK_ATTEMPTS = 1
    configuration = {"taskPushNotificationConfig": {"url": "https://10.255.0.1:8443/hook"}}
    send(web, "echo", "Hi", configuration=configuration)

    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert WebhookDelivery.objects.get().error == "The address cannot be reached."


def test_a_task_has_at_most_ten_receivers(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    task = send(web, "echo", "Hi", who=alice)
    for number in range(10):
        settings = {"taskId": task["id"], "id": f"{number}", "url": receiver.url}
        call(web, "echo", "CreateTaskPushNotificationConfig", settings, who=alice)

    settings = {"taskId": task["id"], "id": "more", "url": receiver.url}
    answer = call(web, "echo", "CreateTaskPushNotificationConfig", settings, who=alice)
    assert error_of(answer) == (-32602, "INVALID_PARAMS")
    assert Webhook.objects.count() == 10
    assert not WebhookDelivery.objects.exists()


def test_states_beyond_the_limit_wait(
    web: httpx.Client, receiver: Receiver, settings: Settings
) -> None:
    settings.UAMP_ANONYMOUS_WEBHOOKS_PER_MINUTE = 1
    for text in ("One", "Two"):
        send(web, "echo", text, configuration=config(receiver))

    wait_until(lambda: len(receiver.seen) == 1)
    wait_until(lambda: Webhook.objects.filter(look_at__isnull=False, seen="").exists())
    assert WebhookDelivery.objects.count() == 1


def refused_once(web: httpx.Client, receiver: Receiver, who: Person) -> None:
    """Have a state refused, which is sent again in a few seconds."""
    receiver.statuses = [500]
    send(web, "echo", "plover", who=who, configuration=config(receiver))
    wait_until(lambda: WebhookDelivery.objects.filter(http_status=500).exists())
    assert "plover" in str(receiver.bodies[0])


def test_a_text_deleted_before_the_retry_is_not_sent(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    refused_once(web, receiver, alice)
    question = Message.objects.get(response_id="", content="plover")
    answer = Message.objects.exclude(response_id="").get()
    path = "/api/v1/messages/"
    web.patch(f"{path}{question.pk}", json={"content": "kestrel"}, headers=alice.headers)
    web.delete(f"{path}{answer.pk}", headers=alice.headers)

    WebhookDelivery.objects.filter(finished_at=None).update(due_at=timezone.now())

    wait_until(lambda: len(receiver.bodies) == 2)
    assert "kestrel" in str(receiver.bodies[1])
    assert "plover" not in str(receiver.bodies[1])
    assert receiver.bodies[1]["task"]["status"]["state"] == "TASK_STATE_COMPLETED"
    wait_until(lambda: not WebhookDelivery.objects.filter(finished_at=None).exists())
    statuses = list(WebhookDelivery.objects.order_by("id").values_list("status", flat=True))
    assert statuses == [DeliveryState.FAILED, DeliveryState.SENT]


@pytest.mark.parametrize("is_queued", [True, False])
def test_nothing_is_sent_for_a_person_who_was_deactivated(
    web: httpx.Client, alice: Person, receiver: Receiver, *, is_queued: bool
) -> None:
    refused_once(web, receiver, alice)
    alice.user.is_active = False
    alice.user.save()
    if is_queued:
        WebhookDelivery.objects.filter(finished_at=None).update(due_at=timezone.now())
    else:
        Webhook.objects.update(seen="", look_at=timezone.now())

    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert Webhook.objects.get().disabled_reason == "Its creator was deactivated."
    delivery = WebhookDelivery.objects.get()
    assert (delivery.status, delivery.body) == (DeliveryState.FAILED, "")
    assert len(receiver.seen) == 1
