"""The ASGI application that `served.Served` runs in a process of its own.

`/echo` sends back what comes in; `/flood` sends 64 KiB frames, and prints how many were taken and
that a message came;
`/slow` reads one message a second; `/stubborn` goes on when it is cancelled;
`/stream` writes a body of 64 KiB chunks without end, with the status that the query names.
The arguments are the seconds after which a stalled peer is closed, and those that draining takes.
"""

import asyncio
import sys
from typing import Any

import django

from uamp_project.servers.daphne_server import BackpressureServer


def say(*words: object) -> None:
    """Print a line for the test."""
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


async def flood(receive: Any, send: Any) -> None:
    """Send as much as the server takes, until the peer is gone."""

    async def next_message() -> Any:
        message = await receive()
        if message["type"] == "websocket.receive":
            say("received")
        return message

    def hear() -> asyncio.Future[Any]:
        return asyncio.ensure_future(next_message())

    closed = hear()
    frame_count = 0
    while not (closed.done() and closed.result()["type"] == "websocket.disconnect"):
        if closed.done():
            closed = hear()
        await send({"type": "websocket.send", "bytes": b"x" * 65536})
        frame_count += 1
        say("taken", frame_count)
    say("closed", closed.result()["code"])


async def go_on() -> None:
    """Outlive a server that wants to end."""
    while True:
        try:
            await asyncio.sleep(600)
        except asyncio.CancelledError:
            say("cancelled")


async def websocket(scope: Any, receive: Any, send: Any) -> None:
    """Serve one socket."""
    await receive()
    await send({"type": "websocket.accept"})
    if scope["path"] == "/flood":
        await flood(receive, send)
        return
    if scope["path"] == "/stubborn":
        await go_on()
    while (message := await receive())["type"] == "websocket.receive":
        if scope["path"] == "/slow":
            await asyncio.sleep(1)
        if message.get("text") == "close":
            await send({"type": "websocket.close", "code": 1008, "reason": "asked for"})
        message["type"] = "websocket.send"
        await send(message)
    say("closed", message["code"])


async def stream(status: int, receive: Any, send: Any) -> None:
    """Write a response without end."""
    await receive()
    closed = asyncio.ensure_future(receive())
    await send({"type": "http.response.start", "status": status, "headers": []})
    frame_count = 0
    while not closed.done():
        body = {"type": "http.response.body", "body": b"x" * 65536, "more_body": True}
        await send(body)
        frame_count += 1
        say("taken", frame_count)
    say("closed", closed.result()["type"])


async def application(scope: Any, receive: Any, send: Any) -> None:
    """Serve a socket or a request."""
    if scope["type"] == "websocket":
        await websocket(scope, receive, send)
    else:
        await stream(int(scope["query_string"] or 200), receive, send)


async def drain() -> None:
    """Say that draining began and ended."""
    say("draining")
    await asyncio.sleep(float(sys.argv[2]))
    say("drained")


async def finish() -> None:
    """Say that nothing runs any more."""
    say("finished")


def refuse_request(*, is_too_large: bool) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
    """Return the answer of the product; Django is set up for the one test that asks."""
    django.setup()
    from uamp_project.edge.refusals import unread_request  # noqa: PLC0415

    return unread_request(is_too_large=is_too_large)


if __name__ == "__main__":
    server = BackpressureServer(
        application,
        host="127.0.0.1",
        port=0,
        drain=drain,
        finish=finish,
        ready=lambda port: say("port", port),
        body_bytes_max=1024 * 1024,
        refuse_request=refuse_request,
        send_stall_seconds=float(sys.argv[1]),
    )
    server.run()
    say("ended")
