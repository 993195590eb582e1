"""Refusals of REST: wrong JSON types, choices, filters, headers and paths."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat_app.models import Message
from sessions_app.models import ApiKey
from tests import factories
from tests.chat_app.rest.rest_caller import bearer, check_problem, post, signed_in

if TYPE_CHECKING:
    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def chat() -> Chat:
    return factories.chat(factories.user("ada"), factories.agent())


@pytest.fixture
def client(chat: Chat) -> Client:
    return bearer(User.objects.get(participations__chat=chat))


def errors_of(response: Any, code: str = "invalid") -> dict[str, str]:
    problem = check_problem(response, 400, code)
    return {
        next(value for name, value in error.items() if name != "detail"): error["detail"]
        for error in problem["errors"]
    }


@pytest.mark.parametrize(
    ("body", "pointer", "detail"),
    [
        ({"content": 5}, "/content", "Must be a string."),
        ({"content": "a", "queue": "yes"}, "/queue", "Must be true or false."),
        ({"content": "a", "queue": 1}, "/queue", "Must be true or false."),
        ({"content": "a", "wait": "3"}, "/wait", "Must be a number."),
        ({"content": "a", "wait": True}, "/wait", "Must be a number."),
        ({"content": "a", "agents": "echo"}, "/agents", "Must be an array."),
        ({"content": "a", "agents": ["echo", 5]}, "/agents/1", "Must be a string."),
    ],
)
def test_a_body_needs_the_documented_json_types(
    chat: Chat, client: Client, body: dict[str, Any], pointer: str, detail: str
) -> None:
    refused = post(client, f"/api/v1/chats/{chat.pk}/messages", body)
    assert errors_of(refused) == {pointer: detail}
    assert not Message.objects.filter(chat=chat).exists()


def test_an_object_is_asked_for_by_its_json_name(client: Client) -> None:
    refused = post(client, "/api/v1/responses", {"agent": "echo", "content": "a", "response": []})
    assert errors_of(refused) == {"/response": "Must be an object."}


def test_every_wrong_member_is_named_at_once(client: Client) -> None:
    before = ApiKey.objects.count()
    body = {
        "name": 5,
        "scopes": ["chats:nothing"],
        "protocols": ["fax"],
        "expires_at": "2001-01-01T00:00:00Z",
        "extra": 1,
    }
    errors = errors_of(post(client, "/api/v1/keys", body))
    assert errors.keys() == {"/name", "/scopes", "/protocols/0", "/expires_at", "/extra"}
    assert errors["/protocols/0"].startswith("Must be one of: uamp, rest, completions")
    assert errors["/scopes"] == "There is no scope named chats:nothing."
    assert ApiKey.objects.count() == before


@pytest.mark.parametrize(
    ("path", "name", "words"),
    [
        ("/chats?kind=private", "kind", "Must be one of: group, session, all."),
        ("/chats/{chat}/messages?author_kind=human", "author_kind", "Must be one of: user, agent."),
        ("/chats/{chat}/messages?cost_min=abc", "cost_min", 'Write it as "0.05"'),
        ("/chats/{chat}/messages?author=absent", "author", "The chat has no person"),
        ("/chats/{chat}/messages?author=stranger", "author", "The chat has no person"),
        ("/chats/{chat}/messages?agent=absent", "agent", "The chat has no agent"),
        ("/chats/{chat}/messages?limit=2&limit=3", "limit", "Send it only once."),
        (
            "/chats/{chat}/events?types=message.creatd&after=0&before=9",
            "types",
            "Unknown types: message.creatd. Supported: message.created,",
        ),
        (
            "/chats/{chat}/events?types=message.created",
            "types",
            "`types` needs `after` and `before`, at most 5,000 apart.",
        ),
    ],
)
def test_a_query_is_refused_with_what_would_be_right(
    chat: Chat, client: Client, path: str, name: str, words: str
) -> None:
    factories.user("stranger")
    errors = errors_of(client.get("/api/v1" + path.format(chat=chat.pk)))
    assert errors.keys() == {name}
    assert errors[name].startswith(words)


def test_a_wrong_header_is_named_as_a_header(chat: Chat, client: Client) -> None:
    long = client.post(
        f"/api/v1/chats/{chat.pk}/participants",
        "{}",
        content_type="application/json",
        headers={"Idempotency-Key": "k" * 129},
    )
    assert check_problem(long, 400, "invalid")["errors"][0]["header"] == "Idempotency-Key"
    unquoted = client.patch(
        f"/api/v1/chats/{chat.pk}",
        json.dumps({"title": "New"}),
        content_type="application/json",
        headers={"If-Match": "abc"},
    )
    (error,) = check_problem(unquoted, 400, "invalid")["errors"]
    assert error["header"] == "If-Match"
    assert "quotation marks" in error["detail"]
    chat.refresh_from_db()
    assert chat.title != "New"


@pytest.mark.parametrize("path", ["/api/v2", "/api/v1/nothing", "/api/v1/chats/"])
def test_an_unknown_path_says_that_it_is_unknown(client: Client, path: str) -> None:
    detail = check_problem(client.get(path), 404, "not_found")["detail"]
    assert detail == "No such path. The paths are in /api/schema, without a slash at the end."


@pytest.mark.parametrize("value", ["uak_abc", "Basic YTpi"])
def test_another_scheme_than_bearer_is_named(chat: Chat, value: str) -> None:
    refused = Client().get("/api/v1/chats", headers={"Authorization": value})
    detail = check_problem(refused, 401, "unauthorized")["detail"]
    assert detail == "Use the Bearer scheme: `Authorization: Bearer <API key>`."
    # A proxy's own credentials do not hide a signed-in browser.
    browser = signed_in(User.objects.get(participations__chat=chat))
    assert browser.get("/api/v1/chats", headers={"Authorization": value}).status_code == 200
