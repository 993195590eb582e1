"""AOAuth: tokens that agents and programs ask for, exchange and present on every transport."""

from __future__ import annotations

import base64
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import httpx
import jwt
import pytest
from django.conf import settings as django_settings

from agents_app.models import Agent
from agents_app.rest.rights import Rights
from audit_app.models import AuditRecord
from sessions_app.access import keys
from sessions_app.bearer_tokens import access_tokens
from sessions_app.models import ApiKey, Response
from signing_app import server_keys
from tests.client import output_text
from tests.live_server import Person, quick_agent
from tests.payments_app.tokens.issued_tokens import issue as issue_payment_token
from tests.sessions_app.billing.paid_agents import rich
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

    from tests.live_server import Dial

EXCHANGE = "urn:ietf:params:oauth:grant-type:token-exchange"
ACCESS = "urn:ietf:params:oauth:token-type:access_token"


@pytest.fixture
def program_key(alice: Person) -> keys.NewSecret:
    """Return a key of alice's program."""
    rights = Rights(scopes=frozenset({"chats:*", "messages:write", "agents:read"}))
    return keys.make_key(alice.user.pk, keys.KeyRequest(name="program", rights=rights))


def ask(web: httpx.Client, path: str = "/auth/token", **form: str) -> httpx.Response:
    """Ask for a token."""
    return web.post(path, data=form)


def by_key(program_key: keys.NewSecret, **form: str) -> dict[str, str]:
    return {
        "grant_type": "client_credentials",
        "client_id": program_key.key.prefix,
        "client_secret": program_key.secret,
        **form,
    }


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def test_a_program_gets_a_short_token_for_one_agent(
    dial: Dial, web: httpx.Client, alice: Person, program_key: keys.NewSecret
) -> None:
    quick_agent("second", "echo")
    answer = ask(
        web, "/agents/echo/auth/token", **by_key(program_key, scope="chats:read messages:write")
    )
    assert answer.status_code == 200, answer.text
    assert answer.headers["Cache-Control"] == "no-store"
    body = answer.json()
    assert (body["token_type"], body["expires_in"]) == ("Bearer", 300)
    assert body["scope"] == "chats:read messages:write"
    # Its claims, as another server verifies them by discovery.
    configuration = web.get("/agents/echo/.well-known/openid-configuration").json()
    assert configuration["token_endpoint"].endswith("/agents/echo/auth/token")
    (jwk,) = web.get(httpx.URL(configuration["jwks_uri"]).path).json()["keys"]
    claims = jwt.decode(
        body["access_token"],
        jwt.PyJWK(jwk).key,
        algorithms=[jwk["alg"]],
        audience=f"{django_settings.UAMP_ISSUER}/agents/echo",
        issuer=configuration["issuer"],
    )
    assert claims["client_id"] == f"key:{program_key.key.pk}"
    assert claims["agent_path"] == "/agents"
    # It opens sessions of its agent on a socket, over REST and in other dialects.
    token = Person(alice.user, body["access_token"])
    client = dial(token)
    client.create_session(agent="echo")
    assert output_text(client.answer("Hello")[-1]) == "Hello"
    client.send("session.create", session={}, agent="second")
    assert client.until("session.error")[-1]["error"]["code"] == "agent_not_found"
    completion_request = {"model": "echo", "messages": [{"role": "user", "content": "Hello"}]}
    assert (
        web.post("/v1/chat/completions", json=completion_request, headers=token.headers).status_code
        == 200
    )
    other = {**completion_request, "model": "second"}
    assert web.post("/v1/chat/completions", json=other, headers=token.headers).status_code == 404
    assert web.get("/api/v1/keys", headers=token.headers).json()["scope"] == "keys:read"
    # It ends with its key, also where it is in use.
    keys.revoke_key(program_key.key, by=alice.user)
    assert (
        web.post("/v1/chat/completions", json=completion_request, headers=token.headers).status_code
        == 401
    )
    assert client.until("session.error")[-1]["error"]["code"] == "unauthorized"
    assert client.close_code() == 4401


def test_a_token_is_passed_on_with_fewer_rights(
    web: httpx.Client, alice: Person, bob: Person, program_key: keys.NewSecret
) -> None:
    first = ask(web, **by_key(program_key)).json()["access_token"]
    worker = keys.make_key(bob.user.pk, keys.KeyRequest(name="worker"))
    exchange = {
        "grant_type": EXCHANGE,
        "subject_token": first,
        "subject_token_type": ACCESS,
        "client_id": worker.key.prefix,
        "client_secret": worker.secret,
    }
    target = f"{django_settings.UAMP_ISSUER}/agents/echo"
    answer = ask(web, **exchange, scope="chats:read", audience=target)
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body["issued_token_type"] == ACCESS
    claims = jwt.decode(body["access_token"], options={"verify_signature": False})
    assert claims["sub"] == f"user:{alice.user.pk}"
    assert claims["act"] == {"sub": f"key:{worker.key.pk}"}
    assert claims["exp"] <= jwt.decode(first, options={"verify_signature": False})["exp"]
    (row,) = AuditRecord.objects.filter(action="token.delegated")
    assert f"key:{worker.key.pk} for echo: chats:read" in row.detail
    assert row.object_id == str(alice.user.pk)
    assert web.get("/api/v1/search?q=x", headers=bearer(body["access_token"])).status_code == 403
    # Neither more rights, nor another agent, nor without end.
    narrow = {**exchange, "subject_token": body["access_token"]}
    assert ask(web, **narrow, scope="messages:write").json()["error"] == "invalid_scope"
    quick_agent("second", "echo")
    other = f"{django_settings.UAMP_ISSUER}/agents/second"
    assert ask(web, **narrow, target=other).json()["error"] == "invalid_target"
    passed = body["access_token"]
    for _ in range(4):
        passed = ask(web, **{**narrow, "subject_token": passed}).json()["access_token"]
    again = jwt.decode(passed, options={"verify_signature": False})
    assert again["aud"] == target
    refused = ask(web, **{**narrow, "subject_token": passed})
    assert refused.json()["error"] == "invalid_grant"
    # A key is a subject too, and without a client there is no actor.
    exchange_form = {
        "grant_type": EXCHANGE,
        "subject_token": program_key.secret,
        "subject_token_type": ACCESS,
    }
    alone = ask(web, **exchange_form).json()["access_token"]
    assert "act" not in jwt.decode(alone, options={"verify_signature": False})
    assert web.get("/api/v1/chats", headers=bearer(alone)).status_code == 200


def test_a_token_makes_no_key_that_outlasts_it(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    person_key = keys.make_key(alice.user.pk, keys.KeyRequest(name="own"))
    worker = keys.make_key(bob.user.pk, keys.KeyRequest(name="worker"))
    client = {"client_id": worker.key.prefix, "client_secret": worker.secret}
    subject = {"subject_token": person_key.secret, "subject_token_type": ACCESS}
    token = ask(web, grant_type=EXCHANGE, **client, **subject).json()["access_token"]
    body = {"name": "for good", "scopes": ["*"]}
    response = web.post("/api/v1/keys", json=body, headers=bearer(token))
    assert response.status_code == 201, response.text
    expiry = jwt.decode(token, options={"verify_signature": False})["exp"]
    stored = ApiKey.objects.get(pk=response.json()["id"])
    assert stored.expires_at == datetime.fromtimestamp(expiry, UTC)
    path = f"/api/v1/keys/{person_key.key.pk}/rotate"
    assert web.post(path, headers=bearer(token)).status_code == 403


def test_work_that_agents_pass_on_keeps_those_who_passed_the_token_on(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    doer("boss", "worker")
    doer("worker")
    program = keys.make_key(bob.user.pk, keys.KeyRequest(name="program"))
    person_key = keys.make_key(alice.user.pk, keys.KeyRequest(name="own"))
    client = {"client_id": program.key.prefix, "client_secret": program.secret}
    subject = {"subject_token": person_key.secret, "subject_token_type": ACCESS}
    token = ask(web, grant_type=EXCHANGE, **client, **subject).json()["access_token"]

    answer_text(
        answer_frames(dial(headers=bearer(token)), "boss", task_for("worker", order(say="done")))
    )

    requests = Response.objects.values_list("agent__name", "request__actors")
    actors = [[f"key:{program.key.pk}", program.key.version]]
    assert dict(requests) == {"boss": actors, "worker": actors}


def errors(program_key: keys.NewSecret) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Yield forms that are refused: the error, the status and the form."""
    good = by_key(program_key)
    yield "invalid_request", 400, {}
    yield "unsupported_grant_type", 400, {**good, "grant_type": "password"}
    yield "invalid_client", 401, {"grant_type": "client_credentials"}
    yield "invalid_client", 401, {**good, "client_id": "uak_00000000"}
    yield "invalid_client", 401, {**good, "client_secret": program_key.secret[:-1] + "x"}
    yield "invalid_client", 401, {**good, "client_secret": program_key.secret + "\0"}
    yield "invalid_scope", 400, {**good, "scope": "chats:delete"}
    yield "invalid_scope", 400, {**good, "scope": "payments:write"}
    yield "invalid_scope", 400, {**good, "scope": "*"}
    yield "invalid_target", 400, {**good, "target": "https://evil.example/agents/echo"}
    for name in ("none", "\0", "echo\0", "%00", "agent_%00"):
        target = f"{django_settings.UAMP_ISSUER}/agents/{name}"
        yield "invalid_target", 400, {**good, "target": target}
    yield "invalid_scope", 400, {**good, "scope": "\0"}
    yield "unsupported_grant_type", 400, {**good, "grant_type": "\0"}
    yield "invalid_client", 401, {**good, "client_id": "\0"}
    yield "invalid_request", 400, {"grant_type": EXCHANGE}
    yield "invalid_request", 400, {
        "grant_type": EXCHANGE, "subject_token": program_key.secret, "subject_token_type": "saml2",
    }  # fmt: skip
    yield "invalid_grant", 400, {
        "grant_type": EXCHANGE, "subject_token": "uak_no", "subject_token_type": ACCESS,
    }  # fmt: skip
    yield "invalid_grant", 400, {
        "grant_type": EXCHANGE, "subject_token": "uak_\0", "subject_token_type": ACCESS,
    }  # fmt: skip
    assertion = "urn:ietf:params:oauth:grant-type:jwt-bearer"
    yield "invalid_grant", 400, {"grant_type": assertion, "assertion": "a.b.c"}


def test_what_is_refused_has_an_error_of_oauth(
    web: httpx.Client, program_key: keys.NewSecret
) -> None:
    for error, status, form in errors(program_key):
        answer = ask(web, **form)
        assert (answer.json()["error"], answer.status_code) == (error, status), form
        assert answer.headers["Cache-Control"] == "no-store"
        assert ("WWW-Authenticate" in answer.headers) == (status == 401)
    assert web.post("/auth/token", json=by_key(program_key)).json()["error"] == "invalid_request"
    twice = web.post(
        "/auth/token",
        content="grant_type=client_credentials&grant_type=client_credentials",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
    )
    assert twice.json()["error"] == "invalid_request"
    assert web.get("/auth/token").status_code == 405
    basic = base64.b64encode(f"{program_key.key.prefix}:{program_key.secret}".encode()).decode()
    form = {"grant_type": "client_credentials"}
    answer = web.post("/auth/token", data=form, headers={"Authorization": f"Basic {basic}"})
    assert answer.status_code == 200
    bad = web.post("/auth/token", data=form, headers={"Authorization": "Basic !"})
    assert bad.json()["error"] == "invalid_client"
    # No credential is in an answer.
    assert program_key.secret not in answer.text


def test_tokens_are_asked_for_at_a_rate(
    web: httpx.Client, program_key: keys.NewSecret, settings: Settings
) -> None:
    settings.UAMP_VISITOR_WRITES_PER_MINUTE = settings.UAMP_WRITES_PER_MINUTE = 2
    statuses = [ask(web, **by_key(program_key)).status_code for _ in range(4)]
    assert statuses[:2] == [200, 200]
    assert statuses[-1] == 429


def test_a_forged_or_other_token_of_this_server_opens_nothing(
    web: httpx.Client, alice: Person, program_key: keys.NewSecret, monkeypatch: pytest.MonkeyPatch
) -> None:
    good = ask(web, **by_key(program_key)).json()["access_token"]
    header, claims = jwt.get_unverified_header(good), jwt.decode(
        good, options={"verify_signature": False}
    )  # fmt: skip
    key = server_keys.server_keys()[0]

    def opens(**changes: Any) -> int:
        kind = changes.pop("typ", header["typ"])
        body = {**claims, **changes}
        token = jwt.encode(
            body, key.private, algorithm=key.algorithm, headers={"kid": key.kid, "typ": kind}
        )
        return web.get("/api/v1/chats", headers=bearer(token)).status_code

    assert opens() == 200
    # A payment token has the same keys.
    payment = issue_payment_token(rich(alice).user).token
    assert web.get("/api/v1/chats", headers=bearer(payment)).status_code == 401
    assert opens(typ="JWT") == 401
    assert opens(sub="user:0") == 401
    assert opens(sub="agent:1") == 401
    assert opens(aud="https://other.example") == 401
    assert opens(client_id="key:0", key_version=0, scope="*") == 200  # of an issuer's token
    assert opens(exp=int(time.time()) + 7200) == 401
    assert opens(iss="https://other.example") == 401
    # Rights that the key lost are lost to its tokens.
    ApiKey.objects.filter(pk=program_key.key.pk).update(scopes=["messages:write"])
    assert opens() == 403
    Agent.objects.filter(name="echo").update(is_enabled=False)
    assert opens(aud=access_tokens.audience("echo")) == 401
    monkeypatch.setattr(access_tokens, "LIFETIME_SECONDS", -60)
    expired = ask(web, **by_key(program_key)).json()["access_token"]
    assert web.get("/api/v1/chats", headers=bearer(expired)).json()["code"] == "token_expired"


def test_discovery_is_of_public_agents_alone(web: httpx.Client, alice: Person) -> None:
    hidden = quick_agent("hidden", "echo")
    Agent.objects.filter(pk=hidden.pk).update(is_public=False, owner=alice.user)
    for path, age in (("openid-configuration", 3600), ("jwks.json", 300)):
        answer = web.get(f"/agents/echo/.well-known/{path}")
        assert answer.status_code == 200
        assert f"max-age={age}" in answer.headers["Cache-Control"]
        for name in ("hidden", "none"):
            assert web.get(f"/agents/{name}/.well-known/{path}").status_code == 404
    configuration = web.get("/.well-known/openid-configuration").json()
    assert configuration["issuer"] == django_settings.UAMP_ISSUER
    assert "chats:read" in configuration["scopes_supported"]
    assert web.get("/.well-known/oauth-authorization-server").json() == configuration


def test_a_key_whose_only_agent_was_deleted_gets_no_token(web: httpx.Client, alice: Person) -> None:
    agent = quick_agent("gone", "echo")
    rights = Rights(scopes=frozenset({"*"}), agents=frozenset({agent.pk}))
    narrow = keys.make_key(alice.user.pk, keys.KeyRequest(name="narrow", rights=rights))
    agent.delete()
    refused = ask(web, **by_key(narrow))
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_target"), refused.text
