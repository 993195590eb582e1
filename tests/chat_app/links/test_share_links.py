"""Share links: who makes and revokes them, what they show, and how they end."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone

from chat_app import markdown
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.revisions import edit_message
from chat_app.links import shared_pages
from chat_app.links.share_links import create_share_link
from chat_app.members.participants import change_role, remove_participant
from chat_app.models import ChatEvent, ContentUse, Message, Participant, ShareLink
from tests import factories

if TYPE_CHECKING:
    from django.contrib.auth.models import User

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db


@pytest.fixture
def ada() -> User:
    return factories.user("ada")


@pytest.fixture
def ben() -> User:
    return factories.user("ben")


@pytest.fixture
def chat(ada: User, ben: User) -> Chat:
    return factories.chat(ada, ben, title="Plans")


def browser(person: User | None = None) -> Client:
    client = Client()
    if person is not None:
        client.force_login(person)
    return client


def make_link(person: User, chat: Chat, **body: Any) -> dict[str, Any]:
    """Make a link over REST and return the answer."""
    path = f"/api/v1/chats/{chat.pk}/share-links"
    answer = browser(person).post(path, body, content_type="application/json")
    assert answer.status_code == 201, answer.content
    data: dict[str, Any] = answer.json()
    data["path"] = data["url"].removeprefix("http://testserver")
    return data


def read(path: str) -> str:
    """Return a page as a stranger reads it; it is found."""
    answer = browser().get(path)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.django_db(transaction=True)
def test_a_page_that_waits_for_its_texts_holds_no_connection(
    chat: Chat, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = "Rendered by a process, without a connection."
    factories.message(chat, ada, text)
    link, _ = create_share_link(chat_id=chat.pk, made_by=ada)
    is_connected: list[bool] = []

    def render(*_: Any, **__: Any) -> bytes:
        is_connected.append(connection.connection is not None)
        return b"<p>done</p>"

    monkeypatch.setattr(markdown._processes, "ask", render)
    # As in a pool, the connection may be released.
    connection.close_at = 0.0
    (message,) = shared_pages.shared_page(link).messages
    assert message.parts[0].html == "<p>done</p>"
    assert is_connected == [False]


def test_a_stranger_reads_what_was_said_up_to_the_link(chat: Chat, ada: User, ben: User) -> None:
    factories.message(chat, ada, "One **bold** <script>alert(1)</script>")
    link = make_link(ada, chat, title="For you")
    factories.message(chat, ben, "Said later")

    answer = browser().get(link["path"])
    page = answer.content.decode()
    assert "For you" in page
    assert "<strong>bold</strong>" in page
    assert "<script" not in page
    assert "Said later" not in page
    assert answer["X-Robots-Tag"] == "noindex, nofollow, noarchive"
    assert answer["Referrer-Policy"] == "no-referrer"
    assert answer["Cache-Control"] == "private, no-store"
    assert "script-src" not in answer["Content-Security-Policy"]
    assert answer["Content-Security-Policy"].startswith("default-src 'none'; style-src 'self'")
    assert not answer.cookies
    # No id of the chat or of a message, and nothing to write with.
    assert chat.pk not in page
    assert "msg_" not in page
    assert "<form" not in page


def test_a_growing_link_shows_later_messages(chat: Chat, ada: User) -> None:
    link = make_link(ada, chat, grows=True)
    assert "There is nothing to read here yet" in read(link["path"])
    factories.message(chat, ada, "Said later")
    assert "Said later" in read(link["path"])


def test_code_is_scrolled_with_the_keyboard_and_other_text_stays(chat: Chat, ada: User) -> None:
    odd_text = "`\"><pre><code>` [a](https://a.test '\"><pre><code>')"
    factories.message(chat, ada, f"```\nlong\n```\n\n{odd_text}")
    page = read(make_link(ada, chat)["path"])
    assert '<pre tabindex="0"><code>long' in page
    # In the text, and in the title of the link, it stays what was written.
    assert page.count('tabindex="0"><code>') == 1
    assert page.count("<code>") == 2


def test_edits_are_shown_and_deleted_texts_are_not(chat: Chat, ada: User, ben: User) -> None:
    edited = factories.message(chat, ada, "First words")
    deleted = factories.message(chat, ada, "Never mind")
    factories.message(chat, ben, "An answer", reply_to=deleted.pk)
    link = make_link(ada, chat)
    edit_message(chat_id=chat.pk, message_id=edited.pk, user_id=ada.pk, content="Second words")
    delete_message(chat_id=chat.pk, message_id=deleted.pk, user_id=ada.pk)
    page = read(link["path"])
    assert "Second words" in page
    assert "First words" not in page
    # Neither itself nor as the quote of its answer.
    assert "Never mind" not in page
    assert "An answer" in page


def test_a_quote_is_text_without_marks(chat: Chat, ada: User, ben: User) -> None:
    question = factories.message(
        chat, ada, "**Bold** [name](https://a.example)\n- one\n- <i> & `x`"
    )
    factories.message(chat, ben, "An answer", reply_to=question.pk)
    page = read(make_link(ada, chat)["path"])
    assert "Bold name one &lt;i&gt; &amp; x</blockquote>" in page


def test_only_one_version_of_an_answer_is_shown(chat: Chat, ada: User) -> None:
    agent = factories.agent()
    first = factories.message(chat, agent, "Version one")
    second = factories.message(chat, agent, "Version two", version_of=first.pk)
    Message.objects.filter(pk=first.pk).update(replaced_by=second.pk)
    page = read(make_link(ada, chat)["path"])
    assert "Version two" in page
    assert "Version one" not in page
    # A page as of then shows the version of then, and one that grows that of now.
    as_of_then, growing = make_link(ada, chat)["path"], make_link(ada, chat, grows=True)["path"]
    third = factories.message(chat, agent, "Version three", version_of=first.pk)
    Message.objects.filter(pk=second.pk).update(replaced_by=third.pk)
    assert ("Version two" in read(as_of_then), "Version three" in read(as_of_then)) == (True, False)
    assert ("Version two" in read(growing), "Version three" in read(growing)) == (False, True)


def test_thoughts_prices_and_receipts_are_not_shown(chat: Chat, ada: User) -> None:
    agent = factories.agent()
    call = {"id": "call_secret", "name": "csv_report", "arguments": '{"rows": 3}'}
    message = factories.message(chat, agent, "Done")
    Message.objects.filter(pk=message.pk).update(
        response_id="resp_secret",
        content_items=[
            {"type": "thinking", "thinking": "a private thought"},
            {"type": "tool_call", "tool_call": call},
            {
                "type": "tool_result",
                "tool_result": {"call_id": "call_secret", "result": '{"total": 12}'},
            },
            {"type": "text", "text": "Done"},
        ],
    )
    page = read(make_link(ada, chat)["path"])
    assert "private thought" not in page
    assert "call_secret" not in page
    assert "resp_secret" not in page
    # A call is folded.
    assert "<details>" in page
    assert "csv_report" in page
    assert "&quot;total&quot;: 12" in page


def test_pages_are_turned_both_ways_without_scripts(
    chat: Chat, ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_pages, "PAGE", 2)
    for number in range(5):
        factories.message(chat, ada, f"number {number}")
    path = make_link(ada, chat)["path"]
    pages = [read(path)]
    while link_to_next := re.search(r'rel="next" href="([^"]+)"', pages[-1]):
        pages.append(read(link_to_next[1]))
    texts = [re.findall(r"number (\d)", page) for page in pages]
    assert texts == [["0", "1"], ["2", "3"], ["4"]]
    back = re.search(r'rel="prev" href="([^"]+)"', pages[-1])
    assert back is not None
    assert re.findall(r"number (\d)", read(back[1])) == ["2", "3"]
    # A place that is none shows the beginning.
    assert re.findall(r"number (\d)", read(f"{path}?after=9999999999999999999")) == ["0", "1"]
    assert re.findall(r"number (\d)", read(f"{path}?before=x")) == ["0", "1"]


def test_pictures_are_read_by_addresses_of_the_link(chat: Chat, ada: User) -> None:
    picture, other, foreign = (factories.content(ada, factories.png(n, n)) for n in (2, 3, 4))
    item = {"type": "image", "image": {"url": f"/api/content/{picture.pk}"}}
    message = factories.message(chat, ada, f"![x](/api/content/{foreign.pk})")
    Message.objects.filter(pk=message.pk).update(content_items=[item])
    elsewhere = factories.message(chat, ada, "Another one")
    for content in (picture, other):
        ContentUse.objects.create(content=content, chat=chat, shown_by=1)
    link = make_link(ada, chat)
    page = read(link["path"]).replace("&amp;", "&")
    address = re.search(rf'src="(/shared/files/{picture.pk}[^"]+)"', page)
    assert address is not None
    assert "/api/content/" not in page
    answer = browser().get(address[1])
    assert answer.status_code == 200
    assert answer["Content-Type"] == "image/png"
    assert answer["Cache-Control"] == "private, no-store"
    assert answer["Content-Security-Policy"] == "sandbox; default-src 'none'"

    def status(address: str) -> int:
        return browser().get(address).status_code

    # The signature is for this content, at this place, by this link.
    assert status(address[1].replace(str(picture.pk), str(other.pk))) == 404
    assert status(address[1].replace(f"at={message.seq}", f"at={elsewhere.seq}")) == 404
    assert status(address[1].replace("link=", "link=9")) == 404
    assert status(address[1].partition("?")[0]) == 404
    # A text that names a content of another chat shows nothing of it.
    foreign_address = re.search(rf'"(/shared/files/{foreign.pk}[^"]+)"', page)
    assert foreign_address is None or status(foreign_address[1]) == 404

    delete_message(chat_id=chat.pk, message_id=message.pk, user_id=ada.pk)
    assert status(address[1]) == 404


def test_a_picture_in_a_text_has_an_address_of_the_link(chat: Chat, ada: User) -> None:
    content = factories.content(ada)
    factories.message(chat, ada, f"![plan](/api/content/{content.pk})")
    ContentUse.objects.create(content=content, chat=chat, shown_by=1)
    link = make_link(ada, chat)
    address = re.search(r'img src="([^"]+)"', read(link["path"]))
    assert address is not None
    path = address[1].replace("&amp;", "&")
    assert browser().get(path).status_code == 200
    browser(ada).delete(f"/api/v1/chats/{chat.pk}/share-links/{link['id']}")
    assert browser().get(path).status_code == 404


def test_a_link_that_opens_nothing_is_answered_like_an_unknown_one(chat: Chat, ada: User) -> None:
    factories.message(chat, ada, "Hello")
    revoked, expired = make_link(ada, chat), make_link(ada, chat)
    assert browser().get(revoked["path"]).status_code == 200
    answer = browser(ada).delete(f"/api/v1/chats/{chat.pk}/share-links/{revoked['id']}")
    assert answer.status_code == 204
    ShareLink.objects.filter(pk=expired["id"]).update(expires_at=timezone.now())
    unknown = "/shared/shr_" + "A" * 43
    answers = [browser().get(path) for path in (revoked["path"], expired["path"], unknown)]
    assert [answer.status_code for answer in answers] == [404, 404, 404]
    assert len({answer.content for answer in answers}) == 1
    assert len({tuple(sorted(answer.headers.items())) for answer in answers}) == 1
    rows = browser(ada).get(f"/api/v1/chats/{chat.pk}/share-links").json()["data"]
    assert [row["state"] for row in rows] == ["expired", "revoked"]
    assert not any("url" in row or "token" in str(row) for row in rows)


def test_members_see_who_shared_and_how_often_it_was_opened(
    chat: Chat, ada: User, ben: User
) -> None:
    factories.message(chat, ada, "Hello")
    link = make_link(ada, chat, title="Look")
    browser().get(link["path"])
    browser().get(link["path"])
    browser().head(link["path"])
    browser().get(f"{link['path']}?after=1")
    (row,) = browser(ben).get(f"/api/v1/chats/{chat.pk}/share-links").json()["data"]
    assert (row["created_by"], row["opened_count"], row["title"]) == ("ada", 2, "Look")
    assert row["opened_at"] is not None
    assert link["path"].rpartition("/")[2] not in str(ShareLink.objects.values_list())
    events = ChatEvent.objects.filter(chat=chat, type="link.created")
    (payload,) = events.values_list("payload", flat=True)
    assert payload["by"]["name"] == "ada"
    assert "shr_" not in str(payload)


def test_members_without_the_right_and_strangers_share_nothing(
    chat: Chat, ada: User, ben: User
) -> None:
    link = make_link(ada, chat)
    path = f"/api/v1/chats/{chat.pk}/share-links"
    mallory = factories.user("mallory")
    before = list(ShareLink.objects.values())
    for person, status in ((ben, 403), (mallory, 404)):
        client = browser(person)
        assert client.post(path, {}, content_type="application/json").status_code == status
        assert client.delete(f"{path}/{link['id']}").status_code == status
    assert browser(mallory).get(path).status_code == 404
    assert list(ShareLink.objects.values()) == before
    other = factories.chat(ben)
    answer = browser(ben).delete(f"/api/v1/chats/{other.pk}/share-links/{link['id']}")
    assert answer.status_code == 404
    assert list(ShareLink.objects.values()) == before


@pytest.mark.parametrize(
    "body", [{"days": 0}, {"days": 366}, {"title": "x" * 201}, {"grows": "maybe"}, {"until": 3}]
)
def test_what_a_link_may_not_be_is_refused(chat: Chat, ada: User, body: dict[str, Any]) -> None:
    path = f"/api/v1/chats/{chat.pk}/share-links"
    answer = browser(ada).post(path, body, content_type="application/json")
    assert answer.status_code == 400
    assert not ShareLink.objects.exists()


def test_a_link_ends_after_its_days_or_thirty_by_default(chat: Chat, ada: User) -> None:
    for body, days in (({}, 30), ({"days": 1}, 1), ({"days": 365}, 365)):
        row = ShareLink.objects.get(pk=make_link(ada, chat, **body)["id"])
        assert row.expires_at - row.created_at == timedelta(days=days)


def test_a_chat_has_so_many_links(chat: Chat, ada: User, settings: Any) -> None:
    settings.UAMP_LINKS_PER_CHAT = 2
    first = make_link(ada, chat)
    make_link(ada, chat)
    path = f"/api/v1/chats/{chat.pk}/share-links"
    answer = browser(ada).post(path, {}, content_type="application/json")
    assert (answer.status_code, answer.json()["code"]) == (409, "too_many_links")
    assert ShareLink.objects.count() == 2
    browser(ada).delete(f"{path}/{first['id']}")
    make_link(ada, chat)


@pytest.mark.parametrize("end", ["leaves", "removed", "demoted", "deactivated"])
def test_a_link_ends_with_its_makers_right(chat: Chat, ada: User, ben: User, end: str) -> None:
    member = Participant.objects.get(chat=chat, user=ben)
    change_role(chat_id=chat.pk, changed_by=ada, participant_id=member.pk, role="admin")
    factories.message(chat, ada, "Hello")
    path = make_link(ben, chat)["path"]
    assert browser().get(path).status_code == 200
    if end == "deactivated":
        ben.is_active = False
        ben.save()
    elif end == "demoted":
        change_role(chat_id=chat.pk, changed_by=ada, participant_id=member.pk, role="member")
    else:
        by = ben if end == "leaves" else ada
        remove_participant(chat_id=chat.pk, removed_by=by, participant_id=member.pk)
    assert browser().get(path).status_code == 404
    if end == "deactivated":
        return
    row = ShareLink.objects.get()
    assert row.revoked_at is not None
    assert row.revoked_by is None
    assert ChatEvent.objects.filter(chat=chat, type="link.revoked").count() == 1
    # It does not come back with the right.
    Participant.objects.filter(pk=member.pk).update(role="admin", left_at=None)
    assert browser().get(path).status_code == 404


def test_pages_are_counted_by_address(chat: Chat, ada: User, settings: Any) -> None:
    settings.UAMP_SHARED_PAGES_PER_MINUTE = 2
    path = make_link(ada, chat)["path"]
    statuses = [browser(ada).get(path).status_code, browser().get("/shared/shr_guess").status_code]
    refused = browser().get(path)
    assert [*statuses, refused.status_code] == [200, 404, 429]
    assert int(refused["Retry-After"]) >= 1
    assert refused["X-Robots-Tag"] == "noindex, nofollow, noarchive"


def test_a_page_takes_few_queries(
    chat: Chat, ada: User, django_assert_max_num_queries: Any
) -> None:
    agent = factories.agent()
    for number in range(shared_pages.PAGE + 5):
        factories.message(chat, agent if number % 2 else ada, f"number {number}")
    _, secret = create_share_link(chat_id=chat.pk, made_by=ada)
    # One of them reads the name of the server.
    with django_assert_max_num_queries(7):
        assert browser().get(f"/shared/{secret}").status_code == 200
