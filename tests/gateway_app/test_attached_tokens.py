"""A payment token pays only for those who presented it, also in shared conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest

from sessions_app.models import Session
from tests.client import wait_until
from tests.gateway_app.a2a.calls import text_message
from tests.sessions_app.billing.paid_agents import clean, earned, priced, token_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.live_server import Person

PAID: Final = httpx.codes.OK
DEMANDED: Final = httpx.codes.PAYMENT_REQUIRED


def _a2a(web: httpx.Client, conversation: str, headers: dict[str, str]) -> httpx.Response:
    message = text_message("Hello", **({"contextId": conversation} if conversation else {}))
    body = {"jsonrpc": "2.0", "id": "1", "method": "SendMessage", "params": {"message": message}}
    return web.post("/agents/dear/a2a", json=body, headers=headers)


def _responses(web: httpx.Client, conversation: str, headers: dict[str, str]) -> httpx.Response:
    body = {
        "input": "Hello",
        "store": True,
        **({"previous_response_id": conversation} if conversation else {}),
    }
    return web.post("/agents/dear/responses", json=body, headers=headers)


def _batch(web: httpx.Client, conversation: str, headers: dict[str, str]) -> httpx.Response:
    events: list[dict[str, Any]] = [
        {"type": "input.text", "text": "Hello"},
        {"type": "response.create"},
    ]
    if conversation:
        events = [{**event, "session_id": conversation} for event in events]
    else:
        events.insert(0, {"type": "session.create", "uamp_version": "1.0", "session": {}})
    return web.post("/agents/dear/uamp", json=events, headers=headers)


def _context(answer: httpx.Response) -> str:
    return str(answer.json()["result"]["task"]["contextId"])


def _response(answer: httpx.Response) -> str:
    return str(answer.json()["id"])


def _session(_: httpx.Response) -> str:
    return Session.objects.get().wire_id


CONVERSATIONS: Final[dict[str, Any]] = {
    "a2a": (_a2a, _context),
    "responses": (_responses, _response),
    "uamp": (_batch, _session),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("place", ["X-Payment-Token", "query"])
@pytest.mark.parametrize(("ask", "known_by"), CONVERSATIONS.values(), ids=CONVERSATIONS)
def test_entering_a_visitors_conversation_does_not_spend_their_token(
    web: httpx.Client,
    alice: Person,
    ask: Callable[[httpx.Client, str, dict[str, str]], httpx.Response],
    known_by: Callable[[httpx.Response], str],
    place: str,
) -> None:
    agent, token = priced("dear", per_answer="0.2"), token_of(alice)
    by_header = {"X-Payment-Token": token} if place != "query" else {}
    web.params = web.params if by_header else web.params.set("payment_token", token)
    conversation = known_by(ask(web, "", by_header).raise_for_status())
    web.params = httpx.QueryParams()
    assert earned(agent) == "0.2"

    stranger = ask(web, conversation, {})
    assert "payment" in stranger.text, stranger.text
    assert stranger.status_code in {PAID, DEMANDED}
    assert earned(agent) == "0.2"

    payer = ask(web, conversation, {"X-Payment-Token": token})
    assert payer.status_code == PAID, payer.text
    wait_until(lambda: earned(agent) == "0.4")
    assert not Session.objects.exclude(payment_token_id="").exists()
    if stranger.status_code == DEMANDED:
        assert clean()
