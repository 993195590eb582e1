"""A client of ACP over Streamable HTTP: it posts, and reads its streams on threads."""

from __future__ import annotations

import json
import queue
import threading
from typing import TYPE_CHECKING, Any, Self

import httpx

from tests.gateway_app.acp.socket_client import HELLO

if TYPE_CHECKING:
    from types import TracebackType

    from tests.conftest import ServerAddress
    from tests.live_server import Person

Rpc = dict[str, Any]
SECONDS = 20


class HttpAcpClient:
    """A connection; `seen` has what its streams sent, in the order of each."""

    def __init__(self, address: ServerAddress, agent: str, who: Person | None = None) -> None:
        headers = {} if who is None else who.headers
        self.url = f"{address.http}/agents/{agent}/acp"
        self.web = httpx.Client(headers=headers, timeout=SECONDS, trust_env=False)
        self.connection = ""
        self.allows = "allow"
        self.seen: list[Rpc] = []
        self._arrived: queue.Queue[Rpc] = queue.Queue()
        self._threads: list[threading.Thread] = []
        self._last_id = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.connection:
            self.web.delete(self.url, headers=self.headers())
        for thread in self._threads:
            thread.join(SECONDS)
        self.web.close()

    def headers(self, session_id: str = "") -> dict[str, str]:
        """Return the headers that name the connection, and a session."""
        connection_header = {"Acp-Connection-Id": self.connection}
        return connection_header | ({"Acp-Session-Id": session_id} if session_id else {})

    def initialize(self) -> Self:
        """Open the connection and its own stream."""
        body = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}
        answer = self.web.post(self.url, json=body)
        assert answer.status_code == httpx.codes.OK, answer.text
        assert answer.json()["result"]["protocolVersion"] == 1
        self.connection = answer.headers["Acp-Connection-Id"]
        self.read()
        return self

    def read(self, session_id: str = "") -> None:
        """Open a stream, and keep what it sends."""
        is_open = threading.Event()

        def take() -> None:
            headers = {**self.headers(session_id), "Accept": "text/event-stream"}
            with self.web.stream("GET", self.url, headers=headers, timeout=None) as stream:
                assert stream.status_code == httpx.codes.OK
                for line in stream.iter_lines():
                    is_open.set()
                    if line.startswith("data: "):
                        self._arrived.put(json.loads(line.removeprefix("data: ")))

        self._threads.append(threading.Thread(target=take, daemon=True))
        self._threads[-1].start()
        assert is_open.wait(SECONDS)

    def post(self, message: Rpc, session_id: str = "") -> None:
        """Post a message, which is accepted."""
        answer = self.web.post(
            self.url, json={"jsonrpc": "2.0", **message}, headers=self.headers(session_id)
        )
        assert (answer.status_code, answer.content) == (httpx.codes.ACCEPTED, b"")

    def send(self, method: str, **params: Any) -> int:
        """Post a request and return its id."""
        self._last_id += 1
        session_id = params.get("sessionId", "") if method == "session/prompt" else ""
        self.post({"id": self._last_id, "method": method, "params": params}, session_id)
        return self._last_id

    def call(self, method: str, **params: Any) -> Rpc:
        """Send a request and return its response."""
        return self.answer_to(self.send(method, **params))

    def answer_to(self, request_id: int) -> Rpc:
        """Return the response to a request; what comes before it is kept."""
        while True:
            message = self._arrived.get(timeout=SECONDS)
            self.seen.append(message)
            if message.get("method") == "session/request_permission":
                outcome = {"outcome": "selected", "optionId": self.allows}
                self.post({"id": message["id"], "result": {"outcome": outcome}})
            elif "method" not in message and message["id"] == request_id:
                return message

    def new_session(self, *, is_read: bool = True) -> str:
        """Open a session, and its stream."""
        session_id: str = self.call("session/new", cwd="/", mcpServers=[])["result"]["sessionId"]
        if is_read:
            self.read(session_id)
        return session_id

    def prompt(self, session_id: str, **params: Any) -> Rpc:
        """Send a prompt and return its response."""
        return self.call("session/prompt", **{"sessionId": session_id, "prompt": HELLO, **params})

    def text(self) -> str:
        """Return the text of the answers."""
        updates = [m["params"]["update"] for m in self.seen if m.get("method") == "session/update"]
        chunks = [update for update in updates if update["sessionUpdate"] == "agent_message_chunk"]
        return "".join(chunk["content"]["text"] for chunk in chunks)

    def updates(self, kind: str) -> list[Rpc]:
        """Return the updates of one kind."""
        updates = [m["params"]["update"] for m in self.seen if m.get("method") == "session/update"]
        return [update for update in updates if update["sessionUpdate"] == kind]
