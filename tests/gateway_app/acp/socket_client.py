"""A client of ACP on a WebSocket."""

import json
from collections.abc import Callable
from typing import Any

from websockets.sync.client import ClientConnection

Rpc = dict[str, Any]
HELLO = [{"type": "text", "text": "Hello there"}]


class AcpClient:
    """A client that allows what it is asked to allow, and keeps what it is sent."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.seen: list[Rpc] = []
        self.allows = "allow"
        self._last_id = 0

    def call(self, method: str, **params: Any) -> Rpc:
        """Send a request and return its response."""
        self._last_id += 1
        request = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self.socket.send(json.dumps(request))
        return self.answer_to(self._last_id)

    def answer_to(self, request_id: int | None) -> Rpc:
        """Return the response to a request; what comes before it is kept."""
        while True:
            message: Rpc = json.loads(self.socket.recv(timeout=60))
            self.seen.append(message)
            if message.get("method") == "session/request_permission":
                outcome = {"outcome": "selected", "optionId": self.allows}
                answer = {"jsonrpc": "2.0", "id": message["id"], "result": {"outcome": outcome}}
                self.socket.send(json.dumps(answer))
            elif "method" not in message and message["id"] == request_id:
                return message

    def new_session(self) -> str:
        """Begin as an official client does, and return the id of a session."""
        assert self.call("initialize", protocolVersion=1)["result"]["protocolVersion"] == 1
        session_id: str = self.call("session/new", cwd="/", mcpServers=[])["result"]["sessionId"]
        return session_id

    def updates(self, kind: str) -> list[Rpc]:
        """Return the updates of one kind."""
        updates = [m["params"]["update"] for m in self.seen if m.get("method") == "session/update"]
        return [update for update in updates if update["sessionUpdate"] == kind]

    def text(self) -> str:
        """Return the text of the answers."""
        return "".join(u["content"]["text"] for u in self.updates("agent_message_chunk"))


Acp = Callable[..., AcpClient]
