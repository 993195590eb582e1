"""A session's subscription to a chat: durable events once and in order, text without gaps.

It keeps a `cursor` and the number of code points sent for each running response. A live message
that directly follows these is sent as is. Otherwise the log and the response rows are read, which
treats a lost layer message, a new socket and a slow one alike.
"""

from __future__ import annotations

from collections import OrderedDict
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

import uamp
from chat_app.log import fanout
from sessions_app.connection.log_reader import PAGE
from sessions_app.connection.outgoing_queue import Outgoing
from sessions_app.connection.queued_parts import QueuedParts
from sessions_app.frames import TERMINAL, frame
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from chat_app.log.history import LoggedEvent
    from sessions_app.connection.log_reader import LogReader, RunningText
    from sessions_app.connection.outgoing_queue import OutgoingQueue
    from sessions_app.records import OpenSession
    from sessions_app.response.run import Run

# A read to await before the subscription continues.
Reading: TypeAlias = "Coroutine[Any, Any, None]"

RESPONSES_REMEMBERED: Final = 256
# The events sent to sessions that did not name a chat, from their private chat: the turns (UAMP
# §3.1), no matter which connection or HTTP request asked for them, and the shared state.
TURN_EVENTS: Final = frozenset({"response.created", "state.updated", *TERMINAL})


class ChatSubscription:
    """A session's subscription to one chat, and its listener to runs in this process.

    It alone knows what the session has been sent and decides what comes next. Runs call `text`,
    `frame`, `event` and `ended` (response.context.Listener); the chat's group calls
    `take_layer_message`. Any task on the process's loop may call these, `follow`, `send_signal` and
    `close`. Whatever overtakes nothing is emitted at once; the rest is queued. `catch_up`,
    `catch_up_running` and `repair` are queue work, run one at a time by the queue's pump.

    `origin` is the connection's. `on_left` is called when the session's person has left the chat,
    after which nothing more is sent. `on_elsewhere` is called with a response that this process has
    stopped running without an end.
    """

    def __init__(
        self,
        session: OpenSession,
        *,
        cursor: int,
        reader: LogReader,
        outgoing: OutgoingQueue,
        origin: str,
        on_left: Callable[[], None],
        on_elsewhere: Callable[[str], None],
    ) -> None:
        self.cursor = cursor
        self.runs: dict[str, Run] = {}
        self._session = session
        self._wire_id = session.wire_id
        self._stamp = uamp.session_stamp(session.wire_id)
        self._chat_id = session.chat_id
        self._reader = reader
        self._outgoing = outgoing
        self._origin = origin
        self._on_left, self._on_elsewhere = on_left, on_elsewhere
        self._is_closed = self._has_left = False
        self._back_at = 0  # who left before this entry is a member again
        # Running responses, and the number of code points sent of each.
        self._sent: dict[str, int] = {}
        # Responses whose end was recently sent: reading the log can overtake queued frames.
        self._ended: OrderedDict[str, None] = OrderedDict()
        # Responses whose local run sends its signals here directly, so the group's are duplicates.
        self._direct: OrderedDict[str, None] = OrderedDict()
        # The subset of them whose run has sent its end.
        self._over: set[str] = set()
        self._queued = QueuedParts(outgoing)

    # --- From a run in this process ---

    def follow(self, run: Run) -> None:
        """Listen to a run until it ends; a finished run has left its end in the log."""
        if run.listen(self):
            self.runs[run.response_id] = run

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """Accept text of a running response, with the parts of its frame (uamp.TextDeltas)."""
        outgoing = self._outgoing
        if outgoing.is_idle:
            sent = self._sent.get(response_id)
            if sent == offset:
                self._emit_joined(response_id, offset, text, frame)
                outgoing.wake()
                return
            was_sent = sent is not None and offset + len(text) <= sent
            if was_sent or response_id in self._ended:
                return
        self._queued.put_piece(
            partial(self._queued_text, response_id, offset, text, *frame), response_id
        )

    def frame(self, response_id: str, frame: str) -> None:
        """Accept another event that is not stored, in its place before the end."""
        # Events that follow the end, such as a balance, are always sent.
        self._send_before_end("" if response_id in self._over else response_id, frame)

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """Accept a durable event of a run."""
        if event_type == "response.created":
            _remember(self._direct, response_id)
        if event_type in TERMINAL:
            self._over.add(response_id)
        self._event(seq, event_type, response_id, frame)

    def ended(self, response_id: str) -> None:
        """Record that a run has ended or continues in another process."""
        self.runs.pop(response_id, None)
        if response_id not in self._over:
            # If it has ended, the end is in the log.
            self._outgoing.put(self.catch_up)
            self._on_elsewhere(response_id)
        self._over.discard(response_id)
        self._outgoing.wake()

    # --- From the chat's group ---

    def take_layer_message(self, message: dict[str, Any]) -> None:
        """Accept a message of the chat's group (chat_app.fanout); a delta has its `frame` too."""
        kind, response_id = message["type"], message["response"]
        if kind == "chat.delta":
            self.text(response_id, message["offset"], message["text"], message["frame"])
        elif kind == "chat.event":
            self._event(message["seq"], message["event"], response_id, message["frame"])
        elif kind == "chat.text":
            self._outgoing.put(partial(self._replace, response_id, message["text"]))
        elif self._is_for_session(message) and (self._session.chat_scoped or response_id):
            before_end = response_id if message["before_end"] else ""
            self._send_before_end(before_end, message["frame"])

    def _is_for_session(self, signal: dict[str, Any]) -> bool:
        """Return whether a signal is for this session: not about its person, and no duplicate."""
        user_id = self._session.principal.user_id
        is_repeat = signal["origin"] == self._origin and signal["response"] in self._direct
        # A run joined here sends its own signals directly, under the origin of its turn.
        run = self.runs.get(signal["response"])
        is_joined = run is not None and signal["origin"] == run.context.origin != ""
        is_repeat = is_repeat or is_joined
        is_about_user = signal["user"] is not None and signal["user"] == user_id
        is_to = signal["to"] in {None, user_id} and signal["session"] in {None, self._session.id}
        return is_to and not is_repeat and not is_about_user

    # --- Lifecycle ---

    def send_signal(self, frame: str) -> None:
        """Send an event that is not stored, after everything queued before it."""
        self._outgoing.put(partial(self._signal, "", frame))

    def emit_signal(self, frame: str) -> None:
        """Send an event that is not stored, immediately. Queue work."""
        self._signal("", frame)

    def close(self) -> None:
        """Stop following runs and reading; queued frames are still sent."""
        self._is_closed = True
        for run in list(self.runs.values()):
            run.leave(self)

    # --- In order ---

    def _event(self, seq: int, event_type: str, response_id: str, text: str) -> None:
        if self._outgoing.is_idle and seq <= self.cursor + 1:
            self._deliver_next(seq, event_type, response_id, text)
            self._outgoing.wake()
        else:
            work = partial(self._deliver_queued, seq, event_type, response_id, text)
            begins = response_id if event_type == "response.created" else ""
            self._queued.put_event(work, seq, begins)

    def _deliver_queued(
        self, seq: int, event_type: str, response_id: str, text: str
    ) -> Reading | None:
        self._queued.take_event()
        return self._deliver_next(seq, event_type, response_id, text)

    def _deliver_next(
        self, seq: int, event_type: str, response_id: str, text: str
    ) -> Reading | None:
        if seq > self.cursor + 1:
            return self.catch_up()
        if seq > self.cursor:
            self._deliver(seq, event_type, response_id, text)
        return None

    def _queued_text(
        self, response_id: str, offset: int, text: str, head: str, tail: str
    ) -> Reading | None:
        self._queued.take_piece(response_id)
        if self._sent.get(response_id) == offset:
            self._emit_joined(response_id, offset, text, (head, tail))
            return None
        return self._join(response_id, offset, text)

    def _emit_joined(
        self, response_id: str, offset: int, text: str, frame: tuple[str, str]
    ) -> None:
        self._sent[response_id] = offset + len(text)
        if not self._has_left:
            head, tail = frame
            self._outgoing.emit(Outgoing(f"{head}{self._stamp}{tail}", self._wire_id))

    async def _join(self, response_id: str, offset: int, text: str) -> None:
        """Send the new part of a text, after any text missing before it."""
        if response_id not in self._sent:
            await self.catch_up()
        sent = self._sent.get(response_id)
        if sent is None:
            return
        if offset > sent:
            await self._fill(response_id, offset)
            sent = self._sent.get(response_id, 0)
        if offset <= sent < offset + len(text):
            self._emit_text(response_id, sent, text[sent - offset :])

    def _replace(self, response_id: str, text: str) -> None:
        """Send the text of a response that another process continues from its checkpoint.

        Text sent beyond the checkpoint is not sent again: offset 0 replaces all text.
        """
        if response_id in self._sent:
            self._emit_text(response_id, 0, text)

    def _send_before_end(self, response_id: str, frame: str) -> None:
        """Send an event that is not stored, unless the response's end has been sent."""
        if self._outgoing.is_idle:
            self._signal(response_id, frame)
            self._outgoing.wake()
        else:
            work = partial(self._queued_signal, response_id, frame)
            self._queued.put_piece(work, response_id)

    def _queued_signal(self, response_id: str, frame: str) -> None:
        self._queued.take_piece(response_id)
        self._signal(response_id, frame)

    def _signal(self, response_id: str, frame: str) -> None:
        if response_id not in self._ended:
            self._emit(frame, None)

    # --- Catching up ---

    async def catch_up(self, *, replay: bool = False) -> None:
        """Send the durable events after the cursor, a page at a time, as fast as the client reads.

        Stops before queued events, which follow in their place among signals that are not in the
        log. A replay omits the text of ended responses.
        """
        page = await self._reader.events_after(self._chat_id, self.cursor)
        has_left = any(
            entry.type == "participant.left" and self._is_own(entry.payload) for entry in page
        )
        user_id = self._session.principal.user_id
        if has_left and await self._reader.is_member(self._chat_id, user_id):
            self._back_at = page[-1].seq
        has_more = len(page) == PAGE
        queued = self._queued.seqs()
        for entry in page:
            if entry.seq in queued or self._is_about_to_end(entry):
                return
            text = fanout.frame_of(entry.payload, entry.seq)
            self._deliver(entry.seq, entry.type, entry.response_id, text, replay=replay)
            if self._outgoing.has_batch_bytes:
                has_more = True
                break
        if has_more and not self._is_closed:
            # Read the rest, or this entry again, after this batch has been sent.
            self._outgoing.put_first(partial(self.catch_up, replay=replay))

    def _is_about_to_end(self, entry: LoggedEvent) -> bool:
        """Return whether the entry is the end of a response that its local run will send next."""
        response_id = entry.response_id
        return entry.type in TERMINAL and response_id in self.runs and response_id not in self._over

    async def catch_up_running(self) -> None:
        """Send the state of each running response: its thinking, then its text at offset 0."""
        for running in await self._reader.running(self._chat_id):
            if self._queued.begins(running.response_id):
                # The whole response is queued, including its start.
                continue
            if running.response_id not in self._sent:
                # It started before the point where this session began to read the log.
                created = ev.ResponseCreated(
                    response_id=running.response_id,
                    agent=running.agent,
                    chat_id=self._chat_id,
                    transport=running.transport or None,
                )
                self._emit(frame(created), None)
            if running.thinking:
                thought = ev.Thinking(
                    response_id=running.response_id, content=running.thinking, is_delta=False
                )
                self._emit(frame(thought), None)
            self._emit_text(running.response_id, 0, running.text)

    async def repair(self) -> None:
        """Send the rest of all running texts from where this session left off.

        Responses with queued pieces are skipped: the pieces fill in the text in the right place.
        """
        for running in await self._reader.running(self._chat_id):
            if not self._queued.has_pieces(running.response_id):
                self._send_rest(running)

    async def _fill(self, response_id: str, until: int) -> None:
        """Send the text of a response that is missing before the piece at `until`."""
        for running in await self._reader.running(self._chat_id):
            if running.response_id == response_id:
                self._send_rest(running, until)

    def _send_rest(self, running: RunningText, until: int | None = None) -> None:
        sent = self._sent.get(running.response_id)
        if sent is not None and (rest := running.text[sent:until]):
            self._emit_text(running.response_id, sent, rest)

    # --- Output ---

    def _deliver(
        self, seq: int, event_type: str, response_id: str, text: str, *, replay: bool = False
    ) -> None:
        self.cursor = seq
        if event_type == "response.created":
            self._sent.setdefault(response_id, 0)
        if event_type in TERMINAL:
            self._complete(response_id, text, replay=replay)
        if self._session.chat_scoped or event_type in TURN_EVENTS:
            self._emit(text, seq)
        has_left = event_type == "participant.left" and seq > self._back_at
        if has_left and self._is_own(msgspec.json.decode(text)):
            self._has_left = True
            self._on_left()

    def _is_own(self, event: dict[str, Any]) -> bool:
        participant: dict[str, str] = event["participant"]
        user_id = str(self._session.principal.user_id)
        return participant["kind"] == "user" and participant["id"] == user_id

    def _complete(self, response_id: str, text: str, *, replay: bool) -> None:
        """Send the text that is missing before the end, so that the deltas add up to the output.

        For a response that started and ended while the session was detached, only the output is
        sent; of one that started earlier, the client may have a part. Excess text, sent but not
        stored by a process that died, is replaced by the output.
        """
        sent = self._sent.pop(response_id, None)
        _remember(self._ended, response_id)
        whole = _final_text(text)
        if whole is None or (replay and sent == 0):
            return
        at = sent or 0
        if len(whole) != at:
            start = at if len(whole) > at else 0
            self._emit(frame(ev.text_delta(response_id, whole[start:], start)), None)

    def _emit_text(self, response_id: str, offset: int, text: str) -> None:
        if text or offset == 0:
            self._sent[response_id] = offset + len(text)
            self._emit(frame(ev.text_delta(response_id, text, offset)), None)

    def _emit(self, text: str, seq: int | None) -> None:
        """Add a frame to the next batch, unless the person has left the chat."""
        if not self._has_left:
            stamped = uamp.stamp_session(text, self._stamp)
            self._outgoing.emit(Outgoing(stamped, self._wire_id, seq))


def _remember(ids: OrderedDict[str, None], response_id: str) -> None:
    ids[response_id] = None
    if len(ids) > RESPONSES_REMEMBERED:
        ids.popitem(last=False)


def _final_text(text: str) -> str | None:
    """Return the text of the output in a terminal event, or None if it has no output."""
    event: dict[str, Any] = msgspec.json.decode(text)
    output = event.get("partial_output")
    if output is None:
        output = (event.get("response") or {}).get("output")
    if output is None:
        return None
    return "".join(item["text"] for item in output if item["type"] == "text")
