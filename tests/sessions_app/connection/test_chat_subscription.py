"""Live = replay: a subscription sends the log, whatever the layer loses, doubles or reorders.

A chat writes a log and texts; its messages reach subscriptions in any order, often or never.
Every subscription must send each durable event once and in order, and text without gaps.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.history import LoggedEvent
from sessions_app.connection.chat_subscription import ChatSubscription
from sessions_app.connection.log_reader import PAGE, RunningText
from sessions_app.connection.outgoing_queue import OutgoingQueue
from sessions_app.frames import frame, now_ms
from tests.client import TERMINAL, Story, output_text
from tests.sessions_app.connection.sessions import open_session
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from sessions_app.connection.outgoing_queue import Work
    from tests.client import Frame

CHAT = "chat_1"
Notice = tuple[str, tuple[Any, ...]]


@dataclass
class LocalChat:
    """A chat with its log and its running responses; `reported` is what the layer was given."""

    log: list[LoggedEvent] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    flushed: dict[str, str] = field(default_factory=dict)
    reported: list[Notice] = field(default_factory=list)
    count: int = 0

    # --- LogReader ---

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """See LogReader."""
        assert chat_id == CHAT
        return self.log[after : after + PAGE]

    async def is_member(self, chat_id: str, user_id: int | None) -> bool:  # noqa: ARG002 the interface
        """See LogReader."""
        return False

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """Return the texts as they were last flushed: another process may hold more."""
        assert chat_id == CHAT
        return [
            RunningText(response_id=id_, agent="echo", text=text, thinking="")
            for id_, text in self.flushed.items()
        ]

    # --- What happens ---

    def append(self, event: ev.Event, response_id: str = "") -> None:
        """Write a durable event, and publish it."""
        payload = uamp.to_dict(
            uamp.decode(
                uamp.encode(event, event_id=new_event_id(), timestamp=now_ms()), sender="server"
            )
        )
        entry = LoggedEvent(len(self.log) + 1, payload["type"], response_id, payload)
        self.log.append(entry)
        text = fanout.frame_of(payload, entry.seq)
        self.reported.append(("event", (entry.seq, entry.type, response_id, text)))

    def message(self) -> None:
        """Let a member write a message."""
        self.count += 1
        message = ev.ChatMessage(
            id=f"msg_{self.count}",
            role="user",
            content=f"message {self.count}",
            sender_id="1",
            sender_kind="user",
            created_at=1,
        )
        self.append(ev.MessageCreated(chat_id=CHAT, message=message))

    def begin(self) -> None:
        """Begin a response."""
        self.count += 1
        response_id = f"resp_{self.count}"
        self.texts[response_id] = self.flushed[response_id] = ""
        self.append(ev.ResponseCreated(response_id=response_id), response_id)

    def say(self, which: int, text: str) -> None:
        """Let a running response say more."""
        if not self.texts:
            return
        response_id = list(self.texts)[which % len(self.texts)]
        offset = len(self.texts[response_id])
        self.texts[response_id] += text
        deltas = uamp.TextDeltas(response_id, event_id=new_event_id())
        encoded = deltas.frame(text, offset=offset, timestamp=now_ms())
        self.reported.append(("text", (response_id, offset, text, encoded)))

    def flush(self) -> None:
        """Keep the texts so far."""
        self.flushed = dict(self.texts)

    def end(self, which: int, how: int) -> None:
        """End a response: done, cancelled or failed."""
        if not self.texts:
            return
        response_id = list(self.texts)[which % len(self.texts)]
        text = self.texts.pop(response_id)
        del self.flushed[response_id]
        output = (uamp.TextContent(text=text),) if text else ()
        error = ev.ErrorDetail(code="interrupted", message="It ended.")
        events: list[ev.Event] = [
            ev.ResponseDone(
                response_id=response_id,
                response=ev.ResponseOutput(id=response_id, status="completed", output=output),
            ),
            ev.ResponseCancelled(response_id=response_id, partial_output=output),
            ev.ResponseError(response_id=response_id, error=error, partial_output=output),
        ]
        self.append(events[how % len(events)], response_id)


def layer_message(kind: str, fields: tuple[Any, ...]) -> dict[str, Any]:
    """Return what the chat's group delivers."""
    if kind == "event":
        seq, event_type, response_id, encoded = fields
        return fanout.event_message(
            chat_id=CHAT, seq=seq, event_type=event_type, response_id=response_id, frame=encoded
        )
    response_id, offset, text, encoded = fields
    message = fanout.delta_message(
        chat_id=CHAT, response_id=response_id, offset=offset, text=text, origin=""
    )
    return {**message, "frame": encoded}


class Reader:
    """A client behind a subscription; it checks each frame as it comes."""

    def __init__(self, local: LocalChat, *, cursor: int, chat_scoped: bool = True) -> None:
        self.story = Story(after=cursor)
        self.first = cursor
        self.replays = False
        self.frames: list[Frame] = []
        self.local = local
        self.outgoing = OutgoingQueue(lambda: ())
        # `batch` returns None, instead of waiting for more.
        self.outgoing.end_when(lambda: True)
        self.subscription = ChatSubscription(
            open_session(chat_id=CHAT, names_chat=chat_scoped),
            cursor=cursor,
            reader=local,
            outgoing=self.outgoing,
            origin="here",
            on_left=lambda: None,
            on_elsewhere=lambda _: None,
        )

    def do(self, work: Work) -> None:
        """Let the pump do what only it may do, after what is queued."""
        self.outgoing.put(work)
        self.drain()

    def drain(self) -> None:
        """Take all that the subscription sends; reading the rows never really waits."""
        while True:
            try:
                self.outgoing.batch().send(None)
            except StopIteration as taken:
                if taken.value is None:
                    return
                for outgoing in taken.value:
                    self.take(outgoing.text, outgoing.seq)
            else:
                raise AssertionError("the subscription waited")

    def take(self, text: str, seq: int | None) -> None:
        """Take a frame."""
        said = json.loads(text)
        self.frames.append(said)
        assert said.get("seq") == seq
        if said["type"] in TERMINAL:
            # Deltas add up to the output; only a replay may have none at all.
            known = self.story.texts.get(said["response_id"], "")
            assert known == output_text(said) or (self.replays and not known)
        self.story.take(said)

    def hear(self, reported: Notice, *, from_the_group: bool = True) -> None:
        """Take what was published; straight from a runner, text comes encoded too."""
        kind, fields = reported
        if from_the_group:
            self.hear_group(**layer_message(kind, fields))
            return
        take: Callable[..., None] = getattr(self.subscription, kind)
        take(*fields)
        self.drain()

    def hear_group(self, **message: Any) -> None:
        """Take a message of the chat's group."""
        self.subscription.take_layer_message(message)
        self.drain()

    def attach(self) -> None:
        """Catch up, as a session does when it is attached."""
        self.replays = True
        self.do(partial(self.subscription.catch_up, replay=True))
        self.replays = False
        self.do(self.subscription.catch_up_running)


class Recorder(Reader):
    """A client that checks nothing."""

    def take(self, text: str, seq: int | None) -> None:
        """Take a frame."""
        self.frames.append({**json.loads(text), "seq": seq})


def replayed(local: LocalChat, *, cursor: int) -> Reader:
    """Return a reader that receives nothing live but reads everything."""
    reader = Reader(local, cursor=cursor)
    reader.attach()
    return reader


letters = st.text("aé\u0301\U0001f600", min_size=1, max_size=4)
small = st.integers(0, 9)
happenings = st.one_of(
    st.tuples(st.just("message")),
    st.tuples(st.just("begin")),
    st.tuples(st.just("say"), small, letters),
    st.tuples(st.just("say"), small, letters),
    st.tuples(st.just("end"), small, small),
    st.tuples(st.just("flush")),
    st.tuples(st.just("hear"), small, st.integers(0, 30), st.booleans()),
    st.tuples(st.just("hear"), small, st.integers(0, 30), st.booleans()),
    st.tuples(st.just("hear next"), small),
    st.tuples(st.just("hear next"), small),
    st.tuples(st.just("join")),
    st.tuples(st.just("nudge"), small),
)


class Play:
    """Lets things happen: readers come, receive pieces in any order, and are checked at the end."""

    def __init__(self) -> None:
        self.local = LocalChat()
        self.readers = [Reader(self.local, cursor=0)]
        self.received = [0]

    def step(self, name: str, *fields: Any) -> None:
        """Let one thing happen."""
        local = self.local
        if name == "join":
            # As a session of a chat does: its cursor is the head of the log.
            self.readers.append(Reader(local, cursor=len(local.log)))
            self.received.append(len(local.reported))
            self.readers[-1].attach()
        elif name == "hear" and local.reported:
            which, back, direct = fields
            reported = local.reported[-1 - back % len(local.reported)]
            self.readers[which % len(self.readers)].hear(reported, from_the_group=not direct)
        elif name == "hear next":
            which = fields[0] % len(self.readers)
            if self.received[which] < len(local.reported):
                self.readers[which].hear(local.reported[self.received[which]])
                self.received[which] += 1
        elif name == "nudge":
            reader = self.readers[fields[0] % len(self.readers)]
            reader.do(reader.subscription.catch_up)
        elif name != "hear":
            happen: Callable[..., None] = getattr(local, name)
            happen(*fields)


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
    local, reader = begun()
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


# --- The cases that readers of this code will want to see ---


def begun(*texts: str) -> tuple[LocalChat, Reader]:
    """Return a local with one running response that said these texts, and a reader of it."""
    local = LocalChat()
    local.begin()
    for text in texts:
        local.say(0, text)
    return local, Reader(local, cursor=0)


def test_a_lost_delta_is_repaired_when_the_next_one_comes() -> None:
    local, reader = begun("one ", "two ", "three")
    local.flush()
    created, first, _lost, third = local.reported
    for reported in (created, first, third):
        reader.hear(reported)
    assert reader.story.texts == {"resp_1": "one two three"}


@pytest.mark.parametrize("from_the_group", [True, False])
def test_a_delta_that_comes_twice_is_said_once(from_the_group: bool) -> None:  # noqa: FBT001 a case
    local, reader = begun("one ", "two")
    for reported in [*local.reported, *local.reported[1:]]:
        reader.hear(reported, from_the_group=from_the_group)
    assert reader.story.texts == {"resp_1": "one two"}


def test_a_lost_durable_event_is_read_before_the_next_is_said() -> None:
    local, reader = begun()
    local.message()
    local.message()
    reader.hear(local.reported[-1])
    assert list(reader.story.log) == [1, 2, 3]


@pytest.mark.parametrize("how", range(3))
def test_the_end_brings_the_text_that_was_lost(how: int) -> None:
    local, reader = begun("one ", "two")
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
    local, reader = begun("one ", "two")
    # The process that had sent it died; another one ends the answer.
    local.texts["resp_1"] = stored
    local.end(0, how)
    for reported in local.reported:
        reader.hear(reported)
    (created, ended) = reader.story.log.values()
    assert (created["type"], output_text(ended)) == ("response.created", stored)
    assert reader.story.texts == {"resp_1": stored}


def test_the_end_of_an_old_log_without_an_output_takes_nothing_back() -> None:
    local, _ = begun("one ")
    error = ev.ErrorDetail(code="interrupted", message="It ended.")
    local.append(ev.ResponseError(response_id="resp_1", error=error), "resp_1")
    reader = Recorder(local, cursor=0)
    for reported in local.reported:
        reader.hear(reported)
    types = [frame["type"] for frame in reader.frames]
    assert types == ["response.created", "response.delta", "response.error"]


def test_text_that_comes_after_the_end_is_not_said() -> None:
    local, reader = begun("one ")
    late = local.reported[-1]
    local.end(0, 0)
    reader.hear(local.reported[0])
    reader.hear(local.reported[-1])
    said = dict(reader.story.texts)
    reader.hear(late)
    assert reader.story.texts == said


def test_a_reader_that_joins_in_mid_answer_gets_the_text_so_far_at_offset_0() -> None:
    local, _ = begun("one ", "two ")
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


def test_a_response_that_goes_on_from_a_checkpoint_replaces_its_text() -> None:
    local, reader = begun("kept ", "lost")
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
    _, reader = begun()
    reader.hear_group(**fanout.text_message(chat_id=CHAT, response_id="resp_9", text="text"))
    assert reader.story.texts == {}
