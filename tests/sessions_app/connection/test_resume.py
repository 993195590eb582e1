"""A lost connection loses nothing and repeats nothing, on real sockets.

What a client knows after all frames of all its connections is what the database has.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from pytest_django import Settings

from chat_app.models import ChatEvent, Message
from sessions_app.models import Response, Session
from tests.client import (
    TERMINAL,
    Frame,
    Story,
    UampClient,
    new_event,
    open_stream,
    output_text,
    text_of,
    wait_until,
)
from tests.live_server import Dial, Person, quick_agent, shared_chat

WORDS = " ".join(f"w{number}é" for number in range(40))


def stored_log(chat_id: str) -> dict[int, Frame]:
    """Return a chat's log as frames."""
    events = ChatEvent.objects.filter(chat_id=chat_id)
    return {event.seq: {**event.payload, "seq": event.seq} for event in events}


def stored_texts() -> dict[str, str]:
    """Return the text of every response."""
    return dict(Response.objects.values_list("id", "text"))


def has_ended(story: Story, count: int) -> bool:
    """Return whether a story knows of that many ends."""
    return sum(entry["type"] in TERMINAL for entry in story.log.values()) == count


def take_frames(client: UampClient, story: Story, frames: int, ends: int) -> None:
    """Take some frames, or fewer when that many responses have ended."""
    for _ in range(frames):
        if has_ended(story, ends):
            return
        story.take(client.receive())


class Turn:
    """A turn that is sent again, under the same ids, until a client knows that it began.

    What a client wrote just before its line was cut may not have arrived.
    """

    def __init__(self, text: str, *, responses: int) -> None:
        self._frames = [new_event("input.text", text=text), new_event("response.create")]
        self._responses = responses

    def send(self, client: UampClient, story: Story) -> None:
        """Send it, unless the story knows of as many responses as it makes."""
        response_count = sum(entry["type"] == "response.created" for entry in story.log.values())
        if response_count < self._responses:
            for frame in self._frames:
                client.send_raw(json.dumps(frame))


# --- Random cuts ---


ENOUGH_CUTS = 13


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(4))
def test_a_story_with_many_cuts_is_the_stored_one(
    dial: Dial, alice: Person, web: httpx.Client, seed: int
) -> None:
    choice = random.Random(seed)  # noqa: S311 cuts, not secrets
    quick_agent("teller", "echo", delay=0.008)
    quick_agent("thinker-2", "thinker", delay=0.004)
    chat = shared_chat(alice, agents=("teller", "thinker-2"), trigger="always")
    story, ends, cuts = Story(), 0, 0
    client = dial(alice)
    client.send("session.create", session={}, chat=chat.pk)
    created = client.receive()
    story.take(created)
    turn = 0
    # A slow machine is cut less often in one answer, so that it gets more of them.
    while turn < 3 or cuts < ENOUGH_CUTS:
        turn += 1
        ends += 2
        question = Turn(f"{WORDS} {turn}", responses=ends)
        question.send(client, story)
        while not has_ended(story, ends):
            take_frames(client, story, choice.randrange(16), ends)
            client.cut()
            cuts += 1
            client = dial(alice)
            resume = {
                "session_id": created["session_id"],
                "epoch": story.epoch,
                "after": story.after,
            }
            client.send("session.create", session={}, chat=chat.pk, resume=resume)
            again = client.receive()
            assert again["resumed"] is True
            assert again["session_id"] == created["session_id"]
            story.take_all(client.settle())
            question.send(client, story)
    take_frames(client, story, 0, ends)
    story.take_all(client.during(0.1))
    client.settle()
    assert story.log == stored_log(chat.pk)
    assert story.texts == stored_texts()
    messages = web.get(
        f"/api/v1/chats/{chat.pk}/messages", params={"order": "asc"}, headers=alice.headers
    ).json()["data"]
    reported = [e["message"] for e in story.log.values() if e["type"] == "message.created"]
    assert [(m["id"], m["content"]) for m in messages] == [
        (m["id"], m["content"]) for m in reported
    ]


@pytest.mark.parametrize("seed", range(2))
def test_a_private_session_resumes_after_cuts(dial: Dial, seed: int) -> None:
    """A session that named no chat, of a visitor who did not sign in."""
    choice = random.Random(seed)  # noqa: S311 cuts, not secrets
    quick_agent("teller", "echo", delay=0.003)
    story = Story()
    client = dial()
    client.send("session.create", session={}, agent="teller")
    created = client.receive()
    story.take(created)
    question = Turn(WORDS, responses=1)
    question.send(client, story)
    while not has_ended(story, 1):
        take_frames(client, story, choice.randrange(12), 1)
        client.cut()
        client = dial()
        resume = {"session_id": created["session_id"], "epoch": story.epoch, "after": story.after}
        client.send("session.create", session={}, resume=resume)
        assert client.receive()["resumed"] is True
        story.take_all(client.settle())
        question.send(client, story)
    log = {
        seq: entry
        for seq, entry in stored_log(created["chat"]).items()
        if entry["type"] != "message.created"
    }
    assert story.log == log
    assert story.texts == stored_texts()
    assert text_of(client.answer("and on")[-1:]) == ""
    assert Session.objects.count() == 1


# --- What resuming says ---


def cut_session(dial: Dial, who: Person | None = None, agent: str = "echo") -> tuple[Frame, Frame]:
    """Return the session.created and the response.done of a session whose connection was cut."""
    client = dial(who)
    created = client.create_session(agent=agent)
    done = client.answer("Hello")[-1]
    client.cut()
    return created, done


def resumed(client: UampClient, created: Frame, **resume: Any) -> list[Frame]:
    """Resume and return everything that is said at once."""
    client.send(
        "session.create", session={}, resume={"session_id": created["session_id"], **resume}
    )
    return client.settle()


def test_nothing_is_sent_twice(dial: Dial, alice: Person) -> None:
    created, done = cut_session(dial, alice)
    frames = resumed(dial(alice), created, epoch=created["epoch"], after=done["seq"])
    assert [f["type"] for f in frames] == ["session.created", "capabilities"]
    assert frames[0]["resumed"] is True
    assert frames[0]["epoch"] == created["epoch"]


def test_missed_events_are_sent(dial: Dial, alice: Person) -> None:
    created, done = cut_session(dial, alice)
    frames = resumed(dial(alice), created, epoch=created["epoch"], after=0)
    assert [f["type"] for f in frames[2:]] == ["response.created", "response.done"]
    assert frames[-1]["response"] == done["response"]
    assert frames[-1]["seq"] == done["seq"]


@pytest.mark.parametrize(
    "lie", [{"epoch": "00000000"}, {"after": 99}], ids=["another epoch", "ahead of the log"]
)
def test_a_log_that_cannot_be_continued_is_reported(
    dial: Dial, alice: Person, lie: dict[str, Any]
) -> None:
    created, _ = cut_session(dial, alice)
    position = {"epoch": created["epoch"], "after": 0, **lie}
    client = dial(alice)
    frames = resumed(client, created, **position)
    assert [f["type"] for f in frames] == ["session.created", "capabilities", "session.error"]
    assert frames[0]["resumed"] is False
    assert frames[2]["error"]["code"] == "resync"
    assert text_of(client.answer("go on")) == "go on"


def test_a_new_session_does_not_say_that_it_was_resumed(dial: Dial) -> None:
    assert "resumed" not in dial().create_session(agent="echo")


def test_a_stranger_cannot_resume(dial: Dial, alice: Person, mallory: Person) -> None:
    created, _ = cut_session(dial, alice)
    refusals = []
    for who in (mallory, None):
        for session_id in (created["session_id"], "sess_" + "0" * 32):
            client = dial(who)
            client.send("session.create", session={}, resume={"session_id": session_id, "after": 0})
            refusals.append(client.expect("session.error")["error"])
    assert {r["code"] for r in refusals} == {"unknown_session"}
    assert len({r["message"] for r in refusals}) == 1
    assert Session.objects.count() == 1


def test_a_member_who_left_cannot_resume(dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob)
    client = dial(bob)
    created = client.create_session(chat=chat.pk)
    client.cut()
    chat.participants.filter(user=bob.user).update(left_at=chat.created_at)
    again = dial(bob)
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    again.send("session.create", session={}, chat=chat.pk, resume=resume)
    assert again.expect("session.error")["error"]["code"] == "chat_not_found"


def test_an_ended_session_cannot_be_resumed(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    created = client.create_session(agent="echo")
    client.send("session.end")
    client.expect("session.end")
    client.send("session.create", session={}, resume={"session_id": created["session_id"]})
    assert client.expect("session.error")["error"]["code"] == "unknown_session"


def test_a_response_continues_without_its_client(dial: Dial, alice: Person) -> None:
    quick_agent("teller", "echo", delay=0.01)
    client = dial(alice)
    created = client.create_session(agent="teller")
    client.ask(WORDS)
    client.until("response.delta")
    client.cut()
    wait_until(lambda: Response.objects.get().status == "completed")
    assert Message.objects.get(role="assistant").content == WORDS
    frames = resumed(dial(alice), created, epoch=created["epoch"], after=0)
    assert output_text(frames[-1]) == WORDS


def test_a_tool_that_waits_is_asked_again_after_a_cut(dial: Dial, alice: Person) -> None:
    tool = {"type": "function", "function": {"name": "search"}}
    client = dial(alice)
    created = client.create_session(agent="tool-user", session={"tools": [tool]})
    client.ask("Paris")
    call = client.expect("response.created", "tool.call")
    client.cut()
    again = dial(alice)
    frames = resumed(again, created, epoch=created["epoch"], after=0)
    tool_call = frames[-1]
    assert (tool_call["type"], tool_call["call_id"], tool_call["arguments"]) == (
        "tool.call",
        call["call_id"],
        call["arguments"],
    )
    again.send("tool.result", call_id=call["call_id"], result="22")
    done = again.until("response.done")[-1]
    assert done["response_id"] == call["response_id"]
    assert output_text(done) == "The tool answered: 22"


def test_two_connections_of_one_session_say_the_same(dial: Dial, alice: Person) -> None:
    quick_agent("teller", "echo", delay=0.005)
    first = dial(alice)
    created = first.create_session(agent="teller")
    second = dial(alice)
    resumed(second, created, epoch=created["epoch"], after=0)
    first.ask(WORDS)
    stories = [Story().take_all(c.until("response.done")) for c in (first, second)]
    assert stories[0].texts == stories[1].texts == stored_texts()
    assert stories[0].log == stories[1].log


# --- Server-sent events ---


def sse_headers(created: Frame, story: Story) -> dict[str, str]:
    """Return the headers with which a stream goes on."""
    headers = {"X-Session-ID": created["session_id"]}
    if story.after:
        headers["Last-Event-ID"] = f"{story.epoch}:{story.after}"
    return headers


def post(web: httpx.Client, type_: str, session_id: str = "", **fields: Any) -> httpx.Response:
    """Send one event by HTTP."""
    headers = {"X-Session-ID": session_id} if session_id else {}
    return web.post("/events", json=new_event(type_, **fields), headers=headers)


def test_a_stream_with_many_cuts_is_the_stored_story(web: httpx.Client, settings: Settings) -> None:
    # Many events to cut between.
    settings.UAMP_COALESCE_MS = 5
    choice = random.Random(7)  # noqa: S311 cuts, not secrets
    quick_agent("teller", "echo", delay=0.05)
    opened = post(web, "session.create", session={}, agent="teller").json()
    created = opened["events"][0]
    story, cuts = Story(epoch=created["epoch"]), 0
    post(web, "input.text", created["session_id"], text=WORDS)
    post(web, "response.create", created["session_id"])
    while not has_ended(story, 1):
        headers = sse_headers(created, story)
        with open_stream(web, "GET", "/events/stream", headers=headers) as stream:
            for event in limited(iter(stream), choice.randrange(3, 15)):
                assert event.id in {"", f"{story.epoch}:{event.data.get('seq')}"}
                story.take(event.data)
                if has_ended(story, 1):
                    break
        cuts += 1
    assert cuts >= 3
    log = {s: e for s, e in stored_log(created["chat"]).items() if e["type"] != "message.created"}
    assert json.dumps(story.log, sort_keys=True) == json.dumps(log, sort_keys=True)
    assert story.texts == stored_texts()


def limited(events: Iterator[Any], count: int) -> Iterator[Any]:
    """Yield so many events at most, without waiting for one more."""
    for _, event in zip(range(count), events, strict=False):
        yield event
