"""A daemon on a real socket, as the reference's PortalConnect behaves: it registers and answers.

Programs that do not set up Django use it, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.client import Frame, UampClient


class Daemon:
    """A socket on which agents are registered; a test plays what they do."""

    def __init__(self, socket: UampClient) -> None:
        self.socket = socket
        self.session_id = ""
        """The session of the last registration."""

    def register(self, name: str, token: str, **fields: Any) -> Frame:
        """Register an agent as `PortalConnect` does; return `session.created`."""
        self.socket.send("session.create", session={"agent": name, "token": token}, **fields)
        created = self.socket.expect("session.created")
        self.socket.expect("capabilities")
        assert (created["agent"], created["session"]["agent"]) == (name, name)
        self.session_id = created["session_id"]
        return created

    def refused(self, name: str, token: str) -> str:
        """Register an agent in vain; return the code of the error."""
        self.socket.send("session.create", session={"agent": name, "token": token})
        error: str = self.socket.expect("session.error")["error"]["code"]
        return error

    def turn(self) -> Frame:
        """Return the next turn that comes; ends of earlier turns' sessions may come first."""
        frame = self.socket.receive()
        while frame["type"] == "session.end":
            frame = self.socket.receive()
        assert frame["type"] == "input.text", frame
        return frame

    def say(self, turn: Frame, *texts: str) -> None:
        """Send pieces of an answer, as the reference's daemon does."""
        for text in texts:
            self.send(turn, "response.delta", delta={"type": "text", "text": text})

    def end(self, turn: Frame, **fields: Any) -> None:
        """End an answer: the reference's daemon sends no `response`."""
        self.send(turn, "response.done", **fields)

    def send(self, turn: Frame, type_: str, **fields: Any) -> None:
        """Send an event of a turn."""
        all_fields = {"response_id": f"daemon of {turn['event_id']}", **fields}
        self.socket.send(type_, session_id=turn["session_id"], **all_fields)
