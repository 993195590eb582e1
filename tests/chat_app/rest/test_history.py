"""Messages and events over REST, in pages and for members only (docs/rest.md)."""

from __future__ import annotations

import pytest

from chat_app.members import participants
from chat_app.models import ChatEvent, Participant
from chat_app.rest import paging
from tests import factories
from tests.chat_app.rest.rest_caller import check_problem, post, rows_written, signed_in

pytestmark = pytest.mark.django_db


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
        "salt": message.salt,
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


@pytest.mark.sampled(4)
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


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_page_of_long_messages_ends_early(order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paging, "PAGE_CHARS", 3000)
    ada = factories.user("ada")
    chat = factories.chat(ada)
    for length in (1000, 1000, 5000, 10, 10, 1000):
        factories.message(chat, ada, "x" * length)
    client, pages = signed_in(ada), []
    url = f"/api/v1/chats/{chat.pk}/messages?order={order}"
    while url:
        response = client.get(url)
        pages.append([m["seq"] for m in response.json()["data"]])
        url = response.headers.get("Link", "").partition("<")[2].partition(">")[0]
    assert pages == ([[1, 2], [3], [4, 5, 6]] if order == "asc" else [[6, 5, 4], [3], [2, 1]])
    # A place is always shown with what is around it.
    around = client.get(f"/api/v1/chats/{chat.pk}/messages?order=asc&around=3").json()
    assert [m["seq"] for m in around["data"]] == [3, 4, 5, 6]


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
    events = signed_in(bob).get(f"{path}&after=0&before=5000").json()["data"]
    assert [event["type"] for event in events] == ["participant.joined"]
    assert events[0]["payload"]["by"] == {"id": str(ada.pk), "name": "ada"}
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


def test_text_is_rendered_up_to_64_kib() -> None:
    client = signed_in(factories.user())
    rendered = post(client, "/api/v1/render", {"text": "**a** <b>"})
    assert rendered.json() == {"html": "<p><strong>a</strong> &lt;b&gt;</p>"}
    assert post(client, "/api/v1/render", {"text": "é" * 32 * 1024}).status_code == 200
    longer = post(client, "/api/v1/render", {"text": "é" * 32 * 1024 + "a"})
    assert check_problem(longer, 400, "invalid")["errors"][0]["pointer"] == "/text"
