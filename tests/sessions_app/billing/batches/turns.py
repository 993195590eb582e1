"""A visitor's turn, and shorthands to read its answer."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.money import Money
from tests.client import new_event

if TYPE_CHECKING:
    import httpx

    from agents_app.models import Agent

TURN = [
    new_event("session.create", uamp_version="1.0", session={}, agent="paid"),
    new_event("input.text", text="Hello"),
    new_event("response.create"),
]


def usd(text: str) -> Money:
    """Return an amount of dollars."""
    return Money.parse(text, "USD")


def ask(web: httpx.Client, path: str = "/uamp", **headers: str) -> httpx.Response:
    """Send a turn of a visitor."""
    return web.post(path, json=TURN, headers=headers)


def decoded(header: str) -> dict[str, Any]:
    """Return the contents of a header of x402."""
    value: dict[str, Any] = json.loads(base64.b64decode(header))
    return value


def earned(agent: Agent) -> str:
    """Return an agent's earnings."""
    return str(ledger_rows.balance(ledger.account_of_agent(agent.pk).id).posted)


def frames_of(answer: httpx.Response) -> list[dict[str, Any]]:
    """Return the events of an array or of a stream."""
    if answer.headers["Content-Type"].startswith("application/json"):
        frames: list[dict[str, Any]] = answer.json()
        return frames
    lines = [line.removeprefix("data: ") for line in answer.text.splitlines()]
    return [json.loads(line) for line in lines if line.startswith("{")]
