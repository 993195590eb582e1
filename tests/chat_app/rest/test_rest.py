"""The REST history: lists, members, refusals and how many queries they take (docs/rest.md)."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema_rs
import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from drf_spectacular import validation
from jsonschema import Draft202012Validator, FormatChecker
from rest_framework.throttling import BaseThrottle

import uamp
from agents_app.rest.problem_kinds import PROBLEMS
from chat_app.members import participants, receipts
from chat_app.models import Chat, ChatEvent, MessageThread, Participant, ThreadFollower
from chat_app.rest.members import people
from chat_app.rest.overview import UNREAD_MAX, chats_data
from sessions_app.access.auth import create_api_key
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django.fixtures import Settings

pytestmark = pytest.mark.django_db

PROBLEM = "application/problem+json"
NO_PROFILE = {
    "display_name": "",
    "status_text": "",
    "avatar_emoji": "",
    "avatar_colour": "",
    "avatar_url": None,
}


def signed_in(user: User, **options: Any) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def bearer(user: User) -> Client:
    key = create_api_key(user, name="tests")
    return Client(enforce_csrf_checks=True, headers={"Authorization": f"Bearer {key}"})


def post(client: Client, path: str, body: Any) -> Any:
    return client.post(path, json.dumps(body), content_type="application/json")


def check_problem(response: Any, status: int, code: str) -> dict[str, Any]:
    assert (response.status_code, response["Content-Type"]) == (status, PROBLEM)
    problem: dict[str, Any] = response.json()
    assert problem["status"] == status
    assert problem["code"] == code
    assert problem["type"] == f"/docs/problems#{code}"
    assert problem["title"]
    assert problem["detail"]
    assert problem["request_id"] == response["X-Request-ID"]
    return problem


def rows_written() -> tuple[int, int, int]:
    return Chat.objects.count(), Participant.objects.count(), ChatEvent.objects.count()


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


# --- Chats ---


def test_a_chat_is_created_with_people_and_agents() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    echo = factories.agent("Echo", trigger="always")
    body = {"title": " Pl\u202eans\u202c ", "users": ["bob", "ada", "bob"], "agents": ["echo"]}
    response = post(signed_in(ada), "/api/v1/chats", body)
    assert response.status_code == 201
    chat = Chat.objects.get()
    assert response["Location"] == f"/api/v1/chats/{chat.pk}"
    data = response.json()
    assert {k: data[k] for k in ("id", "title", "kind", "unread", "preview", "last_seq")} == {
        "id": chat.pk,
        "title": "Plans",
        "kind": "group",
        "unread": 0,
        "preview": None,
        "last_seq": 0,
    }
    assert [
        {k: v for k, v in p.items() if k not in {"participant_id", "joined_at"}}
        for p in data["participants"]
    ] == [
        {
            "kind": "user",
            "id": str(ada.pk),
            "name": "ada",
            "role": "owner",
            "online": False,
            **NO_PROFILE,
        },
        {
            "kind": "user",
            "id": str(bob.pk),
            "name": "bob",
            "role": "member",
            "online": False,
            **NO_PROFILE,
        },
        {
            "kind": "agent",
            "id": echo.pk,
            "name": "Echo",
            "role": "member",
            "online": True,
            "trigger": "always",
            "keywords": [],
            "context": "chat",
            "context_messages": None,
            "budget": None,
            "budget_period": None,
            "pricing": None,
            "takes_calls": False,
        },
    ]
    own = {"role": "member", "rights": ["add_members", "quiet_agents"]}
    assert signed_in(bob).get(f"/api/v1/chats/{chat.pk}").json() == {**data, **own}


@pytest.mark.parametrize(
    ("body", "pointer"),
    [
        ({"title": "x" * 201}, "/title"),
        ({"users": ["missing"]}, "/users"),
        ({"users": ["gone"]}, "/users"),
        ({"agents": ["private"]}, "/agents"),
        ({"agents": ["off"]}, "/agents"),
        ({"agents": [""]}, "/agents/0"),
        ({"colour": "red"}, "/colour"),
    ],
)
def test_a_chat_that_is_not_valid_is_not_created(body: dict[str, Any], pointer: str) -> None:
    ada = factories.user("ada")
    factories.user("gone", is_active=False)
    factories.agent("private", is_public=False, owner=factories.user("bob"))
    factories.agent("off", is_enabled=False)
    before = rows_written()
    problem = check_problem(post(signed_in(ada), "/api/v1/chats", body), 400, "invalid")
    assert [error["pointer"] for error in problem["errors"]] == [pointer]
    assert rows_written() == before


def test_a_title_may_have_200_characters() -> None:
    response = post(signed_in(factories.user()), "/api/v1/chats", {"title": "é" * 200})
    assert response.status_code == 201


def test_chats_are_listed_by_their_latest_event() -> None:
    ada = factories.user("ada")
    first, second = factories.chat(ada, title="first"), factories.chat(ada, title="second")
    factories.chat(factories.user("eve"), title="not mine")
    private = factories.chat(ada, kind="session")
    factories.message(first, ada)
    client = signed_in(ada)
    assert [c["id"] for c in client.get("/api/v1/chats").json()["data"]] == [first.pk, second.pk]
    listed = client.get("/api/v1/chats?kind=session").json()["data"]
    assert [(c["id"], c["kind"]) for c in listed] == [(private.pk, "session")]
    assert [c["id"] for c in client.get("/api/v1/chats?kind=all").json()["data"]] == [
        first.pk,
        private.pk,
        second.pk,
    ]


def test_unread_are_messages_of_others_behind_the_marker() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    echo = factories.agent()
    chat = factories.chat(ada, bob, echo)

    def unread(user: User) -> int:
        count: int = signed_in(user).get(f"/api/v1/chats/{chat.pk}").json()["unread"]
        return count

    factories.message(chat, ada)
    second = factories.message(chat, echo)
    factories.message(chat, bob)
    assert (unread(ada), unread(bob)) == (2, 2)
    receipts.mark_read(chat_id=chat.pk, user_id=ada.pk, message_id=second.pk)
    assert (unread(ada), unread(bob)) == (1, 2)


def test_what_is_unread_is_counted_up_to_the_last_seq_that_is_said() -> None:
    """A client counts on from there: one place less, and a message is counted twice."""
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    # Its row was read before the message was written, the numbers after it.
    said = factories.message(chat, ada, "meanwhile")
    (shown,) = chats_data([chat], bob.pk)
    assert chat.last_seq < said.seq
    assert (shown["unread"], shown["last_seq"]) == (1, said.seq)


def test_unread_stops_counting_at_its_limit() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    for _ in range(UNREAD_MAX + 1):
        factories.message(chat, bob)
    assert signed_in(ada).get("/api/v1/chats").json()["data"][0]["unread"] == UNREAD_MAX


def test_the_preview_is_the_beginning_of_the_last_message() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    factories.message(chat, bob, "old")
    factories.message(chat, bob, "n" * 300)
    factories.presence(bob)
    (data,) = signed_in(ada).get("/api/v1/chats").json()["data"]
    assert data["preview"] == {"name": "bob", "content": "n" * 200}
    assert [(p["name"], p["online"]) for p in data["participants"]] == [
        ("ada", False),
        ("bob", True),
    ]


def test_a_list_of_chats_is_paged_by_a_signed_cursor() -> None:
    ada = factories.user("ada")
    same_time = datetime(2026, 1, 1, tzinfo=UTC)
    chats = [factories.chat(ada) for _ in range(5)]
    Chat.objects.update(latest_at=same_time)  # equal times must neither repeat nor lose a chat
    client = signed_in(ada)
    seen, url, pages = [], "/api/v1/chats?limit=2", 0
    while url:
        response = client.get(url)
        body = response.json()
        seen += [c["id"] for c in body["data"]]
        assert (body["first_id"], body["last_id"]) == (seen[pages * 2], seen[-1])
        pages += 1
        assert body["has_more"] == ("Link" in response.headers) == (body["next_cursor"] is not None)
        url = response["Link"].partition("<")[2].partition(">")[0] if body["has_more"] else ""
    assert seen == sorted((c.pk for c in chats), reverse=True)
    assert pages == 3


def test_a_cursor_that_was_altered_or_belongs_elsewhere_is_refused() -> None:
    ada = factories.user("ada")
    one, other = factories.chat(ada), factories.chat(ada)
    for chat in (one, other):
        factories.message(chat, ada)
        factories.message(chat, ada)
    client = signed_in(ada)
    path = f"/api/v1/chats/{one.pk}/messages"
    cursor = client.get(f"{path}?limit=1").json()["next_cursor"]
    assert client.get(f"{path}?limit=2&cursor={cursor}").status_code == 200
    altered = cursor[:-1] + ("a" if cursor[-1] != "a" else "b")
    for wrong in (
        f"{path}?limit=1&cursor={altered}",
        f"{path}?limit=1&order=asc&cursor={cursor}",
        f"/api/v1/chats/{other.pk}/messages?limit=1&cursor={cursor}",
    ):
        check_problem(client.get(wrong), 400, "invalid_cursor")


# --- Strangers ---


@pytest.mark.parametrize(
    "tail", ["", "/messages", "/events", "/receipts", "/participants", "/participants/1"]
)
def test_a_stranger_gets_what_a_wrong_id_gets(tail: str) -> None:
    eve = factories.user("eve")
    chat = factories.chat(factories.user("ada"), eve)
    ours = eve.participations.get()
    participants.remove_participant(chat_id=chat.pk, removed_by=eve, participant_id=ours.pk)
    factories.message(chat, chat.created_by or eve)
    client = signed_in(eve)
    before = rows_written()
    ask = client.delete if tail.endswith("/1") else client.get
    tail = tail.replace("/1", f"/{Participant.objects.order_by('pk')[0].pk}")
    bodies = []
    for chat_id in (chat.pk, "chat_" + "0" * 32):
        body = check_problem(ask(f"/api/v1/chats/{chat_id}{tail}"), 404, "not_found")
        bodies.append({k: v for k, v in body.items() if k not in {"instance", "request_id"}})
    assert bodies[0] == bodies[1]
    assert rows_written() == before
    assert Participant.objects.filter(left_at__isnull=True).count() == 1


def test_a_stranger_cannot_read_a_message_by_its_id() -> None:
    ada, eve = factories.user("ada"), factories.user("eve")
    message = factories.message(factories.chat(ada), ada, "*Hi*")
    path = f"/api/v1/messages/{message.pk}"
    check_problem(signed_in(eve).get(path), 404, "not_found")
    response = signed_in(ada).get(f"{path}?render=html")
    assert response.json() == {
        "id": message.pk,
        "chat_id": message.chat_id,
        "seq": 1,
        "role": "user",
        "content": "*Hi*",
        "content_items": [],
        "name": "ada",
        "sender_id": str(ada.pk),
        "sender_kind": "user",
        "digital_source_type": None,
        "created_at": message.created_at.isoformat().replace("+00:00", "Z"),
        "response_id": None,
        "status": "completed",
        "transport": "",
        "revision": 0,
        "edited_at": None,
        "deleted_at": None,
        "version_of": None,
        "replaced_by": None,
        "reply_to": None,
        "copied_from": None,
        "thread": None,
        "also_in_chat": False,
        "replies": None,
        "reactions": [],
        "pinned": False,
        "html": "<p><em>Hi</em></p>",
    }


# --- Messages and events ---


@pytest.mark.parametrize(
    ("query", "seqs", "has_more"),
    [
        ("limit=3", [10, 9, 8], True),
        ("limit=10", [10, 9, 8, 7, 6, 5, 4, 3, 2, 1], False),
        ("limit=3&order=asc", [1, 2, 3], True),
        ("limit=3&before=5", [4, 3, 2], True),
        ("limit=3&before=4", [3, 2, 1], False),
        ("limit=3&after=8&order=asc", [9, 10], False),
        ("limit=3&after=2&before=9&order=asc", [3, 4, 5], True),
        ("limit=4&around=5", [7, 6, 5, 4], True),
        ("limit=4&around=5&order=asc", [4, 5, 6, 7], True),
        ("limit=4&around=10&order=asc", [7, 8, 9, 10], False),
        ("limit=4&around=1", [4, 3, 2, 1], False),
        ("limit=200&around=5&order=asc", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10], False),
    ],
)
def test_messages_are_paged_by_their_place(query: str, seqs: list[int], has_more: bool) -> None:  # noqa: FBT001 a column
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for number in range(10):
        factories.message(chat, ada, f"{number}")
    body = signed_in(ada).get(f"/api/v1/chats/{chat.pk}/messages?{query}").json()
    assert ([m["seq"] for m in body["data"]], body["has_more"]) == (seqs, has_more)
    assert (body["first_id"], body["last_id"]) == (body["data"][0]["id"], body["data"][-1]["id"])


@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("start", ["", "&around=4"])
def test_cursors_lead_to_the_end_of_the_messages(order: str, start: str) -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for number in range(8):
        factories.message(chat, ada, f"{number}")
    client, seqs = signed_in(ada), []
    url = f"/api/v1/chats/{chat.pk}/messages?limit=3&order={order}{start}"
    while url:
        response = client.get(url)
        seqs += [m["seq"] for m in response.json()["data"]]
        url = response.headers.get("Link", "").partition("<")[2].partition(">")[0]
    first = {("asc", ""): 1, ("desc", ""): 8, ("asc", "&around=4"): 3, ("desc", "&around=4"): 5}
    expected = (
        range(first[order, start], 9) if order == "asc" else range(first[order, start], 0, -1)
    )
    assert seqs == list(expected)


def test_around_and_a_bound_exclude_each_other() -> None:
    ada = factories.user("ada")
    path = f"/api/v1/chats/{factories.chat(ada).pk}/messages"
    check_problem(signed_in(ada).get(f"{path}?around=1&after=1"), 400, "invalid")


def test_events_are_the_log_with_its_payloads() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada)
    message = factories.message(chat, ada)
    participants.add_participant(chat_id=chat.pk, added_by=ada, user=bob)
    body = signed_in(bob).get(f"/api/v1/chats/{chat.pk}/events").json()
    assert [(e["seq"], e["type"], e["response_id"]) for e in body["data"]] == [
        (1, "message.created", None),
        (2, "participant.joined", None),
    ]
    assert (body["first_id"], body["last_id"], body["has_more"]) == ("1", "2", False)
    assert body["data"][0]["payload"] == ChatEvent.objects.get(chat=chat, seq=1).payload
    assert body["data"][0]["payload"]["message"]["id"] == message.pk
    newest = signed_in(bob).get(f"/api/v1/chats/{chat.pk}/events?order=desc&limit=1").json()
    assert [e["seq"] for e in newest["data"]] == [2]


def test_events_of_some_types_are_found_between_two_places() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada)
    factories.message(chat, ada)
    participants.add_participant(chat_id=chat.pk, added_by=ada, user=bob)
    path = f"/api/v1/chats/{chat.pk}/events?types=participant.joined,participant.left"
    found = signed_in(bob).get(f"{path}&after=0&before=5000").json()["data"]
    assert [event["type"] for event in found] == ["participant.joined"]
    assert found[0]["payload"]["by"] == {"id": str(ada.pk), "name": "ada"}
    assert signed_in(bob).get(f"{path}&after=2&before=9").json()["data"] == []
    for bounds in ("", "&after=0", "&before=9", "&after=0&before=5001"):
        check_problem(signed_in(bob).get(path + bounds), 400, "invalid")


def test_a_repeated_read_is_answered_with_304() -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    message = factories.message(chat, ada)
    client = signed_in(ada)
    for path in (f"/api/v1/messages/{message.pk}", f"/api/v1/chats/{chat.pk}/messages"):
        first = client.get(path)
        assert set(first["Cache-Control"].split(", ")) == {"no-cache", "no-store", "private"}
        again = client.get(path, headers={"If-None-Match": first["ETag"]})
        assert (again.status_code, again.content) == (304, b"")
    factories.message(chat, ada)
    later = client.get(path, headers={"If-None-Match": first["ETag"]})
    assert (later.status_code, len(later.json()["data"])) == (200, 2)


# --- Members ---


def test_a_member_adds_people_and_agents() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    echo = factories.agent(trigger="mention")
    chat = factories.chat(ada)
    client, path = signed_in(ada), f"/api/v1/chats/{chat.pk}/participants"
    added = post(client, path, {"user": "bob"})
    assert added.status_code == 201
    member = Participant.objects.get(user=bob)
    assert added.json() == {
        "joined_at": member.joined_at.isoformat().replace("+00:00", "Z"),
        "participant_id": member.pk,
        "kind": "user",
        "id": str(bob.pk),
        "name": "bob",
        "role": "member",
        "online": False,
        **NO_PROFILE,
    }
    assert added["Location"] == f"{path}/{member.pk}"
    again = post(client, path, {"user": "bob"})
    assert (added.status_code, again.status_code, again.json()) == (201, 200, added.json())
    agent = post(client, path, {"agent": "ECHO", "trigger": "always"}).json()
    assert (agent["id"], agent["name"], agent["trigger"]) == (echo.pk, "echo", "always")
    assert [p["name"] for p in client.get(path).json()["data"]] == ["ada", "bob", "echo"]
    assert list(ChatEvent.objects.values_list("type", flat=True)) == ["participant.joined"] * 2


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"user": "bob", "agent": "echo"},
        {"user": "bob", "trigger": "always"},
        {"user": "missing"},
        {"agent": "missing"},
        {"agent": "echo", "trigger": "sometimes"},
        {"user": "bob", "role": "owner"},
    ],
)
def test_who_cannot_be_added_is_refused(body: dict[str, str]) -> None:
    ada = factories.user("ada")
    factories.user("bob")
    factories.agent("echo")
    chat = factories.chat(ada)
    before = rows_written()
    response = post(signed_in(ada), f"/api/v1/chats/{chat.pk}/participants", body)
    check_problem(response, 400, "invalid")
    assert rows_written() == before


def test_a_stranger_adds_no_member() -> None:
    ada, eve = factories.user("ada"), factories.user("eve")
    chat = factories.chat(ada)
    before = rows_written()
    response = post(signed_in(eve), f"/api/v1/chats/{chat.pk}/participants", {"user": "eve"})
    check_problem(response, 404, "not_found")
    assert rows_written() == before


def test_an_owner_removes_a_member_and_a_member_only_themselves() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    owner, member = Participant.objects.order_by("pk")
    path = f"/api/v1/chats/{chat.pk}/participants"
    check_problem(signed_in(bob).delete(f"{path}/{owner.pk}"), 403, "forbidden")
    assert not Participant.objects.filter(left_at__isnull=False).exists()
    assert signed_in(ada).delete(f"{path}/{member.pk}").status_code == 204
    member.refresh_from_db()
    assert member.left_at is not None
    assert signed_in(bob).get(f"/api/v1/chats/{chat.pk}").status_code == 404


def test_receipts_say_how_far_members_have_read() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob)
    message = factories.message(chat, ada)
    receipts.mark_read(chat_id=chat.pk, user_id=bob.pk, message_id=message.pk)
    (receipt,) = signed_in(ada).get(f"/api/v1/chats/{chat.pk}/receipts").json()["data"]
    receipt.pop("read_at")
    assert receipt == {
        "user_id": str(bob.pk),
        "username": "bob",
        "message_id": message.pk,
        "seq": 1,
    }


# --- The rest ---


def test_people_are_found_by_the_beginning_of_their_name() -> None:
    ada = factories.user("ada")
    adele = factories.user("Adele")
    factories.user("bob")
    factories.user("adam", is_active=False)
    body = signed_in(ada).get("/api/v1/users?q=ad").json()
    assert body["data"] == [{"id": str(adele.pk), "username": "Adele", **NO_PROFILE}]


def test_agents_are_those_that_the_caller_may_use() -> None:
    ada = factories.user("ada")
    echo = factories.agent("echo", description="Repeats.")
    mine = factories.agent("mine", is_public=False, owner=ada)
    factories.agent("hidden", is_public=False)
    body = signed_in(ada).get("/api/v1/agents").json()
    assert body["data"] == [
        {"id": echo.pk, "name": "echo", "description": "Repeats.", "pricing": None},
        {"id": mine.pk, "name": "mine", "description": "", "pricing": None},
    ]


def test_sessions_are_the_callers_own() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat, other = factories.chat(ada, bob), factories.chat(ada)
    mine = factories.session(ada, chat, agent=factories.agent("echo"))
    factories.session(bob, chat)
    elsewhere = factories.session(ada, other)
    client = signed_in(ada)
    listed = client.get("/api/v1/sessions").json()["data"]
    assert [s["id"] for s in listed] == [elsewhere.pk, mine.pk]
    (one,) = client.get(f"/api/v1/sessions?chat={chat.pk}").json()["data"]
    assert (one["id"], one["agent"], one["status"], one["closed_at"]) == (
        mine.pk,
        "echo",
        "idle",
        None,
    )


def test_text_is_rendered_up_to_64_kib() -> None:
    client = signed_in(factories.user())
    rendered = post(client, "/api/v1/render", {"text": "**a** <b>"})
    assert rendered.json() == {"html": "<p><strong>a</strong> &lt;b&gt;</p>"}
    assert post(client, "/api/v1/render", {"text": "é" * 32 * 1024}).status_code == 200
    longer = post(client, "/api/v1/render", {"text": "é" * 32 * 1024 + "a"})
    assert check_problem(longer, 400, "invalid")["errors"][0]["pointer"] == "/text"


def follow_thread(chat: Chat, *, by: User, replied: User) -> None:
    """Make a thread with a reply that is new to its follower."""
    root = factories.message(chat, by)
    reply = factories.message(chat, replied, thread=root.pk)
    thread = MessageThread.objects.create(
        root=root, chat=chat, replies=1, last_seq=reply.seq, last_at=reply.created_at
    )
    ThreadFollower.objects.create(thread=thread, user=by)


LISTS = (
    "chats",
    "chats/{id}/messages?render=html",
    "chats/{id}/events",
    "chats/{id}/receipts",
    "chats/{id}/queue",
    "sessions",
    "agents",
    "users",
    "threads?limit=50",
)


def test_a_list_of_50_takes_as_many_queries_as_a_list_of_1() -> None:
    ada = factories.user("ada")
    agent = factories.agent("agent0")
    chat = factories.chat(ada, agent)
    client = signed_in(ada)

    def add(number: int) -> None:
        person = factories.user(f"user{number}")
        other = factories.chat(ada, person, agent)
        factories.message(other, person)
        participants.add_participant(chat_id=chat.pk, added_by=ada, user=person)
        message = factories.message(chat, person)
        receipts.mark_read(chat_id=chat.pk, user_id=person.pk, message_id=message.pk)
        session = factories.session(ada, chat, agent=agent)
        factories.queued_turn(person, session)
        follow_thread(other, by=ada, replied=person)

    def queries(rows: int) -> dict[str, int]:
        counts = {}
        for path in LISTS:
            with CaptureQueriesContext(connection) as captured:
                found = client.get("/api/v1/" + path.format(id=chat.pk)).json()["data"]
            assert len(found) >= (min(rows, 2) if path == "agents" else rows), path
            counts[path] = len(captured)
        return counts

    add(1)
    # What a process remembers is read once.
    queries(1)
    few = queries(1)
    for number in range(2, 51):
        add(number)
    factories.agent("agent1")
    assert queries(50) == few
    assert max(few.values()) <= 7, few


def test_the_openapi_document_is_valid_and_says_everything(tmp_path: Path) -> None:
    call_command("spectacular", fail_on_warn=True, file=str(tmp_path / "schema.yaml"))
    document = Client().get("/api/schema").json()
    # `--validate` checks the same, in ten seconds of CPU.
    schema = Path(validation.__file__).with_name("openapi_3_1_schema.json")
    assert jsonschema_rs.is_valid(json.loads(schema.read_text()), document)
    assert "payments" in document["info"]["description"]
    assert (document["openapi"][:3], document["servers"][0]["url"]) == ("3.1", "/")
    read = document["paths"]["/api/v1/chats/{chat_id}"]["get"]["responses"]
    assert {"304", "404", "429", "503"} <= read.keys()
    assert {"ETag", "X-Request-ID", "RateLimit-Remaining"} <= read["200"]["headers"].keys()
    assert "304" not in document["paths"]["/api/payments/balance"]["get"]["responses"]
    operations = {
        operation["operationId"]: path
        for path, methods in document["paths"].items()
        for operation in methods.values()
    }
    assert operations == {
        "get_me": "/api/v1/me",
        "update_me": "/api/v1/me",
        "get_settings": "/api/v1/me/settings",
        "update_settings": "/api/v1/me/settings",
        "get_push_key": "/api/v1/me/push-key",
        "list_push_subscriptions": "/api/v1/me/push-subscriptions",
        "create_push_subscription": "/api/v1/me/push-subscriptions",
        "delete_push_subscription": "/api/v1/me/push-subscriptions/{subscription_id}",
        "set_picture": "/api/v1/me/picture",
        "remove_picture": "/api/v1/me/picture",
        "get_picture": "/api/v1/people/{user_id}/picture/{version}",
        "list_agents": "/api/v1/agents",
        "list_users": "/api/v1/users",
        "list_chats": "/api/v1/chats",
        "create_chat": "/api/v1/chats",
        "get_chat": "/api/v1/chats/{chat_id}",
        "update_chat": "/api/v1/chats/{chat_id}",
        "list_chat_payments": "/api/v1/chats/{chat_id}/payments",
        "list_chat_budgets": "/api/v1/chats/{chat_id}/budgets",
        "get_pool": "/api/v1/chats/{chat_id}/pool",
        "fill_pool": "/api/v1/chats/{chat_id}/pool",
        "list_participants": "/api/v1/chats/{chat_id}/participants",
        "add_participant": "/api/v1/chats/{chat_id}/participants",
        "get_participant": "/api/v1/chats/{chat_id}/participants/{participant_id}",
        "remove_participant": "/api/v1/chats/{chat_id}/participants/{participant_id}",
        "update_participant": "/api/v1/chats/{chat_id}/participants/{participant_id}",
        "mute_chat": "/api/v1/chats/{chat_id}/mute",
        "place_chat": "/api/v1/chats/{chat_id}/place",
        "fork_chat": "/api/v1/chats/{chat_id}/forks",
        "list_share_links": "/api/v1/chats/{chat_id}/share-links",
        "create_share_link": "/api/v1/chats/{chat_id}/share-links",
        "revoke_share_link": "/api/v1/chats/{chat_id}/share-links/{link_id}",
        "list_invite_links": "/api/v1/chats/{chat_id}/invite-links",
        "create_invite_link": "/api/v1/chats/{chat_id}/invite-links",
        "revoke_invite_link": "/api/v1/chats/{chat_id}/invite-links/{link_id}",
        "list_receipts": "/api/v1/chats/{chat_id}/receipts",
        "list_messages": "/api/v1/chats/{chat_id}/messages",
        "create_message": "/api/v1/chats/{chat_id}/messages",
        "list_responses": "/api/v1/chats/{chat_id}/responses",
        "list_tool_approvals": "/api/v1/chats/{chat_id}/approvals",
        "create_agent": "/api/v1/agents",
        "discover_agent": "/api/v1/agent-discovery",
        "probe_agent": "/api/v1/agents/{name}/probe",
        "get_onward_budget": "/api/payments/onward/{agent}",
        "set_onward_budget": "/api/payments/onward/{agent}",
        "get_agent": "/api/v1/agents/{name}",
        "update_agent": "/api/v1/agents/{name}",
        "list_ledger_entries": "/api/v1/ledger/entries",
        "get_usage": "/api/v1/usage",
        "get_pool_usage": "/api/v1/chats/{chat_id}/pool/usage",
        "pay_response": "/api/v1/responses/{response_id}/payment",
        "create_upload": "/api/v1/uploads",
        "get_upload": "/api/v1/uploads/{upload_id}",
        "continue_upload": "/api/v1/uploads/{upload_id}",
        "cancel_upload": "/api/v1/uploads/{upload_id}",
        "create_response": "/api/v1/responses",
        "get_response": "/api/v1/responses/{response_id}",
        "cancel_response": "/api/v1/responses/{response_id}/cancel",
        "retry_response": "/api/v1/responses/{response_id}/retry",
        "list_tool_calls": "/api/v1/responses/{response_id}/tool-calls",
        "get_tool_call": "/api/v1/tool-calls/{call_id}",
        "decide_tool_call": "/api/v1/tool-calls/{call_id}/decision",
        "give_tool_result": "/api/v1/tool-calls/{call_id}/result",
        "get_message": "/api/v1/messages/{message_id}",
        "get_message_frames": "/api/v1/messages/{message_id}/frames",
        "edit_message": "/api/v1/messages/{message_id}",
        "delete_chat": "/api/v1/chats/{chat_id}",
        "delete_message": "/api/v1/messages/{message_id}",
        "search_messages": "/api/v1/search",
        "list_threads": "/api/v1/threads",
        "list_invitations": "/api/v1/invitations",
        "answer_invitation": "/api/v1/invitations/{invitation_id}",
        "list_reactions": "/api/v1/messages/{message_id}/reactions",
        "add_reaction": "/api/v1/messages/{message_id}/reactions",
        "remove_reaction": "/api/v1/messages/{message_id}/reactions",
        "pin_message": "/api/v1/messages/{message_id}/pin",
        "unpin_message": "/api/v1/messages/{message_id}/pin",
        "get_call": "/api/v1/chats/{chat_id}/call",
        "read_link_cards": "/api/v1/messages/{message_id}/link-cards",
        "read_transcript": "/api/v1/contents/{content_id}/transcript",
        "list_keys": "/api/v1/keys",
        "create_key": "/api/v1/keys",
        "get_key": "/api/v1/keys/{key_id}",
        "get_own_key": "/api/v1/keys/self",
        "revoke_key": "/api/v1/keys/{key_id}",
        "rotate_key": "/api/v1/keys/{key_id}/rotate",
        "list_connect_tokens": "/api/v1/connect-tokens",
        "create_connect_token": "/api/v1/connect-tokens",
        "get_connect_token": "/api/v1/connect-tokens/{key_id}",
        "revoke_connect_token": "/api/v1/connect-tokens/{key_id}",
        "list_webhooks": "/api/v1/webhooks",
        "create_webhook": "/api/v1/webhooks",
        "get_webhook": "/api/v1/webhooks/{webhook_id}",
        "change_webhook": "/api/v1/webhooks/{webhook_id}",
        "delete_webhook": "/api/v1/webhooks/{webhook_id}",
        "rotate_webhook": "/api/v1/webhooks/{webhook_id}/rotate",
        "ping_webhook": "/api/v1/webhooks/{webhook_id}/ping",
        "list_webhook_deliveries": "/api/v1/webhooks/{webhook_id}/deliveries",
        "get_webhook_delivery": "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}",
        "redeliver_webhook": "/api/v1/webhooks/{webhook_id}/deliveries/{delivery_id}/redeliver",
        "list_queue": "/api/v1/chats/{chat_id}/queue",
        "remove_queued_message": "/api/v1/chats/{chat_id}/queue/{item_id}",
        "start_queued_message": "/api/v1/chats/{chat_id}/queue/{item_id}/start",
        "list_pins": "/api/v1/chats/{chat_id}/pins",
        "list_versions": "/api/v1/messages/{message_id}/versions",
        "list_revisions": "/api/v1/messages/{message_id}/revisions",
        "export_chat": "/api/v1/chats/{chat_id}/export",
        "get_checkpoint": "/api/v1/chats/{chat_id}/checkpoint",
        "get_message_proof": "/api/v1/messages/{message_id}/proof",
        "list_events": "/api/v1/chats/{chat_id}/events",
        "list_sessions": "/api/v1/sessions",
        "render_text": "/api/v1/render",
        "create_content": "/api/v1/contents",
        "get_content": "/api/v1/contents/{content_id}",
        "read_content": "/api/content/{content_id}",
        "read_preview": "/api/content/{content_id}/preview",
        "get_balance": "/api/payments/balance",
        "get_statement": "/api/payments/statement",
        "get_spend": "/api/payments/spend",
        "get_spending_limits": "/api/payments/limits",
        "set_spending_limits": "/api/payments/limits",
        "list_sponsorships": "/api/payments/sponsorships",
        "sponsor_agent": "/api/payments/sponsorships/{agent}",
        "end_sponsorship": "/api/payments/sponsorships/{agent}",
        "create_ticket": "/api/v1/tickets",
        "list_approvals": "/api/payments/approvals",
        "approve_agent": "/api/payments/approvals/{agent}",
        "withdraw_approval": "/api/payments/approvals/{agent}",
        "verify_payment_token": "/api/payments/verify",
        "lock_payment": "/api/payments/lock",
        "extend_payment_lock": "/api/payments/lock/{lock_id}",
        "settle_payment": "/api/payments/settle",
        "delegate_payment": "/api/payments/delegate",
        "list_payment_tokens": "/api/payments/tokens",
        "create_payment_token": "/api/payments/tokens",
        "get_payment_token": "/api/payments/tokens/{token_id}",
        "revoke_payment_token": "/api/payments/tokens/{token_id}",
        "get_payment_token_tree": "/api/payments/tokens/{token_id}/tree",
        "top_up_payment_token": "/api/payments/tokens/{token_id}/topup",
        "end_payment_token": "/api/payments/tokens/{token_id}/revoke",
        "list_top_up_providers": "/api/payments/topups/providers",
        "list_top_ups": "/api/payments/topups",
        "create_top_up": "/api/payments/topups",
        "get_top_up": "/api/payments/topups/{request_id}",
    }


def test_every_operation_names_the_scope_that_a_key_needs() -> None:
    document = Client().get("/api/schema").json()
    named = {
        operation["operationId"]: (operation["security"][0]["apiKey"], operation["description"])
        for methods in document["paths"].values()
        for operation in methods.values()
    }
    assert named["create_message"][0] == ["messages:write"]
    assert named["get_own_key"][0] == []
    assert all(
        scopes == [] or f"A key needs the scope `{scopes[0]}`." in words
        for scopes, words in named.values()
    )
    refused = [
        operation["operationId"]
        for methods in document["paths"].values()
        for operation in methods.values()
        if "403" not in operation["responses"]
    ]
    assert refused == []


def test_every_operation_has_examples_that_fit_its_schemas() -> None:
    document = Client().get("/api/schema").json()
    lacking, wrong = [], []
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            done = min(status for status in operation["responses"] if status < "400")
            bodies = [operation.get("requestBody", {}), operation["responses"][done]]
            for body in bodies:
                content = body.get("content", {}).get("application/json")
                if content is None:
                    continue
                if "example" not in content:
                    lacking.append((method, path))
                    continue
                schema = {**content["schema"], "components": document["components"]}
                checker = Draft202012Validator(schema, format_checker=FormatChecker())
                wrong += [
                    (method, path, error.json_path, error.message)
                    for error in checker.iter_errors(content["example"])
                ]
    assert lacking == []
    assert wrong == []


def test_every_problem_has_its_place_on_the_reference_page() -> None:
    page = Client().get("/docs/problems").content.decode()
    for code in (*PROBLEMS, *uamp.ERROR_CODES):
        assert page.count(f'<dt id="{code}">') == 1
    assert "`" not in page
    assert "Send <code>Authorization: Bearer &lt;API key&gt;</code> or sign in." in page


@pytest.mark.parametrize(
    ("users", "trigger"), [([], "always"), (["bob"], "mention")], ids=["alone", "with bob"]
)
def test_an_agent_alone_with_one_person_answers_always(users: list[str], trigger: str) -> None:
    factories.user("bob")
    factories.agent("echo")
    client = signed_in(factories.user("alice"))
    body = {"users": users, "agents": ["echo"]}
    made = client.post("/api/v1/chats", body, content_type="application/json").json()
    (agent,) = (member for member in made["participants"] if member["kind"] == "agent")
    assert agent["trigger"] == trigger


# --- The payer ---


def patch(client: Client, path: str, body: Any) -> Any:
    return client.patch(path, json.dumps(body), content_type="application/json")


def test_agents_publish_their_prices_and_chats_their_payer() -> None:
    ada = factories.user("ada")
    factories.agent("free")
    paid = factories.agent("paid", pricing={"per_answer": "0.02", "tools": {"look": "0.1"}})
    chat = factories.chat(ada, paid)
    client = signed_in(ada)
    free, priced = client.get("/api/v1/agents").json()["data"]
    assert free["pricing"] is None
    assert priced["id"] == paid.pk
    assert priced["pricing"] == {
        "currency": "USD",
        "per_answer": "0.02",
        "input_per_1k": "0",
        "output_per_1k": "0",
        "cache_read_per_1k": None,
        "cache_write_per_1k": None,
        "audio_input_per_1k": None,
        "audio_output_per_1k": None,
        "tools": {"look": "0.1"},
        "unfinished": "whole",
        "expected_tokens": None,
    }
    shown = client.get(f"/api/v1/chats/{chat.pk}").json()
    assert shown["payer"] == "asker"
    assert [m.get("pricing") for m in shown["participants"]] == [None, priced["pricing"]]


def test_an_owner_changes_the_title_and_who_pays_and_the_log_says_so() -> None:
    ada, bob = factories.user("ada"), factories.user("bob")
    chat = factories.chat(ada, bob, title="Before")
    path = f"/api/v1/chats/{chat.pk}"
    changed = patch(signed_in(ada), path, {"title": "\u202eAfter", "payer": "owner"})
    assert (changed.status_code, changed.json()["payer"]) == (200, "owner")
    chat.refresh_from_db()
    assert (chat.title, chat.payer, chat.last_seq) == ("After", "owner", 1)
    reported = ChatEvent.objects.get(chat=chat)
    assert (reported.type, reported.payload["payer"]) == ("chat.updated", "owner")
    assert patch(signed_in(ada), path, {"payer": "owner"}).status_code == 200
    assert ChatEvent.objects.filter(chat=chat).count() == 1


@pytest.mark.parametrize("body", [{"payer": "owner"}, {"title": "Mine"}])
def test_a_member_changes_neither_who_pays_nor_the_title(body: dict[str, str]) -> None:
    ada, bob, mallory = (factories.user(name) for name in ("ada", "bob", "mallory"))
    chat = factories.chat(ada, bob, title="Ours")
    path = f"/api/v1/chats/{chat.pk}"
    check_problem(patch(signed_in(bob), path, body), 403, "forbidden")
    check_problem(patch(signed_in(mallory), path, body), 404, "not_found")
    chat.refresh_from_db()
    assert (chat.title, chat.payer, chat.last_seq) == ("Ours", "asker", 0)


@pytest.mark.parametrize("body", [{"payer": "missing"}, {"payer": None}, {"kind": "session"}])
def test_a_change_that_cannot_be_is_refused(body: dict[str, Any]) -> None:
    ada = factories.user("ada")
    chat = factories.chat(ada)
    check_problem(patch(signed_in(ada), f"/api/v1/chats/{chat.pk}", body), 400, "invalid")


@pytest.mark.parametrize("method", ["options", "post", "put", "patch", "delete"])
@pytest.mark.parametrize("accept", ["text/html", "*/*", "application/json"])
def test_the_reference_page_refuses_other_methods_by_name(method: str, accept: str) -> None:
    answer = getattr(Client(headers={"Accept": accept}), method)("/api/docs")
    check_problem(answer, 405, "method_not_allowed")
    assert answer.headers["Allow"] == "GET, HEAD"
