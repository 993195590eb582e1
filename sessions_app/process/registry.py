"""What one server process holds: its running responses, its turn store, and who follows what.

There is one for each event loop. Losing a process loses nothing that is not in rows.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import time
import uuid
import weakref
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final, Protocol

from channels.layers import get_channel_layer
from django.conf import settings
from django.db import DatabaseError, DataError, InterfaceError
from django.utils import timezone

from chat_app.log import fanout
from chat_app.log import history as chat_history
from sessions_app import database, selectors, session_states
from sessions_app.access import auth
from sessions_app.billing import requests
from sessions_app.connection.chat_subscription import RunningText
from sessions_app.frames import frame
from sessions_app.process.capacity import Capacity
from sessions_app.process.history import History
from sessions_app.response.run import Run
from sessions_app.store import responses
from sessions_app.store.group_commit import make_turn_store
from sessions_app.tools import calls

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from chat_app.log.history import LoggedEvent
    from sessions_app.access.principal import Principal
    from sessions_app.records import OpenSession
    from sessions_app.response.context import Listener, RunContext
    from sessions_app.response.finish import CommittedEnd
    from sessions_app.response.tool_broker import Delegate
    from uamp import events as ev

logger = logging.getLogger(__name__)

# The oldest is forgotten; its listeners then hear of new turns from the tick.
WATCHED_CHATS: Final = 10_000
LISTEN_AGAIN_SECONDS: Final = 2.0
# Between two batches the answers go on: their text is put together on the loop.
FLUSHES_AT_ONCE: Final = 50


class Follower(Protocol):
    """A socket or stream that follows chats, for the tick that finds what the layer lost."""

    principal: Principal
    # The row that says that its person is online, if there is one.
    presence_id: str | None

    @property
    def held_by(self) -> str:
        """The id under which its sessions are active; none where it does not stay with them."""

    def cursors(self) -> dict[str, int]:
        """Return the chats that it follows and how far it is."""

    def nudge(self, chat_id: str) -> None:
        """Make it read the log of a chat."""

    def principals(self) -> set[Principal]:
        """Return who acts there."""

    def dismiss(self, principal: Principal) -> None:
        """Let somebody act there no more."""

    def end_session(self, row_id: str) -> None:
        """Tell its client that a session was ended elsewhere."""

    def watch_tokens(self, now: float) -> None:
        """Warn of tokens that expire; `now` is Unix seconds."""

    @property
    def session_ids(self) -> list[str]:
        """The sessions that it holds."""


class Connection(Protocol):
    """A socket, a stream or a batch that is open, for the end of the process."""

    # Whether nothing more is sent.
    has_ended: bool

    def close(self, code: int) -> None:
        """End it with a WebSocket close code, after what waits to be sent."""


async def send_decision(chat_id: str, done: ev.ToolApprovalDone) -> None:
    """Send a chat that a call was allowed or refused: its clients withdraw the question."""
    signal = fanout.signal_message(chat_id=chat_id, frame=frame(done), response_id=done.response_id)
    await fanout.send(fanout.chat_group(chat_id), signal)


class Process:
    """The runner's side of a server process."""

    def __init__(self, delegate: Delegate) -> None:
        self._delegate = delegate
        self.id = f"{socket.gethostname()[:16]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.store = make_turn_store()
        self.history = History()
        self.runs: dict[str, Run] = {}
        self.capacity = Capacity()
        self.followers: weakref.WeakSet[Follower] = weakref.WeakSet()
        self.connections: weakref.WeakSet[Connection] = weakref.WeakSet()
        self.draining = False
        self._watched_chats: OrderedDict[str, None] = OrderedDict()
        self._tasks: set[asyncio.Task[Any]] = set()
        self._channel: str | None = None

    # --- Runs ---

    def launch(self, context: RunContext, listener: Listener | None = None) -> Run:
        """Run a response whose row is committed; it may delegate work to other agents."""
        run = Run(
            context,
            store=self.store,
            on_end=self.take_end,
            delegate=self._delegate,
            idle=self.capacity,
        )
        if listener is not None:
            run.listen(listener)
        self.runs[context.response_id] = run
        self.capacity.add(context)
        task = run.start()
        task.add_done_callback(lambda _: self._forget(run))
        return run

    def _forget(self, run: Run) -> None:
        if self.runs.get(run.response_id) is run:
            del self.runs[run.response_id]
        self.capacity.remove(run.context)

    def take_end(self, context: RunContext, end: CommittedEnd) -> None:
        """Do what follows the committed end of a response (response.finish.OnEnd)."""
        self.history.append(context.chat_id, end.first_seq, end.count, end.message)
        parent = context.parent
        if parent is not None:
            self.spawn(self.settle_call(parent.response_id, parent.pk), name="answer")
        if end.may_have_open_work:
            self.spawn(self.close_open_work(context.response_id), name="close open work")

    async def close_open_work(self, response_id: str) -> None:
        """Cancel the work that was delegated for a response that ended; withdraw its questions."""
        for child in await database.run(calls.live_children, response_id):
            await self.cancel(child)
        for call in await database.run(calls.undecided_calls, response_id):
            await send_decision(call.asked_in, calls.nobody_decided(call))

    def is_heard_by_others(self, session: OpenSession) -> bool:
        """Return whether more than the asker may listen to a turn of a session."""
        return session.is_shared or session.chat_id in self._watched_chats

    async def watch_chat(self, chat_id: str) -> None:
        """Have every process tell a private chat's group of its turns: a second one listens."""
        self._watch(chat_id)
        await fanout.send(
            fanout.PROCESSES_GROUP, {"type": "chat.watch", "response": "", "chat": chat_id}
        )

    def _watch(self, chat_id: str) -> None:
        self._watched_chats[chat_id] = None
        if len(self._watched_chats) > WATCHED_CHATS:
            self._watched_chats.popitem(last=False)
        for run in self.runs.values():
            if run.context.chat_id == chat_id:
                run.watch()

    def has_room_for(self, principal: Principal) -> bool:
        """Return whether somebody may open another connection here."""
        if principal.is_anonymous:
            most = settings.UAMP_CONNECTIONS_PER_ADDRESS
            others = (f.principal for f in list(self.followers) if f.principal.is_anonymous)
        else:
            most = settings.UAMP_CONNECTIONS_PER_USER
            others = (f.principal for f in list(self.followers))
        return sum(other.counted_as == principal.counted_as for other in others) < most

    async def cancel(self, response_id: str) -> None:
        """Cancel a response wherever it runs; the row keeps the wish for whoever is slow."""
        await database.run(responses.request_cancel, response_id)
        run = self.runs.get(response_id)
        if run is not None:
            run.cancel()
        else:
            await fanout.send(
                fanout.PROCESSES_GROUP, {"type": "run.cancel", "response": response_id}
            )

    async def settle_call(self, response_id: str, pk: int) -> None:
        """Let whoever waits for a tool call know that its row has ended."""
        if response_id in self.runs:
            await self._settle(response_id, [pk])
        else:
            await fanout.send(
                fanout.PROCESSES_GROUP,
                {"type": "run.settled", "response": response_id, "call": pk},
            )

    async def call_decided(self, response_id: str, pk: int) -> None:
        """Let the run that waits for a person know that they decided."""
        if (run := self.runs.get(response_id)) is not None:
            run.decide_calls([pk])
        else:
            await fanout.send(
                fanout.PROCESSES_GROUP,
                {"type": "run.decided", "response": response_id, "call": pk},
            )

    async def _settle(self, response_id: str, pks: Sequence[int]) -> None:
        rows = await database.run(selectors.ended_calls, pks)
        if (run := self.runs.get(response_id)) is not None:
            run.settle_calls(rows)

    async def settle_payment(self, response_id: str, pk: int) -> None:
        """Let whoever waits for a payment know that its row is decided."""
        if (run := self.runs.get(response_id)) is not None:
            run.settle_payments(await database.run(requests.decided, [pk]))
        else:
            await fanout.send(
                fanout.PROCESSES_GROUP, {"type": "run.paid", "response": response_id, "call": pk}
            )

    # --- What chat subscriptions read (LogReader) ---

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """Return the next entries of a chat's log."""
        return await database.run(chat_history.events_after, chat_id, after)

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """Return what runs in a chat: from memory where it runs here, else as it was flushed."""
        found = []
        for row in await database.run(selectors.running_responses, chat_id):
            run = self.runs.get(row.id)
            if run is None:
                found.append(RunningText(row.id, row.agent, row.text, row.thinking))
                await fanout.send(fanout.PROCESSES_GROUP, {"type": "run.watch", "response": row.id})
            else:
                run.watch()
                answer = run.answer
                found.append(RunningText(row.id, row.agent, answer.text, answer.thinking))
        return found

    # --- The doorbell between processes ---

    async def listen(self) -> None:
        """Hear what other processes say of responses that run here; ends when cancelled."""
        while True:
            try:
                await self._listen()
            except Exception:
                # The layer is away; until it is back the rows are read every second.
                logger.exception("the channel layer cannot be heard")
            await asyncio.sleep(LISTEN_AGAIN_SECONDS)

    async def _listen(self) -> None:
        layer = get_channel_layer()
        self._channel = await layer.new_channel()
        await self.join()
        while True:
            message = await layer.receive(self._channel)
            try:
                await self._hear(message)
            except Exception:
                # One bad message must not make this process deaf; the rows are read anyway.
                logger.exception("a message between processes was not understood")

    async def join(self) -> None:
        """Enter the group of all processes, again and again: a layer may forget."""
        if self._channel is not None:
            async with asyncio.timeout(fanout.SEND_TIMEOUT_SECONDS):
                await get_channel_layer().group_add(fanout.PROCESSES_GROUP, self._channel)

    async def _hear(self, message: dict[str, Any]) -> None:
        if message["type"] == "chat.watch":
            self._watch(message["chat"])
            return
        run = self.runs.get(message["response"])
        if run is None:
            return
        match message["type"]:
            case "run.cancel":
                run.cancel()
            case "run.watch":
                run.watch()
            case "run.decided":
                run.decide_calls([message["call"]])
            case "run.settled":
                await self._settle(run.response_id, [message["call"]])
            case "run.paid":
                run.settle_payments(await database.run(requests.decided, [message["call"]]))

    async def read_rows(self) -> None:
        """Find in the rows what a lost message would have said: cancel wishes, ended calls."""
        if not self.runs:
            return
        for response_id in await database.run(selectors.cancel_requests, list(self.runs)):
            if (run := self.runs.get(response_id)) is not None:
                run.cancel()
        waiting = {pk: run for run in list(self.runs.values()) for pk in run.waiting_calls}
        if waiting:
            rows = await database.run(selectors.ended_calls, list(waiting))
            for row in rows:
                waiting[row.pk].settle_calls([row])
        asking = {pk: run for run in list(self.runs.values()) for pk in run.undecided_calls}
        if asking:
            for pk in await database.run(selectors.decided_calls, list(asking)):
                asking[pk].decide_calls([pk])
        unpaid = {pk: run for run in list(self.runs.values()) for pk in run.waiting_payments}
        if unpaid:
            for request in await database.run(requests.decided, list(unpaid)):
                unpaid[request.pk].settle_payments([request])

    async def flush(self) -> None:
        """Keep the text of the answers that went on since the last time."""
        dirty = [run for run in self.runs.values() if run.answer.needs_flush]
        for start in range(0, len(dirty), FLUSHES_AT_ONCE):
            runs = dirty[start : start + FLUSHES_AT_ONCE]
            try:
                await self._flush(runs)
            except (DataError, ValueError):
                # What one of them said cannot be kept: the others are kept all the same.
                for run in runs:
                    try:
                        await self._flush([run])
                    except (DataError, ValueError):
                        logger.exception("the answer so far of %s was not kept", run.response_id)

    async def _flush(self, runs: Sequence[Run]) -> None:
        free: set[str] = set()
        try:
            flushes = [run.answer.flush() for run in runs]
            free = await database.run(responses.flush_responses, flushes)
        finally:
            for run in runs:
                if run.response_id not in free:
                    run.answer.keep_for_next_flush()

    async def poll_logs(self) -> None:
        """Find followers that are behind their chat's log: the layer may have lost a message."""
        cursors: dict[str, int] = {}
        for follower in list(self.followers):
            for chat_id, cursor in follower.cursors().items():
                cursors[chat_id] = min(cursor, cursors.get(chat_id, cursor))
        if not cursors:
            return
        heads = await database.run(chat_history.chat_heads, list(cursors))
        behind = {chat_id for chat_id, cursor in cursors.items() if heads.get(chat_id, 0) > cursor}
        for follower in list(self.followers):
            for chat_id in behind.intersection(follower.cursors()):
                follower.nudge(chat_id)

    async def check_principals(self) -> None:
        """End the connections of principals that are not welcome any more."""
        followers = list(self.followers)
        for follower in followers:
            follower.watch_tokens(time.time())
        principals = {p for follower in followers for p in follower.principals()}
        if any(not principal.is_anonymous for principal in principals):
            for principal in await database.run(auth.unwelcome, principals):
                for follower in followers:
                    follower.dismiss(principal)
        held = [session_id for follower in followers for session_id in follower.session_ids]
        if held:
            for session_id in await database.run(selectors.ended_sessions, held):
                for follower in followers:
                    follower.end_session(session_id)

    async def touch_sessions(self) -> None:
        """Keep the sessions that are held here active."""
        held = [
            session_id
            for follower in list(self.followers)
            if follower.held_by
            for session_id in follower.session_ids
        ]
        await database.run(session_states.touch_sessions, held, now=timezone.now())

    async def release_sessions(self, session_ids: Collection[str], *, held_by: str) -> None:
        """Make sessions idle that a connection held; the tick makes good a write that fails."""
        if not session_ids:
            return
        try:
            await database.run(session_states.release_sessions, session_ids, held_by=held_by)
        except (DatabaseError, InterfaceError):
            logger.warning("sessions were not released; the tick will", exc_info=True)

    def spawn(self, coroutine: Any, *, name: str) -> asyncio.Task[Any]:
        """Run a task of the process and keep it alive."""
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """End the process's own tasks and the turn store (for `lifespan.shutdown`)."""
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))
        await asyncio.to_thread(self.store.close)


_processes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Process] = (
    weakref.WeakKeyDictionary()
)


def current() -> Process:
    """Return the process of the running loop; raises RuntimeError before `lifespan.startup`."""
    process = known()
    if process is None:
        raise RuntimeError("The server process was not started: sessions_app.lifespan.startup.")
    return process


def known() -> Process | None:
    """Return the process of the running loop if there is one."""
    return _processes.get(asyncio.get_running_loop())


def remember(process: Process) -> None:
    """Make a process the one of the running loop."""
    _processes[asyncio.get_running_loop()] = process


def forget() -> None:
    """Let the loop's process go, after it was stopped."""
    _processes.pop(asyncio.get_running_loop(), None)
