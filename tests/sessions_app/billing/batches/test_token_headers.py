"""Batches paid with a token."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from chat_app.models import Message
from payments_app.models import Hold
from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import new_event, wait_until
from tests.live_server import Person, quick_agent
from tests.sessions_app.billing.batches.turns import TURN, ask, decoded, earned, frames_of, usd

if TYPE_CHECKING:
    from pytest_django import Settings

    from agents_app.models import Agent


@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_an_unpaid_batch_is_refused_with_a_demand_and_leaves_nothing(
    web: httpx.Client, agent: Agent, path: str
) -> None:
    answer = ask(web, path)
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    body = answer.json()
    assert (body["status_code"], body["x402Version"]) == (402, 2)
    assert body["context"]["accepts"][0]["scheme"] == "token"
    assert body["context"]["accepts"][0]["amount"] == "0.25"
    header = decoded(answer.headers["PAYMENT-REQUIRED"])
    assert header["accepts"][0]["amount"] == str(usd("0.25").amount)
    assert not Message.objects.exists()
    assert not Response.objects.exists()
    assert not Hold.objects.exists()


@pytest.mark.parametrize("header", ["X-PAYMENT", "X-Payment-Token"])
def test_a_token_in_a_header_pays(web: httpx.Client, agent: Agent, token: str, header: str) -> None:
    answer = ask(web, **{header: token})
    assert answer.status_code == httpx.codes.OK, answer.text
    kinds = [frame["type"] for frame in answer.json()]
    assert "payment.required" not in kinds
    assert kinds.index("payment.accepted") < kinds.index("response.delta")
    assert decoded(answer.headers["PAYMENT-RESPONSE"])["success"] is True
    wait_until(lambda: earned(agent) == "0.25")


def test_a_stream_is_paid_likewise(web: httpx.Client, agent: Agent, token: str) -> None:
    answer = ask(web, "/uamp/stream", **{"X-PAYMENT": token})
    assert answer.status_code == httpx.codes.OK
    assert "PAYMENT-RESPONSE" in answer.headers
    assert "response.done" in answer.text
    wait_until(lambda: earned(agent) == "0.25")


def test_a_token_in_the_session_pays_too(web: httpx.Client, agent: Agent, token: str) -> None:
    turn = [{**TURN[0], "payment_token": token}, *TURN[1:]]
    answer = web.post("/uamp", json=turn)
    assert answer.status_code == httpx.codes.OK
    assert "response.done" in [frame["type"] for frame in answer.json()]
    wait_until(lambda: earned(agent) == "0.25")


@pytest.mark.parametrize(
    ("payment", "code"), [("nonsense", "token_invalid"), ("ptok_missing", "token_invalid")]
)
def test_a_bad_payment_is_named_and_nothing_runs(
    web: httpx.Client, agent: Agent, payment: str, code: str
) -> None:
    answer = ask(web, **{"X-PAYMENT": payment})
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    assert answer.json()["code"] == code
    assert not Response.objects.exists()


def test_a_token_that_is_used_up_is_refused_the_next_time(
    web: httpx.Client, agent: Agent, token: str
) -> None:
    for _ in range(4):
        assert ask(web, **{"X-PAYMENT": token}).status_code == httpx.codes.OK
    wait_until(lambda: earned(agent) == "1")
    answer = ask(web, **{"X-PAYMENT": token})
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    assert answer.json()["code"] == "insufficient_balance"


def test_a_later_turn_of_a_session_is_paid_anew_when_its_token_is_used_up(
    web: httpx.Client, agent: Agent, token: str, alice: Person
) -> None:
    small = issuance.issue(key="small", user_id=alice.user.pk, amount=usd("0.25"), expires_in=600)
    created = ask(web, **{"X-PAYMENT": small.token}).json()[0]
    assert created["type"] == "session.created"

    def again(**headers: str) -> httpx.Response:
        turn = [
            new_event("input.text", text="Again", session_id=created["session_id"]),
            new_event("response.create", session_id=created["session_id"]),
        ]
        return web.post("/uamp", json=turn, headers=headers)

    wait_until(lambda: earned(agent) == "0.25")
    refused = again()
    assert refused.status_code == httpx.codes.PAYMENT_REQUIRED
    assert "PAYMENT-REQUIRED" in refused.headers
    assert Response.objects.count() == 1
    answer = again(**{"X-PAYMENT": token})
    assert answer.status_code == httpx.codes.OK
    assert "PAYMENT-RESPONSE" in answer.headers
    assert "response.done" in [frame["type"] for frame in answer.json()]
    wait_until(lambda: earned(agent) == "0.5")


def test_a_batch_ends_where_a_payer_has_to_top_up(
    web: httpx.Client, agent: Agent, token: str, settings: Settings
) -> None:
    """The answer of the first request asks for more; the next one pays and receives the rest."""
    settings.UAMP_RESERVE_TOKENS = 10
    agent.options = {"script": "slow"}
    agent.pricing = {"output_per_1k": "10"}
    agent.save()
    turn = [{**TURN[0], "payment_token": token}, *TURN[1:]]
    first = web.post("/uamp", json=turn, timeout=30)
    frames = first.json()
    assert frames[-1]["type"] == "payment.required"
    assert frames[-1]["extra"] == {"action": "topup"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("sessions", [1, 2])
@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_a_batch_whose_second_turn_is_not_paid_has_the_answer_of_the_first(
    web: httpx.Client, agent: Agent, token: str, alice: Person, path: str, sessions: int
) -> None:
    agent.pricing = {"per_answer": "0.5"}
    agent.save()
    small = issuance.issue(key="small", user_id=alice.user.pk, amount=usd("0.6"), expires_in=600)
    batch = [
        new_event("session.create", uamp_version="1.0", session={"id": f"s{place}"}, agent="paid")
        for place in range(sessions)
    ]
    event_ids = []
    for place in range(2):
        name = {"session_id": f"s{min(place, sessions - 1)}"}
        batch += [
            new_event("input.text", text="Hello", **name),
            new_event("response.create", **name),
        ]
        event_ids.append(batch[-1]["event_id"])
    headers = {**alice.headers, "X-PAYMENT": small.token}
    answer = web.post(path, json=batch, headers=headers, timeout=20)
    assert answer.status_code == httpx.codes.OK, answer.text
    assert decoded(answer.headers["PAYMENT-RESPONSE"])["success"] is True
    frames = frames_of(answer)
    assert [frame["type"] for frame in frames].count("response.done") == 1
    (unpaid,) = [frame for frame in frames if frame["type"] == "response.error"]
    assert unpaid["error"]["code"] == "payment_required"
    assert unpaid["error"]["details"]["event_id"] == event_ids[1]
    demand = unpaid["error"]["details"]["payment"]
    assert (demand["code"], demand["amount"]) == ("insufficient_balance", "0.5")
    assert demand["accepts"][0]["scheme"] == "token"
    wait_until(lambda: earned(agent) == "0.5")
    assert Response.objects.count() == 1


@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
def test_nothing_of_a_batch_is_begun_after_a_turn_that_is_not_paid(
    web: httpx.Client, agent: Agent, alice: Person, path: str
) -> None:
    quick_agent("free", "echo")
    batch = []
    for name in ("paid", "free"):
        batch += [
            new_event("session.create", uamp_version="1.0", session={"id": name}, agent=name),
            new_event("input.text", text="Hello", session_id=name),
            new_event("response.create", session_id=name),
        ]
    answer = web.post(path, json=batch, headers=alice.headers)
    assert answer.status_code == httpx.codes.PAYMENT_REQUIRED
    assert not Response.objects.exists()
