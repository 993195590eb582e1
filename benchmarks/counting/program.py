"""`program.py ORDER`: turns in one process, some of them counted; ORDER is `Order` as JSON.

Runs under callgrind, on the code in PYTHONPATH, without a server or a client: it calls the ASGI
application, whose store writes as always. Periodic jobs and the heartbeat are left out, because
they follow the clock, and everything takes fifty times as long here.
"""

from __future__ import annotations

import asyncio
import ctypes
import json
import sys
from contextlib import suppress
from importlib import import_module
from typing import Any, Final

# It sets Django up.
server = import_module("uamp_project.asgi")

from sessions_app.process import periodic  # noqa: E402

TURN_SECONDS: Final = 600


class CountedSocket:
    """A client with a session, in the same process."""

    def __init__(self, token: str) -> None:
        self._received: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._sent: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._number = 0
        headers = [(b"host", b"127.0.0.1"), (b"authorization", f"Bearer {token}".encode())]
        self._scope = {
            "type": "websocket",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "scheme": "ws",
            "path": "/uamp",
            "raw_path": b"/uamp",
            "query_string": b"",
            "root_path": "",
            "headers": headers,
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8000),
            "subprotocols": [],
            "extensions": {},
        }

    async def open(self, agent: str) -> None:
        """Connect, and open a session with an agent."""
        self._task = asyncio.create_task(
            server.application(self._scope, self._sent.get, self._received.put)
        )
        self._sent.put_nowait({"type": "websocket.connect"})
        self._send("session.create", uamp_version="1.0", session={}, agent=agent)
        await self._until("session.created")

    async def turn(self, text: str) -> None:
        """Send a message, and wait for the end of its answer."""
        self._send("input.text", text=text)
        self._send("response.create")
        await self._until("response.done")

    async def close(self) -> None:
        """Disconnect."""
        self._sent.put_nowait({"type": "websocket.disconnect", "code": 1000})
        await self._task

    def _send(self, kind: str, **fields: Any) -> None:
        self._number += 1
        event = {"type": kind, "event_id": f"e{self._number}", "timestamp": 0, **fields}
        self._sent.put_nowait({"type": "websocket.receive", "text": json.dumps(event)})

    async def _until(self, kind: str) -> None:
        async with asyncio.timeout(TURN_SECONDS):
            while True:
                message = await self._received.get()
                frame = message.get("text") or (message.get("bytes") or b"").decode()
                if f'"type":"{kind}"' in frame:
                    return
                if '"type":"session.error"' in frame or '"type":"response.error"' in frame:
                    raise RuntimeError(frame)


async def main(order: dict[str, Any]) -> None:
    """Warm up with all agents, and then count for each."""
    switch = ctypes.CDLL(order["switch"])
    leave_out_the_clock()
    _leave_out(order["without"])
    await server.startup()
    sockets_of = {
        agent: [CountedSocket(order["token"]) for _ in range(order["sockets"])]
        for agent in order["agents"]
    }
    for agent, sockets in sockets_of.items():
        for socket in sockets:
            await socket.open(agent)
        await run_turns(sockets, order["text"], order["warm"])
    for _ in range(order["rounds"]):
        for agent, sockets in sockets_of.items():
            switch.begin_counting()
            await run_turns(sockets, order["text"], order["turns"])
            switch.end_counting(agent.encode())
    for sockets in sockets_of.values():
        for socket in sockets:
            await socket.close()
    await server.shutdown()


def leave_out_the_clock() -> None:
    """Start no periodic jobs and no heartbeat, which earlier commits do not have."""
    periodic.start = lambda process: None  # noqa: ARG005 called by position
    with suppress(ModuleNotFoundError):
        heartbeat: Any = import_module("sessions_app.process.heartbeat")
        heartbeat.Heartbeat.start = lambda _self: None


def _leave_out(parts: list[str]) -> None:
    """Leave out the signature of answers or the hash chain of their logs, to count their share."""
    if "signature" in parts:
        finish: Any = import_module("sessions_app.response.end.finish")
        finish.is_signed = lambda _finish: False
    if "chain" in parts:
        for name in ("sqlite", "postgres"):
            store: Any = import_module(f"sessions_app.store.{name}")
            rows = store.event_rows
            store.entry_digests = lambda turn, rows=rows: [bytes(32)] * len(rows(turn))
            store.chain_hash = lambda previous, _seq, _entry: previous


async def run_turns(sockets: list[CountedSocket], text: str, turns: int) -> None:
    """Run `turns` turns on each socket, on all sockets at once."""
    for _ in range(turns):
        await asyncio.gather(*(socket.turn(text) for socket in sockets))


if __name__ == "__main__":
    asyncio.run(main(json.loads(sys.argv[1])))
