"""The daemons of a connected agent, as its run sees them: a small port, with a socket behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from uamp.events import Event


class DaemonLost(Exception):
    """The socket of the daemon closed, or it unregistered the agent."""


class HeldElsewhere(Exception):
    """The agent's daemon is connected to another process, in which the run has to go on."""

    def __init__(self, process: str) -> None:
        super().__init__(process)
        self.process = process


class DaemonAnswer(Protocol):
    """One answer that a daemon was asked for; one task reads it."""

    @property
    def sent_bytes(self) -> int:
        """The conversation as the daemon was sent it, without results of tools."""

    async def next(self) -> Event:
        """Return what the daemon sends next; raises DaemonLost and AgentError."""

    def send(self, event: Event) -> None:
        """Send the daemon an event of this answer."""

    def close(self, *, cancel: bool) -> None:
        """Read no further; `cancel` sends the daemon `response.cancel` (UAMP §5.13)."""


class Daemons(Protocol):
    """The daemons of the agent of one response."""

    async def ask(self) -> DaemonAnswer:
        """Send the least busy daemon the conversation (UAMP §5.6), and return its answer.

        Raises HeldElsewhere, and AgentError: agent_offline where no daemon is connected.
        """
