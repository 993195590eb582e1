"""Keys that create, replace and revoke keys."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from agents_app.rest.rights import ALL
from audit_app.models import AuditRecord
from sessions_app.access import connect_tokens, keys
from sessions_app.models import ApiKey
from tests import factories
from tests.live_server import Person
from tests.sessions_app.access.scoped_keys import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, key_of

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial


def test_a_secret_is_replaced_at_once_or_after_a_time(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    response = web.post(
        "/api/v1/keys", json={"name": "bot", "scopes": ["chats:*", "messages:write"]},
        headers=alice.headers,
    )  # fmt: skip
    assert response.status_code == 201
    assert response.headers["Cache-Control"].startswith("no-store")
    first = Person(alice.user, response.json()["secret"])
    path = f"/api/v1/keys/{response.json()['id']}"
    socket = dial(first)
    rotated = web.post(f"{path}/rotate", json={"keep_seconds": 60}, headers=alice.headers).json()
    second = Person(alice.user, rotated["secret"])
    assert second.key.startswith(rotated["prefix"])
    assert second.key != first.key
    for person in (first, second):
        assert web.get("/api/v1/chats", headers=person.headers).status_code == 200
    assert socket.during(0.7) == []
    # At once: the two before are not good any more, and their sockets end.
    third = web.post(f"{path}/rotate", headers=alice.headers).json()["secret"]
    for person in (first, second):
        assert web.get("/api/v1/chats", headers=person.headers).status_code == UNAUTHORIZED
    assert socket.close_code() == 4401
    assert web.get("/api/v1/chats", headers={"x-api-key": third}).status_code == 200
    assert web.get(path, headers=alice.headers).json()["used_at"] is not None
    assert web.delete(path, headers=alice.headers).status_code == 204
    assert web.get("/api/v1/chats", headers={"x-api-key": third}).status_code == UNAUTHORIZED
    recorded = AuditRecord.objects.filter(kind="sessions_app.apikey").order_by("id")
    assert [row.action for row in recorded] == [
        "key.made", "key.rotated", "key.rotated", "key.revoked",
    ]  # fmt: skip
    assert {(row.actor_id, row.object_id) for row in recorded} == {
        (alice.user.pk, response.json()["id"])
    }
    assert "chats:* messages:write" in recorded[0].detail
    assert not any(secret.key[13:] in str(vars(row)) for row in recorded for secret in (first,))
    for method in ("GET", "DELETE"):
        assert web.request(method, path, headers=alice.headers).status_code == NOT_FOUND
    assert web.post(f"{path}/rotate", headers=alice.headers).status_code == NOT_FOUND


def test_a_key_revokes_no_key_with_more_rights_but_always_itself(
    web: httpx.Client, alice: Person
) -> None:
    maker = key_of(alice, "keys:*", "chats:read")
    full_key = ApiKey.objects.get(user=alice.user, name="tests")
    equal = ApiKey.objects.create(
        user=alice.user, prefix="uak_equal", sha256="1" * 64, scopes=["chats:read"]
    )
    _, token = connect_tokens.issue(alice.user.pk, "helper", by=ALL)
    paths = [f"/api/v1/keys/{full_key.pk}", f"/api/v1/connect-tokens/{token.key.pk}"]
    for path in paths:
        refused = web.delete(path, headers=maker.headers)
        assert refused.status_code == FORBIDDEN, path
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()
    assert web.delete(f"/api/v1/keys/{equal.pk}", headers=maker.headers).status_code == 204
    # Itself, whatever its scopes and limits are.
    helper = token.key.rights.agents
    for person in (maker, key_of(alice, "chats:read"), key_of(alice, agents=helper)):
        description = web.get("/api/v1/keys/self", headers=person.headers)
        assert description.status_code == 200, description.text
        path = f"/api/v1/keys/{description.json()['id']}"
        assert web.delete(path, headers=person.headers).status_code == 204
        assert web.get("/api/v1/keys/self", headers=person.headers).status_code == UNAUTHORIZED


def test_a_key_makes_no_key_with_more_rights_and_takes_over_none(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    maker = key_of(alice, "keys:*", "chats:read")
    body = {"name": "child", "scopes": ["chats:read"]}
    child = web.post("/api/v1/keys", json=body, headers=maker.headers)
    assert child.status_code == 201
    for more in ({"scopes": ["*"]}, {"scopes": ["chats:write"]}):
        refused = web.post("/api/v1/keys", json={**body, **more}, headers=maker.headers)
        assert refused.status_code == FORBIDDEN
    full_key = ApiKey.objects.get(user=alice.user, name="tests")
    rotated = web.post(f"/api/v1/keys/{full_key.pk}/rotate", headers=maker.headers)
    assert rotated.status_code == FORBIDDEN
    foreign = f"/api/v1/keys/{child.json()['id']}"
    assert web.get(foreign, headers=bob.headers).status_code == NOT_FOUND
    assert web.post(f"{foreign}/rotate", headers=bob.headers).status_code == NOT_FOUND
    assert web.delete(foreign, headers=bob.headers).status_code == NOT_FOUND


def test_a_key_that_expires_makes_and_rotates_none_that_outlasts_it(
    web: httpx.Client, alice: Person
) -> None:
    soon = timezone.now() + timedelta(minutes=5)
    maker = key_of(alice, "*", expires_at=soon)
    body = {"name": "child", "scopes": ["chats:read"]}
    later = {**body, "expires_at": (soon + timedelta(seconds=1)).isoformat()}
    assert web.post("/api/v1/keys", json=later, headers=maker.headers).status_code == FORBIDDEN
    response = web.post("/api/v1/keys", json=body, headers=maker.headers)
    assert response.status_code == 201
    assert ApiKey.objects.get(pk=response.json()["id"]).expires_at == soon
    token = web.post("/api/v1/connect-tokens", json={"agent": "helper"}, headers=maker.headers)
    assert token.status_code == 201
    assert ApiKey.objects.get(pk=token.json()["id"]).expires_at == soon
    lasting = ApiKey.objects.get(user=alice.user, name="tests")
    refused = web.post(f"/api/v1/keys/{lasting.pk}/rotate", headers=maker.headers)
    assert refused.status_code == FORBIDDEN
    assert web.get("/api/v1/chats", headers=alice.headers).status_code == 200
    own_id = web.get("/api/v1/keys/self", headers=maker.headers).json()["id"]
    assert web.post(f"/api/v1/keys/{own_id}/rotate", headers=maker.headers).status_code == 200


def test_a_replaced_secret_that_is_still_valid_does_not_replace_the_new_one(
    web: httpx.Client, alice: Person
) -> None:
    first = key_of(alice, "*")
    path = f"/api/v1/keys/{web.get('/api/v1/keys/self', headers=first.headers).json()['id']}"
    rotated = web.post(f"{path}/rotate", json={"keep_seconds": 60}, headers=first.headers)
    assert rotated.status_code == 200
    assert web.post(f"{path}/rotate", headers=first.headers).status_code == FORBIDDEN
    second = Person(alice.user, rotated.json()["secret"])
    assert web.get("/api/v1/chats", headers=second.headers).status_code == 200


@pytest.mark.sampled(4)
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("scopes", ["chats:delete"]),
        ("scopes", []),
        ("chats", ["chat_none"]),
        ("chats", []),
        ("agents", ["agent_none"]),
        ("protocols", ["telnet"]),
        ("budget", {"amount": "-1", "period": "day"}),
        ("budget", {"amount": "1", "period": "year"}),
        ("budget", {"amount": "1", "period": "day", "currency": "USDC"}),
        ("expires_at", "2001-01-01T00:00:00Z"),
        ("owner", "bob"),
    ],
)
def test_a_key_that_cannot_be_is_refused(
    web: httpx.Client, alice: Person, field: str, value: Any
) -> None:
    body = {"name": "odd", "scopes": ["*"], field: value}
    refused = web.post("/api/v1/keys", json=body, headers=alice.headers)
    assert refused.status_code == 400, refused.text
    assert refused.json()["errors"][0]["pointer"].startswith(f"/{field}")


def test_agents_of_a_key_are_given_by_id_or_name(web: httpx.Client, alice: Person) -> None:
    by_name, by_id = factories.agent("named"), factories.agent("by-id")
    factories.agent("hidden", is_public=False)

    def create(*agents: str) -> httpx.Response:
        body = {"name": "narrow", "scopes": ["chats:read"], "agents": agents}
        return web.post("/api/v1/keys", json=body, headers=alice.headers)

    response = create("named", by_id.pk)

    assert response.status_code == 201
    assert set(response.json()["agents"]) == {by_name.pk, by_id.pk}
    assert [create(name).status_code for name in ("hidden", "nonexistent")] == [400, 400]


def test_a_secret_that_was_replaced_ends_with_its_key(alice: Person, web: httpx.Client) -> None:
    request = keys.KeyRequest(name="short", expires_at=timezone.now() + timedelta(hours=1))
    secret = keys.make_key(alice.user.pk, request)
    keys.rotate_key(secret.key, by=alice.user, keep=timedelta(days=30))
    previous_until = ApiKey.objects.get(pk=secret.key.pk).previous_until
    assert previous_until is not None
    assert previous_until <= timezone.now() + keys.KEEPS_SECRET
    ApiKey.objects.filter(pk=secret.key.pk).update(expires_at=timezone.now())
    refused = web.get("/api/v1/chats", headers={"x-api-key": secret.secret})
    assert (refused.status_code, refused.json()["code"]) == (UNAUTHORIZED, "token_expired")
