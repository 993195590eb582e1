"""Webhooks of chats: made over REST, sent by a worker, proved by their signatures."""

from __future__ import annotations

import base64
import hashlib
import hmac
import time
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import jwt
import pytest
from django.db import transaction
from django.utils import timezone

from agents_app.models import Agent
from agents_app.rest.rights import Rights
from audit_app.models import AuditRecord
from chat_app.log.entries import NewEvent, append
from chat_app.models import ChatEvent, Participant
from payments_app import services as ledger
from payments_app.models import Transfer
from payments_app.spending.approvals import approve
from sessions_app.access import rates
from sessions_app.access.keys import KeyRequest, make_key
from sessions_app.models import Response, Webhook, WebhookDelivery
from sessions_app.states import DeliveryState
from sessions_app.webhooks import chat_changes, chat_webhooks, deliveries
from sessions_app.webhooks.signature import symmetric
from telemetry import metrics
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich, usd

if TYPE_CHECKING:
    import httpx
    from pytest_django.fixtures import Settings

    from chat_app.models import Chat
    from tests.live_server import Person
    from tests.webhook_receiver import Receiver

PAYLOAD = {"type": "chat.updated", "event_id": "evt_1", "timestamp": 1}
PATH = "/api/v1/webhooks"


def make(web: httpx.Client, who: Person, chat: Chat, receiver: Receiver, **more: Any) -> Any:
    """Make a webhook over REST; return it with its secret."""
    body = {"chat": chat.pk, "url": receiver.url, **more}
    made = web.post(PATH, json=body, headers=who.headers)
    assert made.status_code == 201, made.text
    assert "no-store" in made.headers["Cache-Control"]
    return made.json()


def say(web: httpx.Client, who: Person, chat: Chat, text: str) -> Any:
    """Send a message over REST; return it."""
    path = f"/api/v1/chats/{chat.pk}/messages"
    sent = web.post(path, json={"content": text}, headers=who.headers)
    assert sent.status_code == 201, sent.text
    return sent.json()["message"]


def signed_with(secret: str, headers: Any, body: bytes) -> str:
    """Return what a receiver computes of a body (Standard Webhooks 1.0)."""
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    return "v1," + base64.b64encode(hmac.digest(key, signed, "sha256")).decode()


def log_of(web: httpx.Client, who: Person, webhook: Any) -> list[Any]:
    """Return the deliveries of a webhook, the newest first."""
    path = f"{PATH}/{webhook['id']}/deliveries"
    found: list[Any] = web.get(path, headers=who.headers).json()["data"]
    return found


def all_sent() -> bool:
    return not WebhookDelivery.objects.filter(finished_at=None).exists()


def test_the_log_of_a_chat_is_sent_whole_once_and_in_order(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    made = make(web, alice, chat, receiver)
    begin = ChatEvent.objects.filter(chat=chat).count()
    for number in range(3):
        say(web, bob, chat, f"@echo number {number}")

    def entries() -> list[tuple[int, str]]:
        rows = ChatEvent.objects.filter(chat=chat, seq__gt=begin).order_by("seq")
        return list(rows.values_list("seq", "type"))

    wait_until(lambda: [one for _, one in entries()].count("response.done") == 3)
    wait_until(lambda: len(receiver.bodies) == len(entries()))
    assert [(body["seq"], body["type"]) for body in receiver.bodies] == entries()
    shown = web.get(f"/api/v1/chats/{chat.pk}/events", headers=alice.headers).json()["data"]
    payloads = {one["seq"]: one["payload"] for one in shown}
    for body in receiver.bodies:
        assert body["data"] == {**payloads[body["seq"]], "seq": body["seq"]}
        assert body["id"] == body["data"]["event_id"]
        assert (body["chat_id"], body["webhook_id"]) == (chat.pk, made["id"])
    wait_until(all_sent)
    sent = log_of(web, alice, made)
    assert [(one["seq"], one["type"]) for one in reversed(sent)] == entries()
    assert {(one["status"], one["attempts"], one["http_status"]) for one in sent} == {
        ("sent", 1, 200)
    }
    got = web.get(f"{PATH}/{made['id']}", headers=alice.headers).json()
    assert got == {**{k: v for k, v in made.items() if k != "secret"}, "seq": entries()[-1][0]}


def test_a_receiver_verifies_both_signatures(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    made = make(web, alice, chat, receiver, types=["message.created"])
    say(web, alice, chat, "hello")
    wait_until(lambda: bool(receiver.seen))
    headers, body = receiver.seen[0]
    assert headers["webhook-signature"] == signed_with(made["secret"], headers, body)
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert "Authorization" not in headers
    keys = {one["kid"]: jwt.PyJWK(one) for one in web.get("/.well-known/jwks.json").json()["keys"]}
    token = headers["X-UAMP-Signature"]
    key = keys[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key, algorithms=["RS256"], audience=receiver.url)
    assert claims["request_body_sha256"] == hashlib.sha256(body).hexdigest()
    assert claims["webhookId"] == made["id"]
    row = Webhook.objects.get()
    assert made["secret"] not in row.secrets
    assert "secret" not in web.get(PATH, headers=alice.headers).json()["data"][0]


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of the specification's own libraries."""
    shown = symmetric(
        b'{"test": 2432232314}',
        event_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1614265330,
        keys=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )
    assert shown == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_only_the_types_that_were_asked_for_are_sent(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    make(web, alice, chat, receiver, types=["response.done", "message.edited"])
    message = say(web, alice, chat, "@echo hello")
    wait_until(lambda: [one["type"] for one in receiver.bodies] == ["response.done"])
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
    shown = {name: value for name, value in body["data"].items() if name != "paid_at"}
    assert shown == {name: receipt[name] for name in shown}
    assert (shown["amount"], shown["transfers"]) == ("1", [])


def test_a_refund_reaches_the_webhooks_of_payer_and_payee_once(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    agent = priced("paid", per_answer="1")
    Agent.objects.filter(pk=agent.pk).update(owner=bob.user)
    chat = shared_chat(rich(alice), bob, agents=("paid",))
    approve(alice.user.pk, agent.pk, usd("5"))
    made = {
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
        hook = made[who.user.pk]
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
    hook = made[alice.user.pk]
    first = log_of(web, alice, hook)[-1]
    path = f"{PATH}/{hook['id']}/deliveries/{first['id']}/redeliver"
    assert web.post(path, headers=alice.headers).status_code == 202
    wait_until(lambda: len(receiver.bodies) == 5)
    assert receiver.bodies[4]["id"] == f"refunded_{done.transfer_id}"


@pytest.mark.parametrize(
    "url", ["https://example.com/services/SECRET", "https://example.com/in?token=SECRET"]
)
def test_the_audit_of_a_webhook_has_its_server_alone(alice: Person, url: str) -> None:
    wanted = chat_webhooks.WebhookRequest(chat_id=shared_chat(alice).pk, url=url, name="ci")
    row = chat_webhooks.make(alice.user.pk, wanted).webhook
    chat_webhooks.change(row, {"url": url}, by=alice.user)
    chat_webhooks.delete(row, by=alice.user)

    details = AuditRecord.objects.filter(kind="sessions_app.webhook").values_list(
        "detail", flat=True
    )
    assert len(details) == 3
    assert all("https://example.com," in detail for detail in details)
    assert not any("SECRET" in detail for detail in details)


def test_a_new_secret_signs_beside_the_one_before(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    made = make(web, alice, shared_chat(alice), receiver)
    path = f"{PATH}/{made['id']}"
    kept = web.post(f"{path}/rotate", json={"keep_seconds": 600}, headers=alice.headers).json()
    assert kept["secret"] != made["secret"]
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(lambda: len(receiver.seen) == 1)
    headers, body = receiver.seen[0]
    both = [signed_with(secret["secret"], headers, body) for secret in (kept, made)]
    assert headers["webhook-signature"] == " ".join(both)
    last = web.post(f"{path}/rotate", json={}, headers=alice.headers).json()
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(lambda: len(receiver.seen) == 2)
    headers, body = receiver.seen[1]
    assert headers["webhook-signature"] == signed_with(last["secret"], headers, body)
    acts = AuditRecord.objects.filter(kind="sessions_app.webhook").order_by("id")
    assert [row.action for row in acts] == ["webhook.made", "webhook.rotated", "webhook.rotated"]


def test_a_ping_and_a_redelivery_are_new_deliveries(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    made = make(web, alice, chat, receiver, types=["message.created"], name="mine")
    path = f"{PATH}/{made['id']}"
    queued = web.post(f"{path}/ping", headers=alice.headers)
    assert queued.status_code == 202
    wait_until(lambda: len(receiver.bodies) == 1)
    assert (receiver.bodies[0]["type"], receiver.bodies[0]["data"]) == ("ping", {"name": "mine"})
    say(web, alice, chat, "hello")
    wait_until(lambda: len(receiver.bodies) == 2)
    wait_until(all_sent)
    first = log_of(web, alice, made)[0]
    again = web.post(f"{path}/deliveries/{first['id']}/redeliver", headers=alice.headers)
    assert again.status_code == 202
    wait_until(lambda: len(receiver.bodies) == 3)
    assert receiver.bodies[2] == receiver.bodies[1]
    assert receiver.seen[2][0]["webhook-id"] == receiver.seen[1][0]["webhook-id"]
    assert again.json()["id"] != first["id"]
    one = f"{path}/deliveries/{again.json()['id']}"
    wait_until(lambda: web.get(one, headers=alice.headers).json()["status"] == "sent")


def test_a_stopped_webhook_goes_on_where_it_was(
    web: httpx.Client,
    alice: Person,
    receiver: Receiver,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings.UAMP_WEBHOOK_ATTEMPTS = 2
    monkeypatch.setattr("sessions_app.webhooks.deliveries.BACKOFF_SECONDS", (0, 0))
    chat = shared_chat(alice)
    made = make(web, alice, chat, receiver, types=["message.created"])
    path = f"{PATH}/{made['id']}"
    receiver.statuses = [500, 503]
    say(web, alice, chat, "one")
    wait_until(lambda: not web.get(path, headers=alice.headers).json()["enabled"])
    stopped = web.get(path, headers=alice.headers).json()
    assert stopped["stopped_reason"] == "The receiver answered 503."
    (failed,) = log_of(web, alice, made)
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
        return [metrics.WEBHOOK_ATTEMPTS.labels(one)._value.get() for one in outcomes]

    settings.UAMP_WEBHOOK_ATTEMPTS = 1
    made = make(web, alice, shared_chat(alice), receiver)
    path, before = f"{PATH}/{made['id']}", counts()
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


def test_words_that_were_deleted_meanwhile_are_not_sent(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    make(web, alice, chat, receiver, types=["message.created"])
    receiver.statuses = [500]
    message = say(web, alice, chat, "plover")
    wait_until(lambda: WebhookDelivery.objects.filter(http_status=500).exists())
    web.delete(f"/api/v1/messages/{message['id']}", headers=alice.headers)
    WebhookDelivery.objects.update(due_at=timezone.now())
    wait_until(lambda: len(receiver.bodies) == 2)
    assert b"plover" not in receiver.seen[1][1]
    assert receiver.bodies[1]["id"] == receiver.bodies[0]["id"]


def test_nothing_is_sent_to_who_left_the_chat(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    make(web, bob, chat, receiver)
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    say(web, alice, chat, "private")
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert Webhook.objects.get().disabled_reason == deliveries.LEFT
    assert receiver.seen == []


def test_what_was_queued_is_not_sent_to_who_left_meanwhile(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    make(web, bob, chat, receiver, types=["message.created"])
    receiver.statuses = [500]
    say(web, alice, chat, "private")
    wait_until(lambda: WebhookDelivery.objects.filter(http_status=500).exists())
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    WebhookDelivery.objects.update(due_at=timezone.now())
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert len(receiver.seen) == 1


WRONG: Final = (
    {"url": "http://example.org/"},
    {"url": "https://127.0.0.1/"},
    {"url": "https://[::1]/"},
    {"url": "https://169.254.169.254/latest"},
    {"url": "https://example.org:22/"},
    {"url": "https://user:pass@example.org/"},
    {"url": "https://example.org/" + "x" * 3000},
    {"types": ["response.delta"]},
    {"after": -1},
    {"more": 1},
)


def test_a_webhook_that_cannot_be_is_refused(web: httpx.Client, alice: Person) -> None:
    right = {"chat": shared_chat(alice).pk, "url": "https://example.org/"}
    made = web.post(PATH, json=right, headers=alice.headers).json()
    for wrong in WRONG:
        for answer in (
            web.post(PATH, json={**right, **wrong}, headers=alice.headers),
            web.patch(f"{PATH}/{made['id']}", json=wrong, headers=alice.headers),
        ):
            assert (answer.status_code, answer.json()["code"]) == (400, "invalid"), wrong
            assert next(iter(wrong)) in str(answer.json()["errors"])
    assert Webhook.objects.get().url == "https://example.org/"


def test_an_address_inside_the_network_is_never_asked(
    web: httpx.Client, alice: Person, receiver: Receiver, settings: Settings
) -> None:
    settings.UAMP_WEBHOOK_ATTEMPTS = 1
    settings.UAMP_FETCH_ALLOW_HOSTS = []
    chat = shared_chat(alice)
    body = {"chat": chat.pk, "url": "https://example.org/"}
    made = web.post(PATH, json=body, headers=alice.headers).json()
    # The name leads there when it is looked up, after the address was taken.
    Webhook.objects.update(url="https://localhost:8443/hook")
    web.post(f"{PATH}/{made['id']}/ping", headers=alice.headers)
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    assert WebhookDelivery.objects.get().error == "The address cannot be reached."


def test_a_person_has_so_many_webhooks(
    web: httpx.Client, alice: Person, bob: Person, settings: Settings
) -> None:
    settings.UAMP_WEBHOOKS_PER_USER = 2
    chat = shared_chat(alice, bob)
    body = {"chat": chat.pk, "url": "https://example.org/"}
    statuses = [web.post(PATH, json=body, headers=alice.headers).status_code for _ in range(3)]
    assert statuses == [201, 201, 409]
    assert web.post(PATH, json=body, headers=bob.headers).status_code == 201
    (mine, _) = web.get(PATH, headers=alice.headers).json()["data"]
    path = f"{PATH}/{mine['id']}"
    for method in ("GET", "DELETE"):
        assert web.request(method, path, headers=bob.headers).status_code == 404
    assert web.delete(path, headers=alice.headers).status_code == 204
    assert web.post(PATH, json=body, headers=alice.headers).status_code == 201


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


def test_a_restricted_key_sees_the_webhooks_of_its_chats(web: httpx.Client, alice: Person) -> None:
    chats = [shared_chat(alice), shared_chat(alice)]
    for chat in chats:
        body = {"chat": chat.pk, "url": "https://example.org/"}
        assert web.post(PATH, json=body, headers=alice.headers).status_code == 201

    def headers(*scopes: str) -> dict[str, str]:
        rights = Rights(scopes=frozenset(scopes), chats=frozenset({chats[0].pk}))
        made = make_key(alice.user.pk, KeyRequest(name="ci", rights=rights))
        return {"Authorization": f"Bearer {made.secret}"}

    key = headers("webhooks:*", "chats:read")
    assert [one["chat"] for one in web.get(PATH, headers=key).json()["data"]] == [chats[0].pk]
    for number, chat in enumerate(chats):
        body = {"chat": chat.pk, "url": "https://example.org/"}
        assert web.post(PATH, json=body, headers=key).status_code == (201, 404)[number]
    body = {"chat": chats[0].pk, "url": "https://example.org/"}
    for lacking in (headers("webhooks:write"), headers("webhooks:read", "chats:read")):
        assert web.post(PATH, json=body, headers=lacking).status_code == 403


def test_a_key_that_reads_no_chats_has_nothing_sent_to_an_address_of_its_own(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    path = f"{PATH}/{make(web, alice, chat, receiver, types=['message.created'])['id']}"
    say(web, alice, chat, "hello")
    wait_until(lambda: WebhookDelivery.objects.filter(status=DeliveryState.SENT).exists())
    again = f"{path}/deliveries/{WebhookDelivery.objects.get().pk}/redeliver"
    rights = Rights(scopes=frozenset({"webhooks:*"}))
    key = make_key(alice.user.pk, KeyRequest(name="ci", rights=rights))
    lacking = {"Authorization": f"Bearer {key.secret}"}
    for answer in (
        web.patch(path, json={"url": "https://example.org/"}, headers=lacking),
        web.patch(path, json={"after": 0}, headers=lacking),
        web.post(again, headers=lacking),
    ):
        assert answer.status_code == 403
        assert "chats:read" in answer.json()["detail"]
    assert Webhook.objects.get().url == receiver.url
    assert WebhookDelivery.objects.count() == 1
    assert web.post(f"{path}/ping", headers=lacking).status_code == 202
    wait_until(all_sent)


def test_pings_and_redeliveries_count_as_what_is_sent(
    web: httpx.Client, alice: Person, receiver: Receiver, settings: Settings
) -> None:
    path = f"{PATH}/{make(web, alice, shared_chat(alice), receiver)['id']}"
    rates.forget()
    settings.UAMP_WEBHOOKS_PER_MINUTE = 2
    first = web.post(f"{path}/ping", headers=alice.headers).json()
    again = f"{path}/deliveries/{first['id']}/redeliver"
    assert web.post(again, headers=alice.headers).status_code == 202
    for one in (again, f"{path}/ping"):
        refused = web.post(one, headers=alice.headers)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_exceeded")
    assert WebhookDelivery.objects.count() == 2
    assert web.patch(path, json={"name": "mine"}, headers=alice.headers).status_code == 200
    wait_until(all_sent)


def test_who_left_the_chat_does_not_begin_a_webhook_again(
    web: httpx.Client, alice: Person, bob: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice, bob)
    path = f"{PATH}/{make(web, bob, chat, receiver, types=['message.created'])['id']}"
    Participant.objects.filter(chat=chat, user=bob.user).update(left_at=timezone.now())
    say(web, alice, chat, "private")
    wait_until(lambda: Webhook.objects.get().disabled_at is not None)
    seq = Webhook.objects.get().queued_seq
    for change in ({"enabled": True}, {"after": 2**53 - 1}, {"enabled": True, "name": "mine"}):
        assert web.patch(path, json=change, headers=bob.headers).status_code == 404, change
    row = Webhook.objects.get()
    assert (row.queued_seq, row.disabled_reason, row.name) == (seq, deliveries.LEFT, "")
    assert web.patch(path, json={"name": "mine"}, headers=bob.headers).status_code == 200
    assert web.delete(path, headers=bob.headers).status_code == 204


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
