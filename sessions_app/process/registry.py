"""The server process: its turn store, runs, followers and tasks.

There is one per event loop. Everything that must survive a crash is in rows.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import uuid
import weakref
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from chat_app.log import history as chat_history
from chat_app.members import membership
from chat_app.members.agents.agent_mentions import may_mention
from sessions_app import database, selectors
from sessions_app.connected.directory import ConnectedAgents
from sessions_app.connection.layer_groups import LayerGroups
from sessions_app.connection.log_reader import RunningText
from sessions_app.process.capacity import Capacity
from sessions_app.process.followers import Followers
from sessions_app.process.heartbeat import Heartbeat
from sessions_app.process.history import History
from sessions_app.process.runs import Runs
from sessions_app.process.shared_reads import SharedReads
from sessions_app.process.signals import ResponseSignals, send_decision
from sessions_app.store import leases
from sessions_app.store.group_commit import make_turn_store
from sessions_app.tools import approvals, delegated_calls

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from chat_app.log.entries import NewMessage
    from chat_app.log.history import LoggedEvent
    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession
    from sessions_app.response.context import RunContext
    from sessions_app.response.end.finish import CommittedEnd
    from sessions_app.response.tool_broker import Delegate

    AskMentioned: TypeAlias = Callable[[RunContext, NewMessage], Awaitable[None]]
    StartQueued: TypeAlias = Callable[[], Awaitable[None]]
    TakeGiven: TypeAlias = Callable[["Process", Sequence[str]], Awaitable[None]]

logger = logging.getLogger(__name__)

STOP_SECONDS: Final = 20.0
"""A task that takes longer to end is abandoned."""


class Process:
    """A server process and its parts, each of which manages its own state.

    Everything belongs to one event loop, whose tasks may call every method. `lifespan.shutdown`
    calls `stop` once.
    """

    def __init__(
        self,
        delegate: Delegate,
        ask_mentioned: AskMentioned,
        start_queued: StartQueued,
        take_handed_over: TakeGiven,
    ) -> None:
        self.id = f"{socket.gethostname()[:16]}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
        self.store = make_turn_store()
        self.heartbeat = Heartbeat(self.id)
        self.history = History()
        self.capacity = Capacity()
        # The daemons of connected agents registered on this process's sockets.
        self.connected = ConnectedAgents(self.id)
        self.runs = Runs(
            self.store,
            self.capacity,
            on_end=self.take_end,
            delegate=delegate,
            connected=self.connected,
            give=self._give,
        )
        self.signals = ResponseSignals(
            self.runs, process=self.id, take_over=self._take_over, disconnected=self._disconnected
        )
        self.followers = Followers()
        # The channel layer groups that its connections have joined.
        self.groups = LayerGroups(self.spawn)
        # The connections to close at shutdown.
        self.connections: weakref.WeakSet[ClientConnection] = weakref.WeakSet()
        self.draining = False
        self._reads = SharedReads()
        self._ask_mentioned = ask_mentioned
        self._take_handed_over = take_handed_over
        # Starts messages that were queued while answers ran; called by one periodic task.
        self.start_queued = start_queued
        self._tasks: set[asyncio.Task[Any]] = set()

    def take_end(self, context: RunContext, end: CommittedEnd) -> None:
        """Follow up on the committed end of a response (response.end.finish.OnEnd)."""
        self.history.append(context.chat_id, end.first_seq, end.count, end.message)
        parent = context.parent
        if parent is not None:
            self.spawn(self.signals.call_ended(parent.response_id, parent.pk), name="answer")
        elif end.message is not None and may_mention(end.message):
            self.spawn(self._ask_mentioned(context, end.message), name="mentions")
        if end.may_have_open_work:
            self.spawn(self._close_open_work(context.response_id), name="close open work")

    async def _close_open_work(self, response_id: str) -> None:
        """Cancel work delegated by an ended response, and withdraw its approval requests."""
        for child in await database.run(delegated_calls.live_children, response_id):
            await self.signals.cancel(child)
        for call in await database.run(approvals.undecided_calls, response_id):
            await send_decision(call.asked_in, approvals.question_withdrawn(call))

    async def _give(self, response_id: str, *, fence: int, process: str) -> None:
        """Hand a response to the process that holds its agent's daemon, first in its row."""
        if await database.run(leases.give_response, response_id, fence=fence, process=process):
            await self.signals.hand_over(response_id, process)

    def _take_over(self, response_id: str) -> None:
        self.spawn(self._take_handed_over(self, [response_id]), name="take a response over")

    def _disconnected(self) -> None:
        self.spawn(self.disconnect_daemons(), name="disconnect daemons")

    async def disconnect_daemons(self) -> None:
        """End the registrations and answers of daemons that operators disconnected."""
        self.followers.disconnect(await self.connected.disconnected())

    def has_other_listeners(self, session: OpenSession) -> bool:
        """Return whether anyone besides the asker may listen to a turn of a session."""
        return session.is_shared or self.runs.is_watched(session.chat_id)

    # --- Reads for chat subscriptions (LogReader) ---

    async def events_after(self, chat_id: str, after: int) -> Sequence[LoggedEvent]:
        """Return the next entries of a chat's log."""
        return await self._reads.read(chat_history.events_after, chat_id, after)

    async def is_member(self, chat_id: str, user_id: int | None) -> bool:
        """Return whether a person is in a chat now."""
        return await database.run(membership.is_member, chat_id, user_id)

    async def running(self, chat_id: str) -> Sequence[RunningText]:
        """Return a chat's running responses, from memory or else as last flushed."""
        texts = []
        for row in await self._reads.read(selectors.running_responses, chat_id):
            run = self.runs.get(row.id)
            if run is None:
                texts.append(RunningText(row.id, row.agent, row.text, row.thinking, row.transport))
                await self.signals.watch(row.id)
            else:
                run.watch()
                answer = run.answer
                words = (answer.text, answer.thinking)
                texts.append(RunningText(row.id, row.agent, *words, row.transport))
        return texts

    # --- Tasks ---

    def spawn(self, coroutine: Any, *, name: str) -> asyncio.Task[Any]:
        """Run a task of the process and keep a reference to it."""
        task = asyncio.create_task(coroutine, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        """Stop the process's tasks and the turn store (for `lifespan.shutdown`)."""
        await asyncio.to_thread(self.heartbeat.stop)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            _, running = await asyncio.wait(tasks, timeout=STOP_SECONDS)
            if running:
                names = ", ".join(sorted(task.get_name() for task in running))
                logger.error("tasks did not end within %g s: %s", STOP_SECONDS, names)
        await asyncio.to_thread(self.store.close)


_processes: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Process] = (
    weakref.WeakKeyDictionary()
)


def current() -> Process:
    """Return the process of the running loop; raises RuntimeError before `lifespan.startup`."""
    process = current_or_none()
    if process is None:
        raise RuntimeError("The server process was not started: sessions_app.lifespan.startup.")
    return process


def current_or_none() -> Process | None:
    """Return the process of the running loop, if any."""
    return _processes.get(asyncio.get_running_loop())


def remember(process: Process) -> None:
    """Set the process of the running loop."""
    _processes[asyncio.get_running_loop()] = process


def forget() -> None:
    """Drop the loop's process after it was stopped."""
    _processes.pop(asyncio.get_running_loop(), None)
