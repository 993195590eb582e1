"""Threads: who answers where, what agents are shown, what is counted, and what is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from chat_app.conversation.deletion import delete_message
from chat_app.export.formats import FORMATS
from chat_app.export.pages import pages
from chat_app.log import history
from chat_app.models import Chat, ChatEvent, Message, MessageThread, ThreadFollower
from sessions_app.models import Response
from sessions_app.response import request as response_request
from sessions_app.turn import launch
from tests import factories
from tests.chat_app.conversation.joining import joined, refusal, send_message
from tests.client import text_of
from tests.live_server import Dial, Person, quick_agent, shared_chat

if TYPE_CHECKING:
    import httpx

    from tests.client import Frame, UampClient


def next_answer(client: UampClient) -> Frame:
    """Return the next message of an agent."""
    while True:
        message: Frame = client.until("message.created")[-1]["message"]
        if message["sender_kind"] == "agent":
            return message


def listed(web: httpx.Client, who: Person, chat: Chat, thread: str = "") -> list[Any]:
    path = f"/api/v1/chats/{chat.pk}/messages?order=asc"
    answer = web.get(path + (f"&thread={thread}" if thread else ""), headers=who.headers)
    assert answer.status_code == 200, answer.text
    rows: list[Any] = answer.json()["data"]
    return rows


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Return the texts of the conversations that agents are given, turn by turn."""
    texts_by_turn: list[list[str]] = []

    def spied(*arguments: Any, **options: Any) -> Any:
        texts_by_turn.append([str(message.content) for message in arguments[3]])
        return response_request.run_request(*arguments, **options)

    monkeypatch.setattr(launch, "run_request", spied)
    return texts_by_turn


def test_an_agent_that_is_asked_in_a_thread_answers_there(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, prompts: list[list[str]]
) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, bob, agents=("parrot",))
    asker, reader = joined(dial, alice, chat), joined(dial, bob, chat)
    root, later = send_message(asker, "the root"), send_message(asker, "later in the chat")
    reader.ask("a reply", thread=root)
    reader.ask("@parrot and now?", thread=root)
    frames = reader.until("response.done")
    created = next(frame for frame in frames if frame["type"] == "response.created")
    assert created["thread"] == root
    assert text_of(frames) == "and now?"
    answer = next_answer(asker)
    assert answer["thread"] == root
    # The chat without the root, then the thread.
    assert prompts.pop() == ["later in the chat", "the root", "a reply", "@parrot and now?"]

    assert [row["id"] for row in listed(web, bob, chat, "none")] == [root, later]
    rows = listed(web, bob, chat, root)
    assert [row["content"] for row in rows] == ["a reply", "@parrot and now?", "and now?"]
    assert {(row["thread"], row["also_in_chat"], row["replies"]) for row in rows} == {
        (root, False, None)
    }
    assert len(listed(web, bob, chat)) == 5
    replies = listed(web, bob, chat, "none")[0]["replies"]
    assert (replies["replies"], replies["last_seq"]) == (3, rows[-1]["seq"])
    assert [face["name"] for face in replies["participants"]] == ["parrot", "bob"]

    # What is asked in the chat is answered there, without the thread.
    asker.ask("@parrot here?")
    assert "thread" not in next_answer(asker)
    assert prompts.pop() == ["the root", "later in the chat", "@parrot here?"]
    seen = [message.content for message in history.history(chat.pk, limit=20)]
    assert seen == ["the root", "later in the chat", "@parrot here?", "here?"]


def test_a_reply_may_be_shown_in_the_chat_too(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, prompts: list[list[str]]
) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, bob, agents=("parrot",))
    asker = joined(dial, alice, chat)
    root = send_message(asker, "the root")
    asker.ask("for all", thread=root, also_in_chat=True)
    created = asker.until("message.created")[-1]["message"]
    assert (created["thread"], created["also_in_chat"]) == (root, True)
    assert [row["content"] for row in listed(web, bob, chat, "none")] == ["the root", "for all"]
    assert listed(web, bob, chat, root)[0]["also_in_chat"] is True
    # An agent is shown it once.
    asker.ask("@parrot well?", thread=root)
    next_answer(asker)
    assert prompts.pop() == ["the root", "for all", "@parrot well?"]


def test_a_thread_begins_with_a_message_of_its_own_chat_that_is_in_no_thread(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    mine, other = shared_chat(alice, bob), shared_chat(bob)
    foreign = factories.message(other, bob.user, "secret")
    gone = factories.message(mine, alice.user, "gone")
    delete_message(chat_id=mine.pk, message_id=gone.pk, user_id=alice.user.pk)
    client = joined(dial, alice, mine)
    root = send_message(client, "the root")
    client.ask("a reply", thread=root)
    reply = client.until("message.created")[-1]["message"]["id"]
    before = (Message.objects.count(), ChatEvent.objects.count(), MessageThread.objects.get())
    for message_id in (foreign.pk, gone.pk, "msg_none"):
        client.ask("what?", thread=message_id)
        assert refusal(client) == "message_not_found"
    client.ask("what?", thread=reply)
    assert refusal(client) == "thread_nested"
    after = (Message.objects.count(), ChatEvent.objects.count(), MessageThread.objects.get())
    assert before == after
    for thread in (foreign.pk, "msg_none"):
        path = f"/api/v1/chats/{mine.pk}/messages?thread={thread}"
        assert web.get(path, headers=alice.headers).status_code == 404
    path = f"/api/v1/chats/{other.pk}/messages?thread={foreign.pk}"
    assert web.get(path, headers=alice.headers).status_code == 404


def test_new_replies_concern_those_who_take_part(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat = shared_chat(alice, bob, mallory)
    clients = {who.user.username: joined(dial, who, chat) for who in (alice, bob, mallory)}
    root = send_message(clients["alice"], "the root")

    def unread(who: Person) -> tuple[int, int]:
        row = web.get(f"/api/v1/chats/{chat.pk}", headers=who.headers).json()
        return row["unread"], row["unread_replies"]

    def reply(who: str, text: str) -> str:
        clients[who].ask(text, thread=root)
        while True:
            message = clients[who].until("message.created")[-1]["message"]
            if message["content"] == text:
                return str(message["id"])

    first = reply("bob", "a reply")
    # The author of the root follows, who replied has read it, the third person has no part in it.
    assert [unread(who) for who in (alice, bob, mallory)] == [(0, 1), (1, 0), (1, 0)]
    last = reply("bob", "@mallory look")
    assert [unread(who) for who in (alice, bob, mallory)] == [(0, 2), (1, 0), (1, 2)]
    replies = listed(web, mallory, chat, "none")[0]["replies"]
    assert (replies["following"], replies["read_seq"]) == (True, 0)
    # To read a reply marks the thread, and not the chat around it.
    clients["alice"].send("message.read", message_id=last)
    receipt = clients["bob"].until("message.read")[-1]
    assert (receipt["message_id"], receipt["thread"]) == (last, root)
    assert [unread(who) for who in (alice, mallory)] == [(0, 0), (1, 2)]
    clients["alice"].send("message.read", message_id=first)
    clients["alice"].settle()
    assert ChatEvent.objects.filter(type="message.read").count() == 1
    assert ThreadFollower.objects.get(user=alice.user).read_seq == replies["last_seq"]
    # A deleted reply is not counted any more.
    delete_message(chat_id=chat.pk, message_id=last, user_id=bob.user.pk)
    assert unread(mallory) == (1, 1)
    assert listed(web, mallory, chat, "none")[0]["replies"]["replies"] == 1
    gone = clients["mallory"].until("message.deleted")[-1]
    assert gone["thread"] == root
    delete_message(chat_id=chat.pk, message_id=first, user_id=bob.user.pk)
    assert listed(web, mallory, chat, "none")[0]["replies"] is None


def test_a_person_lists_the_threads_that_they_follow(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    chat, left = shared_chat(alice, bob, mallory), shared_chat(alice, bob)
    asker, replier = joined(dial, alice, chat), joined(dial, bob, chat)
    roots = [send_message(asker, f"root {n}") for n in range(4)]
    # What comes next are the replies.
    replier.settle()
    for root in roots:
        replier.ask(f"to {root}", thread=root)
        replier.until("message.created")
    # In a chat that she left there is none of hers.
    gone = send_message(joined(dial, alice, left), "gone")
    elsewhere = joined(dial, bob, left)
    elsewhere.ask("to it", thread=gone)
    elsewhere.until("message.created")
    left.participants.filter(user=alice.user).update(left_at=timezone.now())
    # She has read the newest two.
    for root in roots[2:]:
        last = Message.objects.get(thread=root)
        asker.send("message.read", message_id=last.pk)
        asker.until("message.read")

    def page(who: Person, query: str = "") -> Any:
        answer = web.get(f"/api/v1/threads{query}", headers=who.headers)
        assert answer.status_code == 200, answer.text
        return answer.json()

    everything = [(row["id"], row["unread"]) for row in page(alice)["data"]]
    assert everything == [(roots[1], 1), (roots[0], 1), (roots[3], 0), (roots[2], 0)]
    listed_roots, query = [], "?limit=1"
    while query:
        body = page(alice, query)
        listed_roots += [row["id"] for row in body["data"]]
        query = f"?limit=1&cursor={body['next_cursor']}" if body["has_more"] else ""
    assert listed_roots == [root for root, _ in everything]
    row = page(alice)["data"][0]
    assert (row["chat_id"], row["content"], row["replies"]) == (chat.pk, "root 1", 1)
    assert [face["name"] for face in row["participants"]] == ["bob"]
    # He replied, and has read what he wrote; she has no part in any.
    assert {row["unread"] for row in page(bob)["data"]} == {0}
    assert page(mallory)["data"] == []
    for wrong in ("?limit=51", "?cursor=x", "?chat=1"):
        assert web.get(f"/api/v1/threads{wrong}", headers=alice.headers).status_code == 400


def test_a_regenerated_answer_counts_once_and_keeps_its_thread(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, prompts: list[list[str]]
) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, bob, agents=("parrot",))
    client = joined(dial, alice, chat)
    client.ask("@parrot the root")
    root = next_answer(client)["id"]
    client.ask("@parrot in it", thread=root)
    first = next_answer(client)["id"]
    send_message(client, "the chat goes on")
    client.send("response.create", replaces=first)
    again = next_answer(client)
    assert (again["version_of"], again["thread"]) == (first, root)
    assert prompts.pop() == ["@parrot the root", "the root", "@parrot in it"]
    assert [row["id"] for row in listed(web, bob, chat, root)][-1] == again["id"]
    assert MessageThread.objects.get().replies == 2
    # Another version of the root has its thread.
    Message.objects.filter(content="the chat goes on").delete()
    client.send("response.create", replaces=root)
    newest = next_answer(client)["id"]
    client.ask("to the newest", thread=newest)
    assert client.until("message.created")[-1]["message"]["thread"] == root
    row = next(row for row in listed(web, bob, chat, "none") if row["id"] == newest)
    assert row["replies"]["replies"] == 3
    assert len(listed(web, bob, chat, newest)) == 3


def test_agents_ask_each_other_in_a_thread_within_its_guards(dial: Dial, alice: Person) -> None:
    quick_agent("ping", "asker", asks=["pong"], says="Your turn.")
    quick_agent("pong", "asker", asks=["ping"], says="No, yours.")
    chat = shared_chat(alice, agents=("ping", "pong"))
    Chat.objects.filter(pk=chat.pk).update(agent_hops=2)
    client = joined(dial, alice, chat)
    root = send_message(client, "the root")
    client.ask("@ping begin", thread=root)
    stopped = client.until("agent.stopped")[-1]
    assert (stopped["reason"], stopped["thread"]) == ("hops", root)
    answers = Message.objects.filter(chat=chat, sender_agent__isnull=False)
    assert set(answers.values_list("thread", "thread_only")) == {(root, True)}
    assert answers.count() == Response.objects.count() == 3
    assert MessageThread.objects.get().replies == 4


def test_a_scope_gives_an_agent_the_root_in_any_case(
    dial: Dial, alice: Person, prompts: list[list[str]]
) -> None:
    quick_agent("parrot", "echo")
    chat = shared_chat(alice, agents=("parrot",))
    client = joined(dial, alice, chat)
    root = send_message(client, "the root")
    client.ask("@parrot to it")
    next_answer(client)
    send_message(client, "not to it")
    client.ask("a reply", thread=root)
    client.until("message.created")
    agent = chat.participants.get(agent__isnull=False)
    for context, limit, expected in (
        ("last", 1, ["the root", "@parrot?"]),
        ("addressed", None, ["@parrot to it", "to it", "the root", "a reply", "@parrot?"]),
    ):
        chat.participants.filter(pk=agent.pk).update(context=context, context_messages=limit)
        client.ask("@parrot?", thread=root)
        gone = next_answer(client)["id"]
        assert prompts.pop() == expected
        Message.objects.filter(pk=gone).delete()
        Message.objects.filter(content="@parrot?").delete()


def test_an_export_keeps_threads(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice)
    client = joined(dial, alice, chat)
    root = send_message(client, "the root")
    client.ask("a reply", thread=root)
    client.until("message.created")
    chat = Chat.objects.get(pk=chat.pk)
    rows = [row for page in pages(chat, alice.user.pk, receipts=lambda *_: {}) for row in page]
    assert [(row["thread"], row["also_in_chat"]) for row in rows] == [(None, False), (root, False)]
    write = FORMATS["markdown"][0]
    text = b"".join(write(chat, pages(chat, alice.user.pk, receipts=lambda *_: {}))).decode()
    assert text.count(", in a thread)") == 1


def test_a_search_says_in_which_thread_a_message_stands(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    chat = shared_chat(alice)
    client = joined(dial, alice, chat)
    root = send_message(client, "the root")
    client.ask("a needle", thread=root)
    client.until("message.created")
    hits = web.get("/api/v1/search?q=needle", headers=alice.headers).json()["data"]
    assert [row["thread"] for row in hits] == [root]
