"""Receivers that hold their sockets, and webhooks whose person may read the task no more."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.models import Participant
from sessions_app.models import Webhook, WebhookDelivery
from sessions_app.states import DeliveryState
from sessions_app.webhooks import deliveries
from tests.client import wait_until
from tests.gateway_app.a2a.calls import send
from tests.http_server import LocalServer, QuietHandler, serving
from tests.live_server import shared_chat

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django.fixtures import Settings

    from tests.live_server import Person

pytestmark = pytest.mark.usefixtures("celery_worker_thread")
SLOW = 12


class Receivers:
    """Two receivers: `slow` answers once `go_on` is set, `quick` at once."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.origin = ""
        self.seen: list[str] = []

    def push(self, path: str) -> dict[str, Any]:
        """Return the configuration of a message whose task is sent to one of them."""
        settings = {"url": f"{self.origin}/{path}"}
        return {"taskPushNotificationConfig": settings, "returnImmediately": True}


@pytest.fixture
def receivers(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Receivers]:
    """Give two receivers on this machine, and a worker with a thread more than one person has."""
    monkeypatch.setattr(deliveries, "UNDER_WAY", 1)
    all_receivers = Receivers()

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 the interface's
            self.rfile.read(int(self.headers["Content-Length"]))
            all_receivers.seen.append(self.path)
            if self.path == "/slow":
                all_receivers.go_on.wait(20)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

    with serving(LocalServer(Handler)) as server:
        all_receivers.origin = server.origin
        settings.UAMP_FETCH_ALLOW_HOSTS = [server.origin.removeprefix("http://")]
        try:
            yield all_receivers
        finally:
            all_receivers.go_on.set()
            wait_until(lambda: not WebhookDelivery.objects.filter(finished_at=None).exists())


def test_slow_receivers_of_one_person_keep_no_other_waiting(
    web: httpx.Client, alice: Person, bob: Person, receivers: Receivers
) -> None:
    for _ in range(SLOW):
        send(web, "echo", "Hello", who=alice, configuration=receivers.push("slow"))
    wait_until(lambda: WebhookDelivery.objects.count() == SLOW)
    wait_until(lambda: "/slow" in receivers.seen)

    send(web, "echo", "Hello", who=bob, configuration=receivers.push("quick"))

    wait_until(lambda: "/quick" in receivers.seen)
    assert receivers.seen.count("/slow") == 1
    receivers.go_on.set()
    wait_until(lambda: receivers.seen.count("/slow") == SLOW)


def test_workers_are_notified_of_a_few_deliveries_of_each_person(
    web: httpx.Client, alice: Person, bob: Person, receivers: Receivers
) -> None:
    for person, count in ((alice, 3), (bob, 1)):
        for _ in range(count):
            send(web, "echo", "Hello", who=person, configuration=receivers.push("slow"))
    wait_until(lambda: WebhookDelivery.objects.count() == 4)

    def notified() -> list[str]:
        now = timezone.now()
        WebhookDelivery.objects.update(leased_until=None, due_at=now, notify_at=now)
        due = WebhookDelivery.objects.filter(pk__in=deliveries.take_due())
        return sorted(delivery.webhook.counted_as for delivery in due.select_related("webhook"))

    # The server's own rounds may have found them a moment before.
    each = sorted({f"user:{alice.user.pk}", f"user:{bob.user.pk}"})
    wait_until(lambda: notified() == each)


def test_a_webhook_of_a_chat_that_its_person_left_is_disabled(
    web: httpx.Client, alice: Person, bob: Person, receivers: Receivers
) -> None:
    chat = shared_chat(bob, alice, trigger="always")
    web.headers["X-Chat-Id"] = chat.pk
    send(web, "echo", "Hello", who=alice, configuration=receivers.push("quick"))
    wait_until(lambda: receivers.seen == ["/quick"])
    Participant.objects.filter(user=alice.user).update(left_at=timezone.now())

    Webhook.objects.update(seen="", look_at=timezone.now())

    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert Webhook.objects.get().disabled_reason == deliveries.TASK_UNAVAILABLE
    assert Webhook.objects.get().look_at is None
    assert WebhookDelivery.objects.get().status == DeliveryState.SENT
    assert receivers.seen == ["/quick"]
