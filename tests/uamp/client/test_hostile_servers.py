"""Hostile servers and members have no power over a person at a command line."""

from __future__ import annotations

import asyncio
import base64
import io
import json
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import click
import pytest
from websockets.asyncio.server import Server, ServerConnection, serve
from websockets.datastructures import Headers
from websockets.http11 import Request, Response

from uamp.client.transports.frames import UpgradeRefused
from uamp.client.transports.web_socket import WebSocketTransport
from uamp.command_line import completion, fetching
from uamp.command_line.files import file_name
from uamp.command_line.options import payment_question
from uamp.events import PaymentRequired
from uamp.events.payments import PaymentRequirements

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TITLES = ["Work", "Work, today: a+b", "W`id`", "W$(id)", "W*", "W;id", "~W", "-oW", "W\nid", "W'"]


def test_a_shell_is_offered_no_title_that_it_would_run(monkeypatch: pytest.MonkeyPatch) -> None:
    async def chats(limit: int) -> AsyncIterator[Any]:
        for title in TITLES[:limit]:
            yield SimpleNamespace(title=title)

    @asynccontextmanager
    async def client_of(*_: object, **__: object) -> AsyncIterator[Any]:
        yield SimpleNamespace(chats=chats)

    monkeypatch.setattr(completion, "client_of", client_of)
    context = click.Context(completion.completion)
    offered = completion.complete_chats(context, context.command.params[0], "")
    assert [item.value for item in offered] == TITLES[:2]


def test_a_price_is_printed_without_control_characters() -> None:
    requirements = PaymentRequirements(amount="0.01\x1b[2K", currency="US\x07D", schemes=())
    question = payment_question(PaymentRequired(response_id="r", requirements=requirements))
    assert question == "The answer costs 0.01\ufffd[2K US\ufffdD. Pay?"


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Work", "Work.ndjson"),
        ("/etc/passwd", "_etc_passwd.ndjson"),
        ("../../x", "_.._x.ndjson"),
        ("...", "chat.ndjson"),
    ],
)
def test_an_export_is_written_to_the_current_folder(title: str, name: str) -> None:
    assert file_name(title) == name


def test_a_download_names_so_many_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetching, "_KIDS_MAX", 3)

    def header(number: int) -> bytes:
        value = json.dumps({"alg": "EdDSA", "kid": f"key-{number}", "typ": "x"})
        return base64.urlsafe_b64encode(value.encode()).rstrip(b"=") + b".eyJ9.c2ln\n"

    async def chunks() -> AsyncIterator[bytes]:
        for number in range(10):
            yield header(number)

    @asynccontextmanager
    async def stream(_path: str) -> AsyncIterator[Any]:
        yield SimpleNamespace(aiter_bytes=chunks)

    rest: Any = SimpleNamespace(stream=stream)
    kids = asyncio.run(fetching._download(rest, "/file", io.BytesIO()))
    assert kids == {"key-0", "key-1", "key-2"}


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_redirect_leads_to_no_other_server(status: int) -> None:
    received: list[str] = []

    async def listen(socket: ServerConnection) -> None:
        received.extend([str(frame) async for frame in socket])

    def origin(server: Server) -> str:
        return f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"

    async def connect_to_redirect() -> None:
        async with serve(listen, "127.0.0.1", 0) as other:
            location = f"{origin(other).replace('http', 'ws', 1)}/uamp"

            def redirect(_socket: ServerConnection, _request: Request) -> Response:
                return Response(status, "Elsewhere", Headers(Location=location))

            async with serve(listen, "127.0.0.1", 0, process_request=redirect) as server:
                with pytest.raises(UpgradeRefused) as refused:
                    await WebSocketTransport.open(f"{origin(server)}/uamp", {}, seconds=10)
                assert refused.value.status == status
            # The other server does accept connections.
            socket = await WebSocketTransport.open(f"{origin(other)}/uamp", {}, seconds=10)
            await socket.send("{}", None)
            await socket.close()

    asyncio.run(connect_to_redirect())
    assert received == ["{}"]
