"""Webhooks that are refused, and their limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sessions_app.access import rates
from sessions_app.models import Webhook, WebhookDelivery
from tests.client import wait_until
from tests.live_server import shared_chat
from tests.sessions_app.webhooks.chat_webhooks import PATH, all_sent, make

if TYPE_CHECKING:
    import httpx
    from pytest_django.fixtures import Settings

    from tests.live_server import Person
    from tests.webhook_receiver import Receiver

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
    webhook = web.post(PATH, json=right, headers=alice.headers).json()
    for wrong in WRONG:
        for answer in (
            web.post(PATH, json={**right, **wrong}, headers=alice.headers),
            web.patch(f"{PATH}/{webhook['id']}", json=wrong, headers=alice.headers),
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
    webhook = web.post(PATH, json=body, headers=alice.headers).json()
    # The name leads there when it is looked up, after the address was taken.
    Webhook.objects.update(url="https://localhost:8443/hook")
    web.post(f"{PATH}/{webhook['id']}/ping", headers=alice.headers)
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


def test_pings_and_redeliveries_count_as_what_is_sent(
    web: httpx.Client, alice: Person, receiver: Receiver, settings: Settings
) -> None:
    path = f"{PATH}/{make(web, alice, shared_chat(alice), receiver)['id']}"
    rates.forget()
    settings.UAMP_WEBHOOKS_PER_MINUTE = 2
    first = web.post(f"{path}/ping", headers=alice.headers).json()
    again = f"{path}/deliveries/{first['id']}/redeliver"
    assert web.post(again, headers=alice.headers).status_code == 202
    for post_path in (again, f"{path}/ping"):
        refused = web.post(post_path, headers=alice.headers)
        assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_exceeded")
    assert WebhookDelivery.objects.count() == 2
    assert web.patch(path, json={"name": "mine"}, headers=alice.headers).status_code == 200
    wait_until(all_sent)
