"""Filters, `fields`, `expand` and `If-Match` of the REST history (docs/rest.md)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.contents.quota import ContentOwner
from chat_app.contents.storage import store
from chat_app.models import Chat, ContentUse, Message, Participant
from chat_app.rest import paging
from payments_app import services as ledger
from sessions_app.models import ToolCallKind
from sessions_app.states import ToolCallState
from tests import factories
from tests.chat_app.rest.rest_caller import bearer, check_problem, signed_in
from tests.payments_app.funded_accounts import authorize, capture_response, fees, usd

if TYPE_CHECKING:
    from django.test import Client

pytestmark = pytest.mark.django_db


class History:
    """A chat with a message of every kind, by their names."""

    def __init__(self) -> None:
        self.ada, self.bob = factories.user("ada"), factories.user("bob")
        self.echo, self.other = factories.agent("echo"), factories.agent("other")
        self.chat = factories.chat(self.ada, self.bob, self.echo, self.other)
        self.session = factories.session(self.ada, self.chat, chat_scoped=True)
        self.names: dict[str, str] = {}
        now = timezone.now()
        self.say("old", self.bob, "needle long ago", created_at=now - timedelta(days=9))
        self.say("hers", self.ada, "a question", transport="rest")
        response = factories.response(
            self.echo, self.chat, session=self.session, message_id=self.id_of("hers")
        )
        self.say("answer", self.echo, "needle here", response_id=response.pk)
        called = factories.response(self.other, self.chat)
        factories.tool_call(called, kind=ToolCallKind.LONG, status=ToolCallState.DONE)
        self.say("called", self.other, "with a tool", response_id=called.pk)
        self.say("failed", self.other, "broken", status="failed")
        content = store(
            factories.png(),
            mime_type="image/png",
            filename="a.png",
            owner=ContentOwner(user_id=self.bob.pk),
        )
        ContentUse.objects.create(content=content, chat=self.chat)
        item = {"type": "image", "image": {"url": f"/api/content/{content.pk}"}}
        self.say("picture", self.bob, "look", content_items=[item])
        self.paid = response

    def say(self, name: str, sender: Any, text: str, **fields: Any) -> Message:
        """Write a message under a name."""
        row = factories.message(self.chat, sender, text)
        if fields:
            Message.objects.filter(pk=row.pk).update(**fields)
        self.names[row.pk] = name
        return row

    def id_of(self, name: str) -> str:
        """Return the id of a message."""
        return next(pk for pk, stored_name in self.names.items() if stored_name == name)

    def names_found(self, client: Client, query: str) -> list[str]:
        """Return the names of the messages that a query finds, sorted."""
        body = client.get(f"/api/v1/chats/{self.chat.pk}/messages?{query}").json()
        assert "data" in body, body
        return sorted(self.names[row["id"]] for row in body["data"])


@pytest.fixture
def history() -> History:
    """Give the chat."""
    return History()


def test_each_filter_finds_its_messages(history: History) -> None:
    client = bearer(history.ada)
    week = (timezone.now() - timedelta(days=7)).isoformat().replace("+", "%2B")
    account = ledger.account_of_user(history.ada.pk)
    ledger.top_up(key="a", account=account.id, amount=usd("5"), provider="t", external_id="a")
    authorize(key="h", account_id=account.id, amount=usd("1"), response_id=history.paid.pk)
    capture_response(
        key="c",
        response_id=history.paid.pk,
        amount=usd("0.3"),
        splits=[fees("0.3")],
        release=True,
    )
    expected = {
        "author=bob": ["old", "picture"],
        f"author={history.ada.pk}": ["hers"],
        "author_kind=agent": ["answer", "called", "failed"],
        "agent=OTHER": ["called", "failed"],
        "protocol=rest": ["hers"],
        "kind=image": ["picture"],
        "has=file": ["picture"],
        "has=error": ["failed"],
        "has=tool": ["called"],
        "has=payment": ["answer"],
        "cost_min=0.3": ["answer"],
        "cost_min=0.31": [],
        f"created_before={week}": ["old"],
        f"created_after={week}&author=bob": ["picture"],
        f"session={history.session.pk}": ["answer", "hers"],
        "q=NEEDLE": ["answer", "old"],
        "q=needle&author=bob": ["old"],
        "q=needle%20here": ["answer"],
    }
    assert {query: history.names_found(client, query) for query in expected} == expected
    # Another's session is not named here.
    assert history.names_found(bearer(history.bob), f"session={history.session.pk}") == []


def test_a_filter_looks_at_so_many_places_and_says_that_there_are_more(
    history: History, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "WINDOW", 2)
    client = bearer(history.ada)
    for order in ("desc", "asc"):
        path: str = f"/api/v1/chats/{history.chat.pk}/messages?author=bob&order={order}"
        names: list[str] = []
        pages = 0
        cursor = ""
        while True:
            body = client.get(path + cursor).json()
            names += [history.names[row["id"]] for row in body["data"]]
            pages += 1
            if not body["has_more"]:
                break
            cursor = f"&cursor={body['next_cursor']}"
        expected = ["picture", "old"] if order == "desc" else ["old", "picture"]
        assert names == expected
        assert pages == 4


def test_fields_and_expand_are_lists_of_known_names(history: History) -> None:
    client = signed_in(history.ada)
    path = f"/api/v1/chats/{history.chat.pk}/messages"
    body = client.get(f"{path}?fields=content,seq&expand=attachments,payment,response").json()
    rows = {history.names[row["id"]]: row for row in body["data"]}
    assert set(rows["old"]) == {"id", "content", "seq", "attachments", "payment", "response"}
    assert [attachment["filename"] for attachment in rows["picture"]["attachments"]] == ["a.png"]
    assert rows["answer"]["response"]["id"] == history.paid.pk
    for query in ("fields=secret", "expand=signature,x", "has=nothing", "around=1&q=a"):
        problem = check_problem(client.get(f"{path}?{query}"), 400, "invalid")
        assert problem["errors"][0]["parameter"] == query.partition("=")[0]


def test_one_message_is_expanded_as_in_a_list_alone_and_when_it_was_replaced(
    history: History,
) -> None:
    client = signed_in(history.ada)
    query = "expand=attachments,failed_answers,payment,response,signature"
    listed = client.get(f"/api/v1/chats/{history.chat.pk}/messages?{query}").json()["data"]
    assert {history.names[row["id"]] for row in listed} >= {"answer", "picture", "hers"}
    for row in listed:
        single = client.get(f"/api/v1/messages/{row['id']}?{query}").json()
        for of_now in (row, single):
            for file in of_now["attachments"]:
                assert file.pop("signed_url")
        # A page of one message without an answer has the same members.
        page = f"/api/v1/chats/{history.chat.pk}/messages?{query}&limit=1&before={row['seq'] + 1}"
        (alone,) = client.get(page).json()["data"]
        assert single == row
        assert alone.keys() == row.keys()
    answer = history.id_of("answer")
    later = history.say("later", history.echo, "again", version_of=answer)
    Message.objects.filter(pk=answer).update(replaced_by=later.pk)
    assert client.get(f"/api/v1/messages/{answer}?{query}").json()["response"] is not None
    wrong = client.get(f"/api/v1/messages/{answer}?expand=secret")
    check_problem(wrong, 400, "invalid")


def test_a_cursor_is_of_its_filters_and_of_its_chat(history: History) -> None:
    client = signed_in(history.ada)
    path = f"/api/v1/chats/{history.chat.pk}/messages?limit=1"
    cursor = client.get(f"{path}&author=bob").json()["next_cursor"]
    assert client.get(f"{path}&author=bob&cursor={cursor}").status_code == 200
    other = factories.chat(history.ada, history.bob)
    for wrong in (
        f"{path}&author=ada&cursor={cursor}",
        f"{path}&cursor={cursor}",
        f"{path}&author=bob&cursor={cursor[:-1]}",
        f"{path}&author=bob&cursor=x",
        f"/api/v1/chats/{other.pk}/messages?limit=1&author=bob&cursor={cursor}",
    ):
        check_problem(client.get(wrong), 400, "invalid_cursor")
    Chat.objects.filter(pk=history.chat.pk).delete()
    check_problem(client.get(f"{path}&author=bob&cursor={cursor}"), 404, "not_found")


def patch(client: Client, path: str, body: Any, etag: str) -> Any:
    headers = {"If-Match": etag}
    return client.patch(path, json.dumps(body), content_type="application/json", headers=headers)


def test_a_write_is_of_what_was_read(history: History) -> None:
    client = signed_in(history.ada)
    path = f"/api/v1/messages/{history.id_of('hers')}"
    etag = client.get(path)["ETag"]
    changed = patch(client, path, {"content": "first"}, etag)
    assert (changed.status_code, changed.json()["revision"]) == (200, 1)
    check_problem(patch(client, path, {"content": "second"}, etag), 412, "precondition_failed")
    assert Message.objects.get(pk=history.id_of("hers")).content == "first"
    check_problem(client.delete(path, headers={"If-Match": etag}), 412, "precondition_failed")
    assert patch(client, path, {"content": "third"}, client.get(path)["ETag"]).status_code == 200
    chat = f"/api/v1/chats/{history.chat.pk}"
    etag = client.get(chat)["ETag"]
    assert patch(client, chat, {"title": "one"}, etag).status_code == 200
    check_problem(patch(client, chat, {"title": "two"}, etag), 412, "precondition_failed")
    assert patch(client, chat, {"title": "three"}, "*").status_code == 200


def test_a_condition_counts_on_every_path_whether_or_not_it_can_be_read(history: History) -> None:
    client = signed_in(history.ada)
    bob = Participant.objects.get(chat=history.chat, user=history.bob)
    path = f"/api/v1/chats/{history.chat.pk}/participants/{bob.pk}"
    etag = client.get(path)["ETag"]
    assert client.get(path).json()["name"] == "bob"
    check_problem(patch(client, path, {"role": "admin"}, '"x"'), 412, "precondition_failed")
    check_problem(client.delete(path, headers={"If-Match": '"x"'}), 412, "precondition_failed")
    assert Participant.objects.get(pk=bob.pk).role == bob.role
    assert patch(client, path, {"role": "admin"}, etag).status_code == 200
    check_problem(client.get(f"{path}0"), 404, "not_found")

    # Its GET has no parameter of the name.
    reactions = f"/api/v1/messages/{history.id_of('hers')}/reactions"
    etag = client.get(reactions)["ETag"]
    emoji = f"{reactions}?emoji=%F0%9F%91%8D"
    assert client.put(emoji, headers={"If-Match": etag}).status_code == 204
    check_problem(client.delete(emoji, headers={"If-Match": etag}), 412, "precondition_failed")
    assert client.delete(emoji).status_code == 204

    # A path without a GET has no ETag to compare.
    pin = f"/api/v1/messages/{history.id_of('hers')}/pin"
    check_problem(client.put(pin, headers={"If-Match": etag}), 412, "precondition_failed")
    assert client.put(pin).status_code == 204
