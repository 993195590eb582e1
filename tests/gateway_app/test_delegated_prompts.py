"""Demands of work that a prompt over ACP delegated (see `test_delegated_demands`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest

from tests.client import wait_until
from tests.gateway_app.acp.conftest import acp
from tests.gateway_app.acp.http_client import HttpAcpClient
from tests.gateway_app.acp.test_one_shot import call as rpc
from tests.gateway_app.test_delegated_demands import (
    CALL,
    NOTHING,
    TASK,
    ended,
    gated,
    paid,
    payer_token,
    requested,
)
from tests.sessions_app.billing.paid_agents import clean, earned, rich
from tests.sessions_app.turn.delegation import task_for

if TYPE_CHECKING:
    import httpx

    from agents_app.models import Agent
    from tests.conftest import ServerAddress
    from tests.gateway_app.acp.socket_client import Acp
    from tests.live_server import Person

__all__ = ["acp", "gated", "paid"]

UNPAID: Final = -32402


def prompt(text: str) -> list[dict[str, str]]:
    """Return the content of a prompt."""
    return [{"type": "text", "text": text}]


def test_a_posted_prompt_is_paid_for_the_work_that_it_delegated(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    opened = rpc(web, "boss", "session/new", alice, cwd="/", mcpServers=[])
    params = {"sessionId": opened["result"]["sessionId"], "prompt": prompt(TASK)}
    refused = rpc(web, "boss", "session/prompt", alice, **params)["error"]
    assert refused["code"] == UNPAID
    data = refused["data"]
    assert (data["agent"], data["amount"], data["currency"]) == ("paid", "0.25", "USD")
    assert data["response_id"] == requested("boss").pk
    token = payer_token(alice)
    done = rpc(web, "boss", "session/prompt", alice, payment_token=token, **params)["result"]
    assert (done["stopReason"], done["content"]) == ("end_turn", "received: done")
    wait_until(clean)
    assert earned(paid) == "0.25"


def test_a_submitted_conversation_is_refused_for_the_work_that_it_delegated(
    web: httpx.Client, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    messages = [{"role": "user", "content": TASK}]
    refused = rpc(web, "boss", "prompt/submit", alice, messages=messages)["error"]
    assert refused["code"] == UNPAID
    data = refused["data"]
    assert (data["demand"]["agent"], data["charged"]) == ("paid", NOTHING)
    assert data["response_id"] == requested("boss").pk
    # It could not be returned to.
    assert ended()
    assert clean()


def test_a_socket_pays_for_the_work_that_its_prompt_delegated(
    web: httpx.Client, acp: Acp, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    client = acp("boss", alice)
    params = {"sessionId": client.new_session(), "prompt": prompt(TASK)}
    refused = client.call("session/prompt", **params)["error"]
    assert (refused["code"], refused["data"]["agent"]) == (UNPAID, "paid")
    token = payer_token(alice)
    done = client.call("session/prompt", payment_token=token, **params)["result"]
    assert (done["stopReason"], client.text()) == ("end_turn", "received: done")
    wait_until(clean)
    assert earned(paid) == "0.25"


def test_a_stream_pays_for_the_work_that_its_prompt_delegated(
    web: httpx.Client, demo: ServerAddress, alice: Person, paid: Agent
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/boss", json={"up_to": "1"}, headers=alice.headers)
    with HttpAcpClient(demo, "boss", alice) as client:
        session_id = client.initialize().new_session()
        refused = client.prompt(session_id, prompt=prompt(TASK))["error"]
        assert (refused["code"], refused["data"]["agent"]) == (UNPAID, "paid")
        token = payer_token(alice)
        paid_for = client.prompt(session_id, prompt=prompt(TASK), payment_token=token)["result"]
        assert (paid_for["stopReason"], client.text()) == ("end_turn", "received: done")
    wait_until(clean)
    assert earned(paid) == "0.25"


@pytest.mark.usefixtures("gated")
def test_a_socket_is_asked_to_allow_what_delegated_work_calls(
    web: httpx.Client, acp: Acp, alice: Person
) -> None:
    rich(alice)
    web.put("/api/payments/approvals/asker", json={"up_to": "1"}, headers=alice.headers)
    client = acp("chief", alice)
    client.allows = "reject"
    session_id = client.new_session()
    done = client.call(
        "session/prompt", sessionId=session_id, prompt=prompt(task_for("asker", CALL))
    )
    assert done["result"]["stopReason"] == "end_turn"
    assert "was not allowed by alice" in client.text()
