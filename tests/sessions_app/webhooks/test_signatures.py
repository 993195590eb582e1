"""Signatures and secrets of webhooks."""

from __future__ import annotations

import hashlib
import time
from typing import TYPE_CHECKING

import jwt

from audit_app.models import AuditRecord
from sessions_app.models import Webhook
from sessions_app.webhooks.signature import symmetric
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.webhooks.chat_webhooks import PATH, make, say, signed_with

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person
    from tests.webhook_receiver import Receiver


def test_a_receiver_verifies_both_signatures(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    chat = shared_chat(alice)
    webhook = make(web, alice, chat, receiver, types=["message.created"])
    say(web, alice, chat, "hello")
    wait_until(lambda: bool(receiver.seen))
    headers, body = receiver.seen[0]
    assert headers["webhook-signature"] == signed_with(webhook["secret"], headers, body)
    assert abs(int(headers["webhook-timestamp"]) - time.time()) < 60
    assert "Authorization" not in headers
    keys = {jwk["kid"]: jwt.PyJWK(jwk) for jwk in web.get("/.well-known/jwks.json").json()["keys"]}
    token = headers["X-UAMP-Signature"]
    key = keys[jwt.get_unverified_header(token)["kid"]]
    claims = jwt.decode(token, key, algorithms=["RS256"], audience=receiver.url)
    assert claims["request_body_sha256"] == hashlib.sha256(body).hexdigest()
    assert claims["webhookId"] == webhook["id"]
    row = Webhook.objects.get()
    assert webhook["secret"] not in row.secrets
    assert "secret" not in web.get(PATH, headers=alice.headers).json()["data"][0]


def test_the_signature_is_that_of_standard_webhooks() -> None:
    """The example of the specification's own libraries."""
    signature = symmetric(
        b'{"test": 2432232314}',
        event_id="msg_p5jXN8AQM9LWM0D4loKWxJek",
        at=1614265330,
        keys=["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"],
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_a_new_secret_signs_beside_the_one_before(
    web: httpx.Client, alice: Person, receiver: Receiver
) -> None:
    webhook = make(web, alice, shared_chat(alice), receiver)
    path = f"{PATH}/{webhook['id']}"
    rotation = web.post(f"{path}/rotate", json={"keep_seconds": 600}, headers=alice.headers).json()
    assert rotation["secret"] != webhook["secret"]
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(lambda: len(receiver.seen) == 1)
    headers, body = receiver.seen[0]
    both = [signed_with(secret["secret"], headers, body) for secret in (rotation, webhook)]
    assert headers["webhook-signature"] == " ".join(both)
    last = web.post(f"{path}/rotate", json={}, headers=alice.headers).json()
    web.post(f"{path}/ping", headers=alice.headers)
    wait_until(lambda: len(receiver.seen) == 2)
    headers, body = receiver.seen[1]
    assert headers["webhook-signature"] == signed_with(last["secret"], headers, body)
    acts = AuditRecord.objects.filter(kind="sessions_app.webhook").order_by("id")
    assert [row.action for row in acts] == ["webhook.made", "webhook.rotated", "webhook.rotated"]
