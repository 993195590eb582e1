"""Live = replay: a subscription sends the log, whatever the layer loses, doubles or reorders.

A chat writes a log and texts; its messages reach subscriptions in any order, often or never.
Every subscription must send each durable event once and in order, and text without gaps.
"""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from sessions_app.connection.log_reader import PAGE
from sessions_app.frames import frame, now_ms
from tests.client import output_text
from tests.sessions_app.connection.local_chat import (
    CHAT,
    LocalChat,
    Play,
    Reader,
    happenings,
    replayed,
)
from uamp import events as ev


class Recorder(Reader):
    """A client that checks nothing."""

    def take(self, text: str, seq: int | None) -> None:
        """Take a frame."""
        self.frames.append({**json.loads(text), "seq": seq})


def test_a_reading_does_not_overtake_what_is_queued_between_events() -> None:
    local = LocalChat()
    reader = Reader(local, cursor=0)
    subscription = reader.subscription
    # A reading is queued first, as that of a session's begin; the pump is late.
    reader.outgoing.put(subscription.catch_up)
    reader.outgoing.put(subscription.catch_up_running)
    local.message()
    local.begin()
    (response_id,) = local.texts
    local.say(0, "a")
    thought = frame(ev.Thinking(response_id=response_id, content="hm", is_delta=True))
    for kind, fields in local.reported[:2]:
        getattr(subscription, kind)(*fields)
    subscription.frame(response_id, thought)
    subscription.text(*local.reported[2][1])
    # Another one, as for a message that seems lost.
    reader.outgoing.put(subscription.catch_up)
    reader.outgoing.put(subscription.repair)
    subscription.frame(response_id, thought)
    local.end(0, 0)
    subscription.event(*local.reported[-1][1])
    reader.drain()
    assert [f["type"] for f in reader.frames] == [
        "message.created",
        "response.created",
        "thinking",
        "response.delta",
        "thinking",
        "response.done",
    ]


def test_a_repair_does_not_overtake_what_is_queued_before_the_text() -> None:
    local, reader = local_and_reader()
    subscription = reader.subscription
    reader.hear(local.reported[0])
    # A message seems lost; the answer goes on before the pump has looked.
    reader.outgoing.put(subscription.repair)
    result = uamp.ToolResultData(call_id="call_1", result="2")
    delta = ev.Delta(type="tool_result", tool_result=result)
    subscription.frame("resp_1", frame(ev.ResponseDelta(response_id="resp_1", delta=delta)))
    for text in ("one ", "two ", "three"):
        local.say(0, text)
    local.flush()
    for reported in (local.reported[1], local.reported[3]):
        subscription.text(*reported[1])
    reader.drain()
    assert [f["delta"]["type"] for f in reader.frames[1:]] == ["tool_result", *["text"] * 3]
    assert reader.story.texts == {"resp_1": "one two three"}
    # With nothing queued it sends what was lost.
    local.say(0, "!")
    local.flush()
    reader.do(subscription.repair)
    assert reader.story.texts == {"resp_1": "one two three!"}


def test_nothing_of_a_response_is_sent_after_its_end_was_read_from_the_log() -> None:
    local = LocalChat()
    reader = Reader(local, cursor=0)
    local.begin()
    (response_id,) = local.texts
    reader.hear(local.reported[-1], from_the_group=False)
    usage = frame(ev.UsageDelta(response_id=response_id, delta=uamp.UsageStats(input_tokens=3)))
    reader.subscription.frame(response_id, usage)
    local.end(0, 0)
    # What is queued is sent after a reading that was queued before it, and the log has the end.
    reader.do(reader.subscription.catch_up)
    reader.subscription.frame(response_id, usage)
    reader.hear_group(
        **fanout.signal_message(chat_id=CHAT, frame=usage, response_id=response_id, before_end=True)
    )
    # The run sends its end, which the log had, and then the balance.
    reader.hear(local.reported[-1], from_the_group=False)
    balance = frame(ev.PaymentBalance(balance="1", currency="USD"))
    reader.subscription.frame(response_id, balance)
    reader.drain()
    assert [f["type"] for f in reader.frames] == [
        "response.created",
        "usage.delta",
        "response.done",
        "payment.balance",
    ]


@settings(max_examples=400, deadline=None)
@given(st.lists(happenings, min_size=20, max_size=60))
def test_what_is_sent_live_is_what_is_replayed(steps: list[tuple[Any, ...]]) -> None:
    play = Play()
    for step in steps:
        play.step(*step)
    play.local.flush()
    for reader in play.readers:
        reader.attach()
        replay = replayed(play.local, cursor=reader.first)
        assert reader.story.log == replay.story.log
        assert list(reader.story.log) == list(range(reader.first + 1, len(play.local.log) + 1))
        for response_id, text in play.local.texts.items():
            assert reader.story.texts[response_id] == text


@settings(max_examples=200, deadline=None)
@given(st.lists(happenings, max_size=40))
def test_a_session_without_a_chat_receives_the_turns_only(steps: list[tuple[Any, ...]]) -> None:
    play = Play()
    reader = play.readers[0] = Reader(play.local, cursor=0, chat_scoped=False)
    for step in steps:
        play.step(*step)
    play.local.flush()
    reader.attach()
    turns = [entry.seq for entry in play.local.log if entry.type != "message.created"]
    assert list(reader.story.log) == turns
    for response_id, text in play.local.texts.items():
        assert reader.story.texts[response_id] == text


def local_and_reader(*texts: str) -> tuple[LocalChat, Reader]:
    """Return a local with one running response that said these texts, and a reader of it."""
    local = LocalChat()
    local.begin()
    for text in texts:
        local.say(0, text)
    return local, Reader(local, cursor=0)


def test_a_lost_delta_is_repaired_when_the_next_one_comes() -> None:
    local, reader = local_and_reader("one ", "two ", "three")
    local.flush()
    created, first, _lost, third = local.reported
    for reported in (created, first, third):
        reader.hear(reported)
    assert reader.story.texts == {"resp_1": "one two three"}


@pytest.mark.parametrize("from_the_group", [True, False])
def test_a_repeated_delta_is_sent_once(from_the_group: bool) -> None:  # noqa: FBT001 a case
    local, reader = local_and_reader("one ", "two")
    for reported in [*local.reported, *local.reported[1:]]:
        reader.hear(reported, from_the_group=from_the_group)
    assert reader.story.texts == {"resp_1": "one two"}


def test_a_lost_durable_event_is_read_before_the_next_is_sent() -> None:
    local, reader = local_and_reader()
    local.message()
    local.message()
    reader.hear(local.reported[-1])
    assert list(reader.story.log) == [1, 2, 3]


@pytest.mark.parametrize("how", range(3))
def test_the_end_brings_the_text_that_was_lost(how: int) -> None:
    local, reader = local_and_reader("one ", "two")
    local.end(0, how)
    created, first, _lost, done = local.reported
    frames: list[dict[str, Any]] = []
    for reported in (created, first, done):
        reader.hear(reported)
    frames = list(reader.story.log.values())
    assert output_text(frames[-1]) == reader.story.texts["resp_1"] == "one two"


@pytest.mark.parametrize("how", range(3))
@pytest.mark.parametrize("stored", ["", "one "])
def test_the_end_takes_text_back_that_was_not_stored(how: int, stored: str) -> None:
    local, reader = local_and_reader("one ", "two")
    # The process that had sent it died; another one ends the answer.
    local.texts["resp_1"] = stored
    local.end(0, how)
    for reported in local.reported:
        reader.hear(reported)
    (created, ended) = reader.story.log.values()
    assert (created["type"], output_text(ended)) == ("response.created", stored)
    assert reader.story.texts == {"resp_1": stored}


def test_the_end_of_an_old_log_without_an_output_takes_nothing_back() -> None:
    local, _ = local_and_reader("one ")
    error = ev.ErrorDetail(code="interrupted", message="It ended.")
    local.append(ev.ResponseError(response_id="resp_1", error=error), "resp_1")
    reader = Recorder(local, cursor=0)
    for reported in local.reported:
        reader.hear(reported)
    types = [frame["type"] for frame in reader.frames]
    assert types == ["response.created", "response.delta", "response.error"]


def test_text_after_the_end_is_not_sent() -> None:
    local, reader = local_and_reader("one ")
    late = local.reported[-1]
    local.end(0, 0)
    reader.hear(local.reported[0])
    reader.hear(local.reported[-1])
    texts_before = dict(reader.story.texts)
    reader.hear(late)
    assert reader.story.texts == texts_before


def test_a_reader_that_joins_in_mid_answer_gets_the_text_so_far_at_offset_0() -> None:
    local, _ = local_and_reader("one ", "two ")
    local.flush()
    late = Reader(local, cursor=len(local.log))
    late.attach()
    assert late.story.texts == {"resp_1": "one two "}
    local.say(0, "three")
    late.hear(local.reported[-1])
    assert late.story.texts == {"resp_1": "one two three"}


def test_a_long_log_is_read_page_by_page() -> None:
    local = LocalChat()
    for _ in range(2 * PAGE + 1):
        local.message()
    reader = replayed(local, cursor=0)
    assert list(reader.story.log) == list(range(1, 2 * PAGE + 2))


def test_a_response_that_resumes_from_a_checkpoint_replaces_its_text() -> None:
    local, reader = local_and_reader("kept ", "lost")
    for reported in local.reported:
        reader.hear(reported)
    assert reader.story.texts == {"resp_1": "kept lost"}
    reader.hear_group(**fanout.text_message(chat_id=CHAT, response_id="resp_1", text="kept "))
    assert reader.story.texts == {"resp_1": "kept "}
    deltas = uamp.TextDeltas("resp_1", event_id=new_event_id())
    new = deltas.frame("new", offset=len("kept "), timestamp=now_ms())
    reader.hear(("text", ("resp_1", len("kept "), "new", new)))
    assert reader.story.texts == {"resp_1": "kept new"}


def test_the_text_of_a_response_without_followers_is_not_replaced() -> None:
    _, reader = local_and_reader()
    reader.hear_group(**fanout.text_message(chat_id=CHAT, response_id="resp_9", text="text"))
    assert reader.story.texts == {}
