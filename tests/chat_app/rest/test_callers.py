"""The caller of the REST API, and requests that are refused whatever they ask for."""

from __future__ import annotations

import json
import logging
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.throttling import BaseThrottle

from chat_app.models import Chat
from chat_app.rest.members import people
from sessions_app.access.auth import create_api_key
from tests import factories
from tests.chat_app.rest.rest_caller import (
    NO_PROFILE,
    bearer,
    check_problem,
    post,
    rows_written,
    signed_in,
)

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db


# --- The caller ---


def test_me_is_the_owner_of_the_session_or_of_the_key() -> None:
    ada = factories.user("ada")
    expected = {"id": str(ada.pk), "username": "ada", **NO_PROFILE}
    assert signed_in(ada).get("/api/v1/me").json() == expected
    assert bearer(ada).get("/api/v1/me").json() == expected


@pytest.mark.parametrize("path", ["me", "agents", "users", "chats", "sessions", "contents/x"])
def test_a_caller_without_credentials_gets_401_with_a_challenge(path: str) -> None:
    if path == "contents/x":
        path = "contents/5f2b1f2e-0000-4000-8000-000000000000"
    response = Client().get(f"/api/v1/{path}")
    check_problem(response, 401, "unauthorized")
    assert response["WWW-Authenticate"] == "Bearer"


def test_a_bad_or_expired_key_is_refused_even_with_a_cookie() -> None:
    ada = factories.user("ada")
    client = signed_in(ada)
    bad = client.get("/api/v1/me", headers={"Authorization": "Bearer uak_12345678_no"})
    check_problem(bad, 401, "unauthorized")
    key = create_api_key(ada, name="old")
    ada.api_keys.update(expires_at=timezone.now() - timedelta(seconds=1))
    expired = client.get("/api/v1/me", headers={"Authorization": f"Bearer {key}"})
    check_problem(expired, 401, "token_expired")


def test_a_write_by_cookie_needs_the_csrf_header() -> None:
    ada = factories.user("ada")
    client = signed_in(ada, enforce_csrf_checks=True)
    before = rows_written()
    check_problem(post(client, "/api/v1/chats", {}), 403, "forbidden")
    assert rows_written() == before
    assert post(bearer(ada), "/api/v1/chats", {}).status_code == 201


# --- Refusals ---


def test_a_path_that_is_nowhere_is_a_problem_in_json() -> None:
    problem = check_problem(Client().get("/api/v1/nothing"), 404, "not_found")
    assert problem["instance"] == "/api/v1/nothing"
    check_problem(Client().post("/api/v1/chats/"), 404, "not_found")


def test_a_wrong_method_says_which_ones_there_are() -> None:
    response = signed_in(factories.user()).delete("/api/v1/chats")
    check_problem(response, 405, "method_not_allowed")
    assert set(response["Allow"].split(", ")) >= {"GET", "POST"}


@pytest.mark.parametrize(
    ("body", "content_type", "status", "code"),
    [
        (b"{", "application/json", 400, "malformed_body"),
        (b"[]", "application/json", 400, "malformed_body"),
        (b'{"title": "a", "title": "b"}', "application/json", 400, "malformed_body"),
        (b'{"title": "\\u0000"}', "application/json", 400, "malformed_body"),
        (b"[" * 5000, "application/json", 400, "malformed_body"),
        (b"\xff", "application/json", 400, "malformed_body"),
        (b"title=a", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b'{"title": 1, "x": {}}', "application/json", 400, "invalid"),
    ],
)
def test_a_body_that_cannot_be_used_is_refused(
    body: bytes, content_type: str, status: int, code: str
) -> None:
    client = signed_in(factories.user())
    before = rows_written()
    check_problem(client.post("/api/v1/chats", body, content_type=content_type), status, code)
    assert rows_written() == before


def test_a_body_may_have_its_limit_and_not_one_byte_more(settings: Settings) -> None:
    client = signed_in(factories.user())
    body = json.dumps({"title": "a"}).encode()
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = len(body)
    fits = client.post("/api/v1/chats", body, content_type="application/json")
    assert fits.status_code == 201
    too_large = client.post("/api/v1/chats", body + b" ", content_type="application/json")
    check_problem(too_large, 413, "content_too_large")
    assert Chat.objects.count() == 1


def test_unknown_parameters_are_listed() -> None:
    problem = check_problem(
        signed_in(factories.user()).get("/api/v1/chats?limit=5&page=2&foo="),
        400,
        "unknown_parameter",
    )
    assert [error["parameter"] for error in problem["errors"]] == ["foo", "page"]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=x", "kind=other", f"before={2**53}", "order=up"]
)
def test_a_wrong_parameter_is_named(query: str) -> None:
    ada = factories.user()
    path = (
        "chats" if query.startswith(("limit", "kind")) else f"chats/{factories.chat(ada).pk}/events"
    )
    problem = check_problem(signed_in(ada).get(f"/api/v1/{path}?{query}"), 400, "invalid")
    assert [error["parameter"] for error in problem["errors"]] == [query.partition("=")[0]]


def test_an_unforeseen_error_is_logged_and_not_shown(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(_text: str, **_: object) -> str:
        raise RuntimeError("the secret inside")

    monkeypatch.setattr("chat_app.markdown.render", fail)
    client = signed_in(factories.user())
    with caplog.at_level(logging.ERROR):
        response = client.post(
            "/api/v1/render",
            '{"text": "a"}',
            content_type="application/json",
            headers={"X-Request-ID": "trace-1"},
        )
    problem = check_problem(response, 500, "internal_error")
    assert problem["request_id"] == "trace-1"
    assert "secret" not in response.content.decode()
    assert "trace-1" in caplog.text
    assert "the secret inside" in caplog.text


def test_a_client_that_asks_too_often_receives_the_time_to_wait(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Closed(BaseThrottle):
        def allow_request(self, *_: object) -> bool:
            return False

        def wait(self) -> float:
            return 1.2

    monkeypatch.setattr(people.MeView, "throttle_classes", [Closed])
    response = signed_in(factories.user()).get("/api/v1/me")
    assert check_problem(response, 429, "rate_limit_exceeded")["retry_after"] == 2
    assert response["Retry-After"] == "2"


def test_sessions_are_the_callers_own() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat, other = factories.chat(ada, bob), factories.chat(ada)
    mine = factories.session(ada, chat, agent=factories.agent("echo"))
    factories.session(bob, chat)
    elsewhere = factories.session(ada, other)
    client = signed_in(ada)
    listed = client.get("/api/v1/sessions").json()["data"]
    assert [s["id"] for s in listed] == [elsewhere.pk, mine.pk]
    (session,) = client.get(f"/api/v1/sessions?chat={chat.pk}").json()["data"]
    assert (session["id"], session["agent"], session["status"], session["closed_at"]) == (
        mine.pk,
        "echo",
        "idle",
        None,
    )
