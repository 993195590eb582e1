"""The port through which a run reaches the daemons of a connected agent; sockets are behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from agents_app.selectors import AgentSpec
    from uamp.events import Event


class DaemonLost(Exception):
    """The daemon's socket closed, or it unregistered the agent."""


class DaemonElsewhere(Exception):
    """The agent's daemon is connected to another process, where the run has to continue."""

    def __init__(self, process: str) -> None:
        super().__init__(process)
        self.process = process


def starts_over(spec: AgentSpec) -> bool:
    """Return whether another daemon may take a turn whose daemon was lost before a word."""
    return spec.options.get("starts_over") is not False


class DaemonAnswer(Protocol):
    """One answer requested from a daemon; a single task reads it."""

    @property
    def sent_bytes(self) -> int:
        """The size of the conversation sent to the daemon, without tool results."""

    async def next(self) -> Event:
        """Return the daemon's next event; raises DaemonLost and AgentError."""

    def send(self, event: Event) -> None:
        """Send the daemon an event of this answer."""

    def close(self, *, cancel: bool) -> None:
        """Stop reading; `cancel` sends the daemon `response.cancel` (UAMP §5.13)."""


class Daemons(Protocol):
    """The daemons of one response's agent."""

    async def ask(self) -> DaemonAnswer:
        """Send the conversation to the least busy daemon (UAMP §5.6) and return its answer.

        Raises DaemonElsewhere, and AgentError (agent_offline) if no daemon is connected.
        """
