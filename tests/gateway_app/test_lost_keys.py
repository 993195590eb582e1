"""A key that is replaced while its request is handled: the request is refused, and is no defect.

The check of principals dismisses the connections of such a key between any two steps of a request.
Here it does so after each kind of event that a request consists of.
"""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import ConnectionClosed

from sessions_app.handlers import table
from sessions_app.transports.http_exchange import HttpExchange
from tests.gateway_app.test_disabled_agents import TRANSPORTS
from tests.live_server import quick_agent, shared_chat

if TYPE_CHECKING:
    import httpx

    from sessions_app.connection.client_connection import ClientConnection
    from sessions_app.records import OpenSession
    from tests.conftest import ServerAddress
    from tests.live_server import Person

STEPS = ("session.create", "input.text", "response.create", "a known session")
# Sockets of UAMP are dismissed like this in tests of their own.
NAMES = sorted(TRANSPORTS.keys() - {"UAMP WebSocket"})
SOCKETS = ("ACP", "Realtime GA", "Realtime beta")


def lose_after(step: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Dismiss each connection after the step, as the check of principals does."""
    receive, attach = table.receive, HttpExchange.attach

    async def receive_and_lose(connection: ClientConnection, raw: Any) -> None:
        await receive(connection, raw)
        if json.loads(raw)["type"] == step:
            connection.dismiss(connection.principal)

    async def attach_and_lose(exchange: HttpExchange, session: OpenSession | None) -> None:
        await attach(exchange, session)
        exchange.connection.dismiss(exchange.connection.principal)

    monkeypatch.setattr(table, "receive", receive_and_lose)
    if step == "a known session":
        monkeypatch.setattr(HttpExchange, "attach", attach_and_lose)


def answers(server: ServerAddress, web: httpx.Client, headers: dict[str, str]) -> dict[str, str]:
    """Ask over every transport; return the answers, without those of sockets that were closed."""
    texts = {}
    for name in NAMES:
        with suppress(ConnectionClosed):
            texts[name] = TRANSPORTS[name](server, web, headers)
    return texts


@pytest.mark.sampled
@pytest.mark.parametrize("where", ["alone", "in a chat"])
@pytest.mark.parametrize("step", STEPS)
def test_no_request_fails_because_its_key_was_replaced(
    demo: ServerAddress,
    web: httpx.Client,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    step: str,
    where: str,
) -> None:
    quick_agent("helper", "echo")
    headers = dict(alice.headers)
    if where == "in a chat":
        headers["X-Chat-Id"] = shared_chat(alice, agents=("helper",)).pk
    if step == "a known session":
        answers(demo, web, headers)
    caplog.clear()
    lose_after(step, monkeypatch)
    texts = answers(demo, web, headers)
    wrong = {name: text for name, text in texts.items() if "internal" in text.lower()}
    failed = [row.getMessage() for row in caplog.records if row.levelno >= logging.ERROR]
    assert (wrong, failed) == ({}, [])
    assert len(texts) >= len(NAMES) - len(SOCKETS)
