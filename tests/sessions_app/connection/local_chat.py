"""A chat in memory, its readers, and what may happen to them."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from hypothesis import strategies as st

import uamp
from chat_app.ids import new_event_id
from chat_app.log import fanout
from chat_app.log.history import LoggedEvent
from sessions_app.connection.chat_subscription import ChatSubscription
from sessions_app.connection.log_reader import PAGE, RunningText
from sessions_app.connection.outgoing_queue import OutgoingQueue
from sessions_app.frames import now_ms
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
    """Return the message that the chat's group delivers."""
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
            except StopIteration as stopped:
                if stopped.value is None:
                    return
                for outgoing in stopped.value:
                    self.take(outgoing.text, outgoing.seq)
            else:
                raise AssertionError("the subscription waited")

    def take(self, text: str, seq: int | None) -> None:
        """Take a frame."""
        frame = json.loads(text)
        self.frames.append(frame)
        assert frame.get("seq") == seq
        if frame["type"] in TERMINAL:
            # Deltas add up to the output; only a replay may have none at all.
            text_before = self.story.texts.get(frame["response_id"], "")
            assert text_before == output_text(frame) or (self.replays and not text_before)
        self.story.take(frame)

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
