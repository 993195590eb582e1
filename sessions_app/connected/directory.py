"""The daemons of this process by agent, and the lookup of daemons in other processes."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from django.conf import settings

from agents_app import connections
from agents_app.runtime.agent_run import AgentError, DaemonElsewhere
from sessions_app import database
from sessions_app.connected.connection_writer import ConnectionWriter
from uamp import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from agents_app.selectors import AgentSpec
    from sessions_app.connected.agent_socket import RegisteredAgent

logger = logging.getLogger(__name__)

FULL_SECONDS = 5.0
"""When to ask again after all daemons were at capacity."""


class ConnectedAgents:
    """The daemons registered on sockets of this process.

    Handlers call `write`, `admit` and `remove`; runs call `find`; sockets call `changed`; any task
    calls `disconnected`; each other method is called by one periodic task. All run on the process's
    loop.
    """

    def __init__(self, process: str) -> None:
        self.process = process
        self._daemons: dict[str, list[RegisteredAgent]] = {}
        self._changed: dict[int, RegisteredAgent] = {}
        self._writer = ConnectionWriter(process)
        # Whether a write or a deletion of rows failed, and the rows without a daemon at that look.
        self._may_have_strays = False
        self._strays: set[int] = set()

    def __len__(self) -> int:
        return sum(len(daemons) for daemons in self._daemons.values())

    def __iter__(self) -> Iterator[RegisteredAgent]:
        return iter([daemon for daemons in self._daemons.values() for daemon in daemons])

    # --- Registrations ---

    async def write(self, daemon: RegisteredAgent) -> None:
        """Record that a daemon is connected; raises connections.CannotRegister."""
        new = connections.NewConnection(
            daemon.agent_id,
            connection=daemon.link.origin,
            capabilities=daemon.capabilities,
            address=daemon.principal.address,
            api_key_id=daemon.principal.api_key_id,
        )
        try:
            daemon.row = await self._writer.write(new)
        except connections.CannotRegister:
            raise
        except Exception:
            # The row is there if only the answer of the database was lost.
            self._may_have_strays = True
            raise

    def admit(self, daemon: RegisteredAgent) -> None:
        """Let a daemon with a row answer."""
        self._daemons.setdefault(daemon.agent_id, []).append(daemon)

    async def remove(self, daemons: Sequence[RegisteredAgent]) -> None:
        """Remove daemons; their agents' chats are notified when the last one of an agent leaves."""
        keys = []
        for daemon in daemons:
            others = self._daemons.get(daemon.agent_id, [])
            if daemon in others:
                others.remove(daemon)
            if not others:
                self._daemons.pop(daemon.agent_id, None)
            if daemon.row is not None:
                keys.append(daemon.row)
                self._changed.pop(daemon.row, None)
        if not keys:
            return
        try:
            await database.run(connections.close_connections, keys)
        except Exception:
            self._may_have_strays = True
            logger.exception("%d connections of agents were not closed", len(keys))

    # --- Answers ---

    async def find(self, spec: AgentSpec, *, stays: bool, avoids: str = "") -> RegisteredAgent:
        """Return an agent's least busy daemon; with `stays`, prefer one in this process.

        Those of the process `avoids`, which did not claim the answer, are not chosen. Raises
        DaemonElsewhere, and AgentError: agent_offline if none is connected, rate_limit_exceeded if
        none of them can take the answer now.
        """
        here = self._least_busy(spec.id)
        if here is not None and (stays or not here.answers):
            return here
        listed = await database.run(connections.connections_of, spec.id)
        # Daemons may have come and gone in the meantime.
        here = self._least_busy(spec.id)
        others = [daemon for daemon in listed if daemon.process not in {self.process, avoids}]
        elsewhere = [daemon for daemon in others if daemon.answers < settings.UAMP_DAEMON_ANSWERS]
        is_best = here is not None and not (elsewhere and elsewhere[0].answers < len(here.answers))
        if here is not None and is_best:
            return here
        if elsewhere:
            raise DaemonElsewhere(elsewhere[0].process)
        if others or any(not daemon.is_gone for daemon in self._daemons.get(spec.id, ())):
            raise AgentError(
                f"{spec.name} is at capacity. Try again in a moment.",
                code=ErrorCode.RATE_LIMIT_EXCEEDED,
                retry_after=FULL_SECONDS,
            )
        if any(daemon.process == avoids for daemon in listed):
            raise AgentError(
                f"{spec.name} is connected but did not respond. Try again in a moment.",
                code=ErrorCode.RATE_LIMIT_EXCEEDED,
                retry_after=FULL_SECONDS,
            )
        raise AgentError(f"{spec.name} is not connected.", code=ErrorCode.AGENT_OFFLINE)

    def _least_busy(self, agent_id: str) -> RegisteredAgent | None:
        return min(
            (daemon for daemon in self._daemons.get(agent_id, ()) if daemon.has_room),
            key=lambda daemon: len(daemon.answers),
            default=None,
        )

    def changed(self, daemon: RegisteredAgent) -> None:
        """Record that a daemon's number of answers has changed."""
        if daemon.row is not None and not daemon.is_gone:
            self._changed[daemon.row] = daemon

    # --- Periodic work ---

    async def count_answers(self) -> None:
        """Record how busy the daemons are, for other processes."""
        changed, self._changed = self._changed, {}
        if changed:
            counts = {row: len(daemon.answers) for row, daemon in changed.items()}
            await database.run(connections.count_answers, counts)

    async def disowned_daemons(self) -> list[RegisteredAgent]:
        """Return the daemons whose agent has a new owner, was switched off or was deleted.

        Writes connections again that another process deleted because this one's lease had
        expired, and deletes rows whose daemon is gone.
        """
        if not (self._daemons or self._may_have_strays):
            return []
        # Daemons that register in the meantime are not in the rows that are read.
        listed = [daemon for daemon in self if daemon.row is not None]
        owners = await database.run(connections.owners_of, self.process)
        await self._close_strays(owners.keys())
        lost, missing = [], []
        for daemon in listed:
            if daemon.is_gone:
                continue
            if daemon.row not in owners:
                missing.append(daemon)
            elif owners[daemon.row] != daemon.principal.user_id:
                lost.append(daemon)
        return lost + await self._write_anew(missing)

    async def _close_strays(self, rows: Collection[int]) -> None:
        """Close the connections that have had no daemon here for two looks in a row.

        A daemon that is registering has its row a moment before this process knows it.
        """
        without = set(rows) - {daemon.row for daemon in self}
        if strays := without & self._strays:
            logger.warning("%d connections of %s had no daemon", len(strays), self.process)
            await database.run(connections.close_connections, strays)
        self._strays = without - strays
        self._may_have_strays = bool(self._strays)

    async def _write_anew(self, daemons: Sequence[RegisteredAgent]) -> list[RegisteredAgent]:
        """Rewrite deleted connections; return the daemons that their agent no longer accepts."""
        if daemons:
            logger.warning("%d connections of %s are rewritten", len(daemons), self.process)
        for daemon in daemons:
            self._changed.pop(daemon.row or 0, None)
        written = await asyncio.gather(*map(self.write, daemons), return_exceptions=True)
        refused, gone = [], []
        for daemon, error in zip(daemons, written, strict=True):
            if isinstance(error, connections.AlreadyRegistered):
                # By a write whose answer was lost. Its row is closed, and a later look tries again.
                continue
            if isinstance(error, connections.CannotRegister):
                refused.append(daemon)
            elif error is not None:
                raise error
            elif daemon.is_gone:
                gone.append(daemon)
            elif daemon.answers:
                self.changed(daemon)
        await self.remove(gone)
        return refused

    async def disconnected(self) -> list[RegisteredAgent]:
        """Return the daemons that operators disconnected (`connections.disconnect`)."""
        if not self._daemons:
            return []
        rows = await database.run(connections.disconnected, self.process)
        return [daemon for daemon in self if daemon.row in rows and not daemon.is_gone]

    async def begin_closing(self) -> None:
        """Stop new answers from being assigned to this process's daemons."""
        if self._daemons:
            await database.run(connections.begin_closing, self.process)

    async def close(self) -> None:
        """Delete the lease of this process, which is ending, and its connections."""
        await self._writer.stop()
        await database.run(connections.close_process, self.process)
