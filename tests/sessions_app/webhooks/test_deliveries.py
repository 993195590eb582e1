"""Events that the webhook of a chat receives, and their redelivery."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import transaction
from django.utils import timezone

from agents_app.models import Agent
from audit_app.models import AuditRecord
from chat_app.log.entries import NewEvent, append
from chat_app.models import ChatEvent
from payments_app import services as ledger
from payments_app.models import Transfer
from payments_app.spending.approvals import approve
from sessions_app.access import rates
from sessions_app.models import Response, Webhook, WebhookDelivery
from sessions_app.states import DeliveryState
from sessions_app.webhooks import chat_changes, chat_webhooks
from telemetry import metrics
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.webhooks.chat_webhooks import (
    PATH,
    PAYLOAD,
    all_sent,
    log_of,
    make,
    say,
    signed_with,
)

if TYPE_CHECKING:
    import httpx
    from pytest_django.fixtures import Settings

    from tests.live_server import Person
    from tests.webhook_receiver import Receiver


def test_the_log_of_a_chat_is_sent_whole_once_and_in_order(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    webhook = make(web, alice, chat, receiver)
    begin = ChatEvent.objects.filter(chat=chat).count()
    for number in range(3):
        say(web, bob, chat, f"@echo number {number}")

    def entries() -> list[tuple[int, str]]:
        rows = ChatEvent.objects.filter(chat=chat, seq__gt=begin).order_by("seq")
        return list(rows.values_list("seq", "type"))

    wait_until(lambda: [type_ for _, type_ in entries()].count("response.done") == 3)
    wait_until(lambda: len(receiver.bodies) == len(entries()))
    assert [(body["seq"], body["type"]) for body in receiver.bodies] == entries()
    events = web.get(f"/api/v1/chats/{chat.pk}/events", headers=alice.headers).json()["data"]
    payloads = {event["seq"]: event["payload"] for event in events}
    for body in receiver.bodies:
        assert body["data"] == {**payloads[body["seq"]], "seq": body["seq"]}
        assert body["id"] == body["data"]["event_id"]
        assert (body["chat_id"], body["webhook_id"]) == (chat.pk, webhook["id"])
    wait_until(all_sent)
    deliveries = log_of(web, alice, webhook)
    assert [(delivery["seq"], delivery["type"]) for delivery in reversed(deliveries)] == entries()
    assert {
        (delivery["status"], delivery["attempts"], delivery["http_status"])
        for delivery in deliveries
    } == {("sent", 1, 200)}
    description = web.get(f"{PATH}/{webhook['id']}", headers=alice.headers).json()
    assert description == {
        **{k: v for k, v in webhook.items() if k != "secret"},
        "seq": entries()[-1][0],
    }


def test_only_the_types_that_were_asked_for_are_sent(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    make(web, alice, chat, receiver, types=["response.done", "message.edited"])
    message = say(web, alice, chat, "@echo hello")
    wait_until(lambda: [body["type"] for body in receiver.bodies] == ["response.done"])
    path = f"/api/v1/messages/{message['id']}"
    web.patch(path, json={"content": "bye"}, headers=alice.headers)
    wait_until(lambda: len(receiver.bodies) == 2)
    assert receiver.bodies[1]["data"]["content"] == "bye"
    head = ChatEvent.objects.filter(chat=chat).order_by("-seq").values_list("seq", flat=True)[0]
    wait_until(lambda: Webhook.objects.get().queued_seq == head)
    assert Webhook.objects.get().look_at is None


@pytest.mark.parametrize("types", [["payment.settled"], []])
def test_what_an_answer_cost_is_sent_after_its_end(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver, types: list[str]
) -> None:
    agent = priced("paid", per_answer="1")
    chat = shared_chat(rich(alice), bob, agents=("paid", "echo"))
    approve(alice.user.pk, agent.pk, usd("5"))
    make(web, bob, chat, receiver, types=types)
    for name in ("echo", "paid"):
        say(web, alice, chat, f"@{name} hello")
        wait_until(lambda: Response.objects.filter(finished_at__isnull=True).count() == 0)
    wait_until(lambda: "payment.settled" in [body["type"] for body in receiver.bodies])
    wait_until(all_sent)
    place = [body["type"] for body in receiver.bodies].index("payment.settled")
    body = receiver.bodies[place]
    if types:
        assert len(receiver.bodies) == 1
    else:
        before = receiver.bodies[place - 1]
        assert (before["type"], before["seq"]) == ("response.done", body["seq"])
    response = Response.objects.get(agent__name="paid")
    assert (body["id"], body["data"]["paid_by"]) == (f"paid_{response.pk}", "other")
    path = f"/api/v1/chats/{chat.pk}/payments"
    (receipt,) = web.get(path, headers=bob.headers).json()["data"]
    receipt_data = {name: value for name, value in body["data"].items() if name != "paid_at"}
    assert receipt_data == {name: receipt[name] for name in receipt_data}
    assert (receipt_data["amount"], receipt_data["transfers"]) == ("1", [])


def test_a_refund_reaches_the_webhooks_of_payer_and_payee_once(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    agent = priced("paid", per_answer="1")
    Agent.objects.filter(pk=agent.pk).update(owner=bob.user)
    chat = shared_chat(rich(alice), bob, agents=("paid",))
    approve(alice.user.pk, agent.pk, usd("5"))
    webhook_of = {
        who.user.pk: make(web, who, chat, receiver, types=["payment.refunded"])
        for who in (alice, bob)
    }
    make(web, bob, chat, receiver, types=["message.edited"])
    stopped = make(web, bob, chat, receiver)
    web.patch(f"{PATH}/{stopped['id']}", json={"enabled": False}, headers=bob.headers)
    say(web, alice, chat, "@paid hello")
    wait_until(lambda: Response.objects.filter(finished_at__isnull=False).exists())
    response = Response.objects.get()
    charge = Transfer.objects.get(response_id=response.pk, reverses__isnull=True)
    with transaction.atomic():
        ledger.refund(key="undone", transfer_id=charge.pk, by=None, reason="r")
        transaction.set_rollback(True)
    assert not WebhookDelivery.objects.exists()
    back: Any = {"key": "back", "transfer_id": charge.pk, "by": None, "amount": usd("0.4")}
    done = ledger.refund(**back, reason="slow")
    assert ledger.refund(**back, reason="slow").replayed
    wait_until(lambda: len(receiver.bodies) == 2)
    wait_until(all_sent)
    end = ChatEvent.objects.get(chat=chat, type="response.done")
    for who in (alice, bob):
        hook = webhook_of[who.user.pk]
        (place,) = [n for n, b in enumerate(receiver.bodies) if b["webhook_id"] == hook["id"]]
        headers, raw = receiver.seen[place]
        assert headers["webhook-signature"] == signed_with(hook["secret"], headers, raw)
        body, is_payer = receiver.bodies[place], who is alice
        assert (body["type"], body["seq"]) == ("payment.refunded", end.seq)
        assert body["id"] == headers["webhook-id"] == f"refunded_{done.transfer_id}"
        data = body["data"]
        assert (data["response_id"], data["amount"]) == (response.pk, "1")
        assert (data["refund"], data["refunded"]) == ("0.4", "0.4")
        assert data["paid_by"] == ("you" if is_payer else "other")
        assert data["transfers"] == ([charge.pk] if is_payer else [])
        (entry,) = log_of(web, who, hook)
        assert (entry["type"], entry["seq"], entry["status"]) == (
            "payment.refunded", end.seq, "sent",
        )  # fmt: skip
    # The rest is another refund; a redelivery has the id of its own refund.
    rest = ledger.refund(key="rest", transfer_id=charge.pk, by=None, reason="slow")
    wait_until(lambda: len(receiver.bodies) == 4)
    assert {b["id"] for b in receiver.bodies[2:]} == {f"refunded_{rest.transfer_id}"}
    assert {(b["data"]["refund"], b["data"]["refunded"]) for b in receiver.bodies[2:]} == {
        ("0.6", "1")
    }
    wait_until(all_sent)
    hook = webhook_of[alice.user.pk]
    first = log_of(web, alice, hook)[-1]
    path = f"{PATH}/{hook['id']}/deliveries/{first['id']}/redeliver"
    assert web.post(path, headers=alice.headers).status_code == 202
    wait_until(lambda: len(receiver.bodies) == 5)
    assert receiver.bodies[4]["id"] == f"refunded_{done.transfer_id}"


@pytest.mark.parametrize(
    "url", ["https://example.com/services/SECRET", "https://example.com/in?token=SECRET"]
)
def test_the_audit_of_a_webhook_has_its_server_alone(alice: Person, url: str) -> None:
    request = chat_webhooks.WebhookRequest(chat_id=shared_chat(alice).pk, url=url, name="ci")
    row = chat_webhooks.make(alice.user.pk, request).webhook
    chat_webhooks.change(row, {"url": url}, by=alice.user)
    chat_webhooks.delete(row, by=alice.user)

    details = AuditRecord.objects.filter(kind="sessions_app.webhook").values_list(
        "detail", flat=True
    )
    assert len(details) == 3
    assert all("https://example.com," in detail for detail in details)
    assert not any("SECRET" in detail for detail in details)


def test_a_ping_and_a_redelivery_are_new_deliveries(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    webhook = make(web, alice, chat, receiver, types=["message.created"], name="mine")
    path = f"{PATH}/{webhook['id']}"
    queued = web.post(f"{path}/ping", headers=alice.headers)
    assert queued.status_code == 202
    wait_until(lambda: len(receiver.bodies) == 1)
    assert (receiver.bodies[0]["type"], receiver.bodies[0]["data"]) == ("ping", {"name": "mine"})
    say(web, alice, chat, "hello")
    wait_until(lambda: len(receiver.bodies) == 2)
    wait_until(all_sent)
    first = log_of(web, alice, webhook)[0]
    again = web.post(f"{path}/deliveries/{first['id']}/redeliver", headers=alice.headers)
    assert again.status_code == 202
    wait_until(lambda: len(receiver.bodies) == 3)
    assert receiver.bodies[2] == receiver.bodies[1]
    assert receiver.seen[2][0]["webhook-id"] == receiver.seen[1][0]["webhook-id"]
    assert again.json()["id"] != first["id"]
    delivery_path = f"{path}/deliveries/{again.json()['id']}"
    wait_until(lambda: web.get(delivery_path, headers=alice.headers).json()["status"] == "sent")


def test_a_stopped_webhook_resumes_where_it_left_off(
    web: httpx.Client,
    alice: Person,
    receiver: Receiver,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.UAMP_WEBHOOK_ATTEMPTS = 2
    monkeypatch.setattr("sessions_app.webhooks.deliveries.BACKOFF_SECONDS", (0, 0))
    chat = shared_chat(alice)
    webhook = make(web, alice, chat, receiver, types=["message.created"])
    path = f"{PATH}/{webhook['id']}"
    receiver.statuses = [500, 503]
    say(web, alice, chat, "one")
    wait_until(lambda: not web.get(path, headers=alice.headers).json()["enabled"])
    stopped = web.get(path, headers=alice.headers).json()
    assert stopped["stopped_reason"] == "The receiver answered 503."
    (failed,) = log_of(web, alice, webhook)
    assert (failed["status"], failed["attempts"], failed["http_status"]) == ("failed", 2, 503)
    say(web, alice, chat, "two")
    refused = web.post(f"{path}/ping", headers=alice.headers)
    assert (refused.status_code, refused.json()["code"]) == (409, "webhook_stopped")

    enabled = web.patch(path, json={"enabled": True}, headers=alice.headers).json()

    assert (enabled["enabled"], enabled["stopped_reason"]) == (True, None)
    wait_until(lambda: len(receiver.bodies) == 3)
    assert receiver.bodies[2]["data"]["message"]["content"] == "two"
    # What was not taken is sent again with all that follows, from a place of the log.
    web.patch(path, json={"after": failed["seq"] - 1}, headers=alice.headers)
    wait_until(lambda: len(receiver.bodies) == 5)
    texts = [body["data"]["message"]["content"] for body in receiver.bodies[3:]]
    assert texts == ["one", "two"]
    off = web.patch(path, json={"enabled": False}, headers=alice.headers).json()
    assert (off["enabled"], off["stopped_reason"]) == (False, chat_webhooks.STOPPED)


def test_attempts_are_counted_by_their_outcome(
    web: httpx.Client, alice: Person, receiver: Receiver, settings: Settings
) -> None:
    def counts() -> list[float]:
        outcomes = ("sent", "refused", "unanswered")
        return [metrics.WEBHOOK_ATTEMPTS.labels(outcome)._value.get() for outcome in outcomes]

    settings.UAMP_WEBHOOK_ATTEMPTS = 1
    webhook = make(web, alice, shared_chat(alice), receiver)
    path, before = f"{PATH}/{webhook['id']}", counts()
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(all_sent)
    receiver.statuses = [500]
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    settings.UAMP_FETCH_ALLOW_HOSTS = []
    web.patch(path, json={"enabled": True}, headers=alice.headers)
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)

    assert [now - then for now, then in zip(counts(), before, strict=True)] == [1, 1, 1]


def test_events_beyond_the_rate_wait_in_the_log(
    web: httpx.Client, alice: Person, receiver: Receiver, settings: Settings
) -> None:
    rates.forget()
    settings.UAMP_WEBHOOKS_PER_MINUTE = 2
    chat = shared_chat(alice)
    make(web, alice, chat, receiver, types=["message.created"])
    for number in range(4):
        say(web, alice, chat, f"number {number}")
    wait_until(lambda: len(receiver.bodies) == 2)
    wait_until(lambda: Webhook.objects.filter(look_at__gt=timezone.now()).exists())
    assert WebhookDelivery.objects.count() == 2
    rates.forget()
    Webhook.objects.update(look_at=timezone.now())
    wait_until(lambda: len(receiver.bodies) == 4)
    texts = [body["data"]["message"]["content"] for body in receiver.bodies]
    assert texts == [f"number {number}" for number in range(4)]


@pytest.mark.django_db(transaction=True)
def test_what_a_round_missed_is_found_later(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    body = {"chat": chat.pk, "url": "https://example.org/"}
    assert web.post(PATH, json=body, headers=alice.headers).status_code == 201
    wait_until(lambda: Webhook.objects.get().look_at is None)
    # Written as by a process that ended an hour ago.
    old = timezone.now() - timedelta(hours=1)
    append(chat.pk, [NewEvent(type="chat.updated", payload=PAYLOAD)], at=old)
    assert chat_changes.wake() == 0
    assert chat_changes.wake_all() == 1
    wait_until(lambda: WebhookDelivery.objects.filter(status=DeliveryState.QUEUED).exists())
