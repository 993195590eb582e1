"""What one session is sent of its chat: each durable event once, in order, text without gaps.

Live messages are only hints. The subscription keeps its `cursor` and, for each running response,
how many code points were sent. What does not join on is read from the log and the response rows,
so that a lost layer message, a new socket and a slow one are all the same case.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import msgspec

from chat_app.log import fanout
from sessions_app.frames import TERMINAL, frame
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Sequence

    from chat_app.log.history import LoggedEvent

# What must be awaited before the subscription goes on.
Reading: TypeAlias = "Coroutine[Any, Any, None]"

PAGE: Final = 256
ENDED_REMEMBERED: Final = 256
# What a session that did not name a chat hears of the chat that is its own: the turns, as UAMP
# §3.1 draws them, whichever connection or HTTP request asked for them.
TURN_EVENTS: Final = frozenset({"response.created", *TERMINAL})


@dataclass(frozen=True, slots=True)
class RunningText:
    """A running response as it is stored, or as its process holds it."""

    response_id: str
    agent: str
    text: str
    thinking: str


class LogReader(Protocol):
    """Where a subscription reads what it missed."""

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """Return the next entries of the log, at most PAGE."""

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """Return the responses that run in the chat."""


class ChatSubscription:
    """One session's view of one chat. All methods must be called one after another.

    `emit` takes a frame without `session_id`, and the `seq` of a durable event or None. That the
    person of the session leaves the chat is the last that it says; `on_left` is called then. With
    `later` a long log is read a page at a time, and less of it when `is_full` says that enough
    waits: it takes what goes on when that was sent.
    """

    def __init__(
        self,
        *,
        chat_id: str,
        cursor: int,
        source: LogReader,
        emit: Callable[[str, int | None], None],
        chat_scoped: bool,
        user_id: int | None = None,
        on_left: Callable[[], None] | None = None,
        later: Callable[[Callable[[], Reading]], None] | None = None,
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        self.chat_id = chat_id
        self.cursor = cursor
        self.chat_scoped = chat_scoped
        self._source = source
        self._emit = emit
        self._user_id = user_id
        self._on_left = on_left
        self._later = later
        self._is_full = is_full
        # Running responses, and how many code points of each were sent.
        self._sent: dict[str, int] = {}
        # Responses whose end was sent lately: reading the log overtakes frames that are queued.
        self._ended: OrderedDict[str, None] = OrderedDict()

    # --- Live ---

    def event(self, seq: int, event_type: str, response_id: str, text: str) -> Reading | None:
        """Take a durable event as a frame, from the group or from a runner.

        Returns a coroutine to be awaited when the log must be read first.
        """
        if seq > self.cursor + 1:
            return self.catch_up()
        if seq > self.cursor:
            self._deliver(seq, event_type, response_id, text)
        return None

    def joins(self, response_id: str, offset: int) -> bool:
        """Return whether text of a response goes on exactly where this subscription is."""
        return self._sent.get(response_id) == offset

    def text(self, response_id: str, offset: int, text: str, encoded: str = "") -> Reading | None:
        """Take text of a running response, from its runner (then also as a frame) or the group.

        Returns a coroutine to be awaited when something must be read first.
        """
        if encoded and self.joins(response_id, offset):
            self._sent[response_id] = offset + len(text)
            self._emit(encoded, None)
            return None
        return self._join(response_id, offset, text)

    def replace(self, response_id: str, text: str) -> None:
        """Take the text of a response that another process goes on with, from its checkpoint.

        What was sent beyond that is not said again: offset 0 replaces all text.
        """
        if response_id in self._sent:
            self._emit_text(response_id, 0, text)

    async def _join(self, response_id: str, offset: int, text: str) -> None:
        """Send the part of a text that is new, after what is missing before it."""
        if response_id not in self._sent:
            await self.catch_up()
        sent = self._sent.get(response_id)
        if sent is None:
            return
        if offset > sent:
            await self.repair()
            sent = self._sent.get(response_id, 0)
        if offset <= sent < offset + len(text):
            self._emit_text(response_id, sent, text[sent - offset :])

    def signal(self, text: str, response_id: str, *, before_end: bool = False) -> None:
        """Send an event that is not kept: of a response, or of the whole chat if it is heard.

        A part of an answer is dropped where the end of the answer was sent already.
        """
        if before_end and response_id in self._ended:
            return
        if self.chat_scoped or response_id:
            self._emit(text, None)

    def direct(self, text: str, response_id: str = "") -> None:
        """Send an event that is not kept, straight from a runner.

        One that its response said before its end is dropped where the end was sent already.
        """
        if response_id not in self._ended:
            self._emit(text, None)

    # --- Catching up ---

    async def catch_up(self, *, replay: bool = False) -> None:
        """Send everything durable after the cursor; a replay has no text of what has ended."""
        while page := await self._source.events_after(self.chat_id, self.cursor):
            for entry in page:
                text = fanout.frame_of(entry.payload, entry.seq)
                self._deliver(entry.seq, entry.type, entry.response_id, text, replay=replay)
                if self._later is not None and self._is_full():
                    # The rest of the page is read again when this was sent.
                    self._later(partial(self.catch_up, replay=replay))
                    return
            if len(page) < PAGE:
                return
            if self._later is not None:
                self._later(partial(self.catch_up, replay=replay))
                return

    async def catch_up_running(self) -> None:
        """Send the state of what runs now: the thought, then all text so far at offset 0."""
        for running in await self._source.running(self.chat_id):
            if running.response_id not in self._sent:
                # Its beginning is further back in the log than this session began to read.
                created = ev.ResponseCreated(
                    response_id=running.response_id, agent=running.agent, chat_id=self.chat_id
                )
                self._emit(frame(created), None)
            if running.thinking:
                thought = ev.Thinking(
                    response_id=running.response_id, content=running.thinking, is_delta=False
                )
                self._emit(frame(thought), None)
            self._emit_text(running.response_id, 0, running.text)

    async def repair(self) -> None:
        """Send the rest of the texts that run, from where this session is."""
        for running in await self._source.running(self.chat_id):
            sent = self._sent.get(running.response_id)
            if sent is not None and sent < len(running.text):
                self._emit_text(running.response_id, sent, running.text[sent:])

    # --- What goes out ---

    def _deliver(
        self, seq: int, event_type: str, response_id: str, text: str, *, replay: bool = False
    ) -> None:
        self.cursor = seq
        if event_type == "response.created":
            self._sent.setdefault(response_id, 0)
        if event_type in TERMINAL:
            self._complete(event_type, response_id, text, replay=replay)
        if self.chat_scoped or event_type in TURN_EVENTS:
            self._emit(text, seq)
        if event_type == "participant.left" and self._is_me(text):
            self._emit = _say_nothing
            if self._on_left is not None:
                self._on_left()

    def _is_me(self, text: str) -> bool:
        left: dict[str, str] = msgspec.json.decode(text)["participant"]
        return left["kind"] == "user" and left["id"] == str(self._user_id)

    def _complete(self, event_type: str, response_id: str, text: str, *, replay: bool) -> None:
        """Send the text that is missing before the end, so that deltas add up to the output.

        What began and ended while nobody listened has its output only; of what began before that,
        the client may have a part.
        """
        sent = self._sent.pop(response_id, None)
        self._ended[response_id] = None
        if len(self._ended) > ENDED_REMEMBERED:
            self._ended.popitem(last=False)
        if event_type == "response.error" or (replay and sent == 0):
            return
        at = sent or 0
        whole = _final_text(text)
        if len(whole) > at:
            self._emit(frame(ev.text_delta(response_id, whole[at:], at)), None)

    def _emit_text(self, response_id: str, offset: int, text: str) -> None:
        if text or offset == 0:
            self._sent[response_id] = offset + len(text)
            self._emit(frame(ev.text_delta(response_id, text, offset)), None)


def _say_nothing(text: str, seq: int | None) -> None:
    """Take the place of `emit` when the session may hear nothing more."""


def _final_text(text: str) -> str:
    event: dict[str, Any] = msgspec.json.decode(text)
    output = event.get("partial_output") or event.get("response", {}).get("output", [])
    return "".join(item["text"] for item in output if item["type"] == "text")
