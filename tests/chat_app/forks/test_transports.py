"""Forks over UAMP and REST: one answer for strangers, the same chat for a repeat, limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.models import Chat, ChatOrigin, Message
from sessions_app.models import Response
from tests.chat_app.conversation.joining import joined, refusal, send_message
from tests.client import text_of
from tests.live_server import Dial, Person, quick_agent, shared_chat

if TYPE_CHECKING:
    import httpx
    from pytest_django.fixtures import Settings


def test_a_member_forks_a_chat_on_their_socket(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person
) -> None:
    source = shared_chat(alice, bob)
    owner, member = joined(dial, alice, source), joined(dial, bob, source)
    message_id = send_message(owner, "hello")
    member.until("message.created")
    member.send("chat.fork", message_id=message_id, title="Mine", event_id="fork_1")
    forked = member.until("chat.forked")[-1]
    # The answer is no entry of the log of the source.
    assert "seq" not in forked
    assert forked["source"] == {
        "chat_id": source.pk, "message_id": message_id, "title": "Shared"
    }  # fmt: skip
    assert (forked["title"], forked["messages"]) == ("Mine", 1)
    member.send("chat.fork", message_id=message_id, key="k", chat_id=source.pk)
    second = member.until("chat.forked")[-1]["chat_id"]
    member.send("chat.fork", message_id=message_id, key="k")
    assert member.until("chat.forked")[-1]["chat_id"] == second != forked["chat_id"]
    # Another socket of the person finds it by the key.
    again = joined(dial, bob, source)
    again.send("chat.fork", message_id=message_id, key="k")
    assert again.until("chat.forked")[-1]["chat_id"] == second
    chat_data = web.get(f"/api/v1/chats/{forked['chat_id']}", headers=bob.headers).json()
    assert (chat_data["role"], chat_data["last_seq"], chat_data["unread"]) == ("owner", 2, 0)
    assert chat_data["forked_from"]["chat_id"] == source.pk
    stranger = web.get(f"/api/v1/chats/{forked['chat_id']}", headers=alice.headers)
    assert stranger.status_code == 404
    assert ChatOrigin.objects.count() == 2


def test_the_log_of_a_fork_is_replayed_like_any_other(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    source = shared_chat(alice)
    client = joined(dial, alice, source)
    message_id = send_message(client, "hello")
    client.send("chat.fork", message_id=message_id)
    chat_id = client.until("chat.forked")[-1]["chat_id"]
    reader = dial(alice)
    reader.send("session.create", session={}, chat=chat_id)
    created = reader.until("session.created")[-1]
    reader.close()
    resumed = dial(alice)
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    resumed.send("session.create", session={}, chat=chat_id, resume=resume)
    frames = resumed.until("chat.forked")
    logged = web.get(f"/api/v1/chats/{chat_id}/events", headers=alice.headers).json()["data"]
    replayed = [
        frame for frame in frames if frame.get("seq") and frame["type"] != "session.created"
    ]
    assert [(replayed_frame["seq"], replayed_frame["type"]) for replayed_frame in replayed] == [
        (event["seq"], event["type"]) for event in sorted(logged, key=lambda event: event["seq"])
    ]  # fmt: skip


def test_an_agent_answers_in_the_fork_from_the_copied_history(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    quick_agent("parrot", "echo")
    source = shared_chat(alice, agents=("parrot",))
    client = joined(dial, alice, source)
    client.ask("@parrot one")
    client.until("response.done")
    answer = Message.objects.get(chat=source, role="assistant")
    client.send("chat.fork", message_id=answer.pk)
    chat = Chat.objects.get(pk=client.until("chat.forked")[-1]["chat_id"])
    before = Response.objects.count()
    fork = joined(dial, alice, chat)
    fork.ask("two")
    assert text_of(fork.until("response.done")) == "two"
    assert Response.objects.count() == before + 1
    roles = Message.objects.filter(chat=chat).order_by("seq").values_list("role", "content")
    assert list(roles) == [
        ("user", "@parrot one"), ("assistant", "one"), ("user", "two"), ("assistant", "two")
    ]  # fmt: skip
    # A copied answer was not given here: it cannot be made again.
    copied = Message.objects.get(chat=chat, copied_from=answer.pk)
    fork.send("response.create", replaces=copied.pk)
    assert refusal(fork) == "message_not_found"


def test_a_stranger_and_a_wrong_message_get_one_answer(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, mallory: Person
) -> None:
    source, elsewhere = shared_chat(alice, bob), shared_chat(mallory)
    message_id = send_message(joined(dial, alice, source), "hello")
    client = joined(dial, mallory, elsewhere)
    for wrong in (message_id, "msg_none"):
        client.send("chat.fork", message_id=wrong)
        assert refusal(client) == "message_not_found"
    client.send("chat.fork", message_id=message_id, chat_id=source.pk)
    assert refusal(client) == "chat_not_found"
    answers = [
        web.post(
            f"/api/v1/chats/{chat_id}/forks", json={"message_id": wrong}, headers=mallory.headers
        )
        for chat_id, wrong in (
            (source.pk, message_id),
            ("chat_none", message_id),
            (elsewhere.pk, message_id),
            (elsewhere.pk, "msg_none"),
        )
    ]
    assert [answer.status_code for answer in answers] == [404] * 4
    assert len({answer.json()["detail"] for answer in answers}) == 1
    assert not ChatOrigin.objects.exists()


def test_a_fork_over_rest(web: httpx.Client, dial: Dial, alice: Person, bob: Person) -> None:
    source = shared_chat(alice, bob)
    message_id = send_message(joined(dial, alice, source), "hello")
    path, body = f"/api/v1/chats/{source.pk}/forks", {"message_id": message_id, "title": "Mine"}
    headers = {**bob.headers, "Idempotency-Key": "k"}
    created = web.post(path, json=body, headers=headers)
    assert created.status_code == 201
    assert created.headers["Location"] == f"/api/v1/chats/{created.json()['id']}"
    assert created.json()["title"] == "Mine"
    again = web.post(path, json=body, headers=headers)
    assert again.json()["id"] == created.json()["id"]
    (copy,) = web.get(f"/api/v1/chats/{created.json()['id']}/messages", headers=bob.headers).json()[
        "data"
    ]
    assert (copy["content"], copy["copied_from"]) == ("hello", message_id)
    for wrong in (
        {"message_id": "../x"},
        {"message_id": message_id, "title": "x" * 201},
        {"message_id": message_id, "more": 1},
        {},
    ):
        assert web.post(path, json=wrong, headers=bob.headers).status_code == 400
    long = {**bob.headers, "Idempotency-Key": "k" * 129}
    assert web.post(path, json=body, headers=long).status_code == 400
    assert ChatOrigin.objects.count() == 1


def test_forks_have_limits(
    dial: Dial, web: httpx.Client, alice: Person, bob: Person, settings: Settings
) -> None:
    source = shared_chat(alice, bob)
    client = joined(dial, alice, source)
    send_message(client, "hello")
    message_id = send_message(client, "hello again")
    path, body = f"/api/v1/chats/{source.pk}/forks", {"message_id": message_id}
    settings.UAMP_FORK_MESSAGES = 1
    client.send("chat.fork", message_id=message_id)
    assert refusal(client) == "quota_exceeded"
    refused = web.post(path, json=body, headers=alice.headers)
    assert (refused.status_code, refused.json()["code"]) == (413, "quota_exceeded")
    settings.UAMP_FORK_MESSAGES = 10
    settings.UAMP_TEXT_BYTES_PER_DAY = 10
    client.send("chat.fork", message_id=message_id)
    assert refusal(client) == "rate_limited"
    refused = web.post(path, json=body, headers=alice.headers)
    assert (refused.status_code, refused.json()["code"]) == (429, "rate_limit_exceeded")
    settings.UAMP_TEXT_BYTES_PER_DAY = 10_000
    settings.UAMP_FORKS_PER_MINUTE = 1
    assert web.post(path, json=body, headers=bob.headers).status_code == 201
    assert web.post(path, json=body, headers=bob.headers).status_code == 429
    client.send("chat.fork", message_id=message_id)
    client.until("chat.forked")
    client.send("chat.fork", message_id=message_id)
    assert refusal(client) == "rate_limited"
    assert ChatOrigin.objects.count() == 2
