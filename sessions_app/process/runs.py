"""The responses running in this process: launched, flushed, and removed when they end."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from django.db import DataError

from sessions_app import database, selectors
from sessions_app.access import standing
from sessions_app.billing import requests
from sessions_app.response.run import Run
from sessions_app.store import responses
from sessions_app.tools import approvals, calls

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from sessions_app.connected.directory import ConnectedAgents
    from sessions_app.process.capacity import Capacity
    from sessions_app.response.context import Listener, RunContext
    from sessions_app.response.end.finish import OnEnd
    from sessions_app.response.run import Give
    from sessions_app.response.tool_broker import Delegate
    from sessions_app.store.group_commit import TurnStore

logger = logging.getLogger(__name__)

# The oldest is dropped; its listeners then read new turns at the next tick.
WATCHED_CHATS: Final = 10_000
# Other answers proceed between batches, since texts are assembled on the event loop.
FLUSHES_AT_ONCE: Final = 50
LAST_WORDS_SECONDS: Final = 2.0


class Runs(Mapping[str, Run]):
    """The runs of a process by response id.

    All methods are called on the event loop: `launch` by turns and recovery; `flush`, `read_rows`
    and `check_standing` by one periodic task each; `watch_chat` by connections and other processes.
    """

    def __init__(
        self,
        store: TurnStore,
        capacity: Capacity,
        *,
        on_end: OnEnd,
        delegate: Delegate,
        connected: ConnectedAgents,
        give: Give,
    ) -> None:
        self._connected, self._give = connected, give
        self._store = store
        self._capacity = capacity
        self._on_end = on_end
        self._delegate = delegate
        self._runs: dict[str, Run] = {}
        self._watched_chats: OrderedDict[str, None] = OrderedDict()

    def __getitem__(self, response_id: str) -> Run:
        return self._runs[response_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)

    def launch(self, context: RunContext, listener: Listener | None = None) -> Run:
        """Run a response whose row is committed; it may delegate to other agents."""
        run = Run(
            context,
            store=self._store,
            on_end=self._on_end,
            delegate=self._delegate,
            idle=self._capacity,
            connected=self._connected,
            give=self._give,
        )
        if listener is not None:
            run.listen(listener)
        self._runs[context.response_id] = run
        self._capacity.add(context)
        run.start().add_done_callback(lambda _: self._forget(run))
        return run

    def _forget(self, run: Run) -> None:
        if self._runs.get(run.response_id) is run:
            del self._runs[run.response_id]
        self._capacity.remove(run.context)

    def lose(self, fences: Mapping[str, int]) -> None:
        """Stop the runs with these fences, whose responses other processes have claimed."""
        for response_id, fence in fences.items():
            run = self._runs.get(response_id)
            if run is not None and run.context.fence == fence:
                logger.warning(
                    "response %s was taken over by another process; stopping its run", response_id
                )
                run.lose()

    # --- Private chats with a second reader ---

    def is_watched(self, chat_id: str) -> bool:
        """Return whether a client other than the asker may be reading a private chat."""
        return chat_id in self._watched_chats

    def watch_chat(self, chat_id: str) -> None:
        """Send current and future responses of a private chat to the chat's group."""
        self._watched_chats[chat_id] = None
        if len(self._watched_chats) > WATCHED_CHATS:
            self._watched_chats.popitem(last=False)
        for run in self._runs.values():
            if run.context.chat_id == chat_id:
                run.watch()

    # --- Rows ---

    async def read_rows(self) -> None:
        """Read cancellations and ended waits from the rows, in case a message was lost."""
        if not self._runs:
            return
        for response_id in await database.run(selectors.cancel_requests, list(self._runs)):
            if (run := self._runs.get(response_id)) is not None:
                run.cancel()
        runs = list(self._runs.values())
        waiting = {pk: run for run in runs for pk in run.waiting_calls}
        if waiting:
            for call in await database.run(calls.ended_calls, list(waiting)):
                waiting[call.pk].settle_calls([call])
        undecided = {pk: run for run in runs for pk in run.undecided_calls}
        if undecided:
            for pk in await database.run(approvals.decided_calls, list(undecided)):
                undecided[pk].decide_calls([pk])
        unpaid = {pk: run for run in runs for pk in run.waiting_payments}
        if unpaid:
            for request in await database.run(requests.decided, list(unpaid)):
                unpaid[request.pk].settle_payments([request])

    async def check_standing(self) -> None:
        """Stop answers of switched-off agents, and of askers who lost the right to ask.

        Waits briefly for their ends, so that the askers receive them before being disconnected.
        """
        if not self._runs:
            return
        bases = {
            response_id: standing.AnswerBasis(
                agent_id=run.context.spec.id,
                agent=run.context.spec.name,
                user_id=run.context.user_id,
                chat_id=run.context.asked_in,
                credential=run.context.credential,
                actors=run.context.actors,
                is_delegated=run.context.parent is not None,
            )
            for response_id, run in self._runs.items()
        }
        ending = []
        for response_id, loss in (await database.run(standing.revoked_answers, bases)).items():
            run = self._runs.get(response_id)
            if run is not None and (task := run.revoke(loss)) is not None:
                logger.info("response %s is stopped: %s", response_id, loss.message)
                ending.append(task)
        if ending:
            await asyncio.wait(ending, timeout=LAST_WORDS_SECONDS)

    async def flush(self) -> None:
        """Write the answers that have progressed since the last flush."""
        changed = [run for run in self._runs.values() if run.answer.needs_flush]
        for start in range(0, len(changed), FLUSHES_AT_ONCE):
            batch = changed[start : start + FLUSHES_AT_ONCE]
            try:
                await self._flush(batch)
            except (DataError, ValueError):
                # One of the texts cannot be stored; the others still can.
                for run in batch:
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
