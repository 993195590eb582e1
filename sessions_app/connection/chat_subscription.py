"""The events of a chat for one session: each durable one once, in order, text without gaps.

The subscription keeps its `cursor` and, for each running response, how many code points were sent.
It sends a live message that follows directly on these, and otherwise reads the log and the response
rows, so that a lost layer message, a new socket and a slow one are all the same case.
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

# What must be awaited before the subscription goes on.
Reading: TypeAlias = "Coroutine[Any, Any, None]"

RESPONSES_REMEMBERED: Final = 256
# What a session that did not name a chat is sent of the chat that is its own: the turns, as UAMP
# §3.1 draws them, whichever connection or HTTP request asked for them, and the state they share.
TURN_EVENTS: Final = frozenset({"response.created", "state.updated", *TERMINAL})


class ChatSubscription:
    """One session's subscription to one chat, and its listener to the runs of this process.

    It alone knows what the session was sent, and decides what it is sent next: a run sends
    `text`, `frame`, `event` and `ended` (response.context.Listener), the chat's group
    `take_layer_message`. Both, and `follow`, `send_signal` and `close`, may be called by any task
    of the process's loop: what may overtake nothing is emitted at once, the rest is put in the
    queue. `catch_up`, `catch_up_running` and `repair` are work for the queue; only its pump runs
    them, one after another.

    `origin` is the connection's, `on_left` is called when the person of the session has left the
    chat, after which nothing more is sent, and `on_elsewhere` with a response that this process
    runs no longer and that had no end here.
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
        self._is_closed = False
        self._has_left = False
        # Running responses, and how many code points of each were sent.
        self._sent: dict[str, int] = {}
        # Responses whose end was sent lately: reading the log overtakes frames that are queued.
        self._ended: OrderedDict[str, None] = OrderedDict()
        # Responses whose run, in this process, sends its signals here: the group's are repeats.
        self._direct: OrderedDict[str, None] = OrderedDict()
        # Those of them whose run has sent its end.
        self._over: set[str] = set()
        self._queued = QueuedParts(outgoing)

    # --- From a run of this process ---

    def follow(self, run: Run) -> None:
        """Listen to a run until it ends; one that is over has left its end in the log."""
        if run.listen(self):
            self.runs[run.response_id] = run

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """Take text of a running response, and the parts of its frame (uamp.TextDeltas)."""
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
        """Take another event that is not kept; what belongs before the end comes before it."""
        # What is sent after the end, as a balance, is sent in any case.
        self._send_before_end("" if response_id in self._over else response_id, frame)

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """Take a durable event of a run."""
        if event_type == "response.created":
            _remember(self._direct, response_id)
        if event_type in TERMINAL:
            self._over.add(response_id)
        self._event(seq, event_type, response_id, frame)

    def ended(self, response_id: str) -> None:
        """Take note that a run has ended, or goes on in another process."""
        self.runs.pop(response_id, None)
        if response_id not in self._over:
            # Its end, if there is one, is in the log.
            self._outgoing.put(self.catch_up)
            self._on_elsewhere(response_id)
        self._over.discard(response_id)
        self._outgoing.wake()

    # --- From the chat's group ---

    def take_layer_message(self, message: dict[str, Any]) -> None:
        """Take a message of the chat's group (chat_app.fanout); a delta has its `frame` too."""
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
        """Leave out what the run itself sent to this session, and what is about its person."""
        user_id = self._session.principal.user_id
        is_repeat = signal["origin"] == self._origin and signal["response"] in self._direct
        # A run that was joined here sends its own signals directly, under the origin of its turn.
        run = self.runs.get(signal["response"])
        is_joined = run is not None and signal["origin"] == run.context.origin != ""
        is_repeat = is_repeat or is_joined
        is_about_user = signal["user"] is not None and signal["user"] == user_id
        is_to = signal["to"] in {None, user_id} and signal["session"] in {None, self._session.id}
        return is_to and not is_repeat and not is_about_user

    # --- Life ---

    def send_signal(self, frame: str) -> None:
        """Send an event that is not kept, after what was queued before it."""
        self._outgoing.put(partial(self._signal, "", frame))

    def emit_signal(self, frame: str) -> None:
        """Send an event that is not kept now: work for the queue."""
        self._signal("", frame)

    def close(self) -> None:
        """Leave the runs and read no further; what is queued is still sent."""
        self._is_closed = True
        for run in list(self.runs.values()):
            run.leave(self)

    # --- In their turn ---

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
        """Send the part of a text that is new, after what is missing before it."""
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
        """Send the text of a response that another process goes on with, from its checkpoint.

        What was sent beyond that is not sent again: offset 0 replaces all text.
        """
        if response_id in self._sent:
            self._emit_text(response_id, 0, text)

    def _send_before_end(self, response_id: str, frame: str) -> None:
        """Send an event that is not kept, unless the end of the response was sent already."""
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
        """Send what is durable after the cursor, a page at a time, as the client takes it.

        It ends before what is queued, which comes in its place between signals that the log does
        not have. A replay has no text of what has ended.
        """
        page = await self._reader.events_after(self._chat_id, self.cursor)
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
            # Read, or read again, when this was sent.
            self._outgoing.put_first(partial(self.catch_up, replay=replay))

    def _is_about_to_end(self, entry: LoggedEvent) -> bool:
        """Return whether an entry is the end of a response whose run sends it here next."""
        response_id = entry.response_id
        return entry.type in TERMINAL and response_id in self.runs and response_id not in self._over

    async def catch_up_running(self) -> None:
        """Send the state of each running response: its thought, then its text at offset 0."""
        for running in await self._reader.running(self._chat_id):
            if self._queued.begins(running.response_id):
                # All of it is queued behind its beginning.
                continue
            if running.response_id not in self._sent:
                # Its beginning is further back in the log than this session began to read.
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
        """Send the rest of the texts that run, from where this session is.

        Where pieces of a response are queued, they bring its text in its place between them.
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

    # --- What goes out ---

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
        if event_type == "participant.left" and self._is_own(text):
            self._has_left = True
            self._on_left()

    def _is_own(self, text: str) -> bool:
        left: dict[str, str] = msgspec.json.decode(text)["participant"]
        user_id = str(self._session.principal.user_id)
        return left["kind"] == "user" and left["id"] == user_id

    def _complete(self, response_id: str, text: str, *, replay: bool) -> None:
        """Send the text that is missing before the end, so that deltas add up to the output.

        What began and ended while the session was not attached has its output only; of what began
        before that, the client may have a part. Text beyond the output is replaced by it: a process
        that died had sent it, and had not stored it.
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
        """Add a frame to the next batch; a person who left the chat is sent nothing more of it."""
        if not self._has_left:
            stamped = uamp.stamp_session(text, self._stamp)
            self._outgoing.emit(Outgoing(stamped, self._wire_id, seq))


def _remember(ids: OrderedDict[str, None], response_id: str) -> None:
    ids[response_id] = None
    if len(ids) > RESPONSES_REMEMBERED:
        ids.popitem(last=False)


def _final_text(text: str) -> str | None:
    """Return the text of the output in a terminal event; None where it has no output."""
    event: dict[str, Any] = msgspec.json.decode(text)
    output = event.get("partial_output")
    if output is None:
        output = (event.get("response") or {}).get("output")
    if output is None:
        return None
    return "".join(item["text"] for item in output if item["type"] == "text")
