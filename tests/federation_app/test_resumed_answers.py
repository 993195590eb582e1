"""Answers of a peer's agent over several connections, and their cancellation after a refusal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from federation_app.remote_agents import conversation
from tests.client import wait_until
from tests.federation_app.test_remote_agents import question_events
from tests.sessions_app.turn.delegation import answer_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.federation_app.foreign_server import Call, ForeignServer
    from tests.live_server import Dial, Person

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_broken_connection_is_reopened_and_a_missing_delta_is_requested(
    sage: ForeignServer, dial: Dial, alice: Person
) -> None:
    def lost_at_once(call: Call) -> None:
        call.receive()

    def lost_in_the_middle(call: Call) -> None:
        ask = call.receive()
        call.delta(ask["stream_id"], 0, "chunk", text="one ", offset=0)
        call.delta(ask["stream_id"], 0, "chunk", text="one ", offset=0)

    def with_a_gap(call: Call) -> None:
        stream_id = call.receive()["stream_id"]
        call.delta(stream_id, 2, "chunk", text="three", offset=8)
        conflict = call.receive()
        assert conflict["payload"] == {"code": "4.09", "expected": 1}
        call.delta(stream_id, 1, "patch", text="one two ")
        call.delta(stream_id, 2, "chunk", text="three", offset=8)
        (ask, *_) = call.server.received_of("ask")
        call.delta(stream_id, 3, "done", envelope=call.server.signed(ask, "one two three"))

    sage.calls += [lost_at_once, lost_in_the_middle, with_a_gap]
    assert answer_text(question_events(dial, alice, "sage")) == "one two three"
    first, second = sage.received_of("ask")
    assert first == second, "the question is the same, byte by byte"
    (again,) = sage.received_of("subscribe")
    assert json.loads(again["body"]["content"]) == {"after": 0}


def refused_after_a_delta(code: str) -> Callable[[Call], None]:
    """Return a call that refuses to repeat a missing delta."""

    def answer(call: Call) -> None:
        stream_id = call.receive()["stream_id"]
        call.delta(stream_id, 0, "chunk", text="one ", offset=0)
        call.delta(stream_id, 2, "chunk", text="three", offset=8)
        call.receive()
        call.send({"code": code, "message": "Later.", "retry_after": 1})

    return answer


def test_an_answer_is_resumed_once_its_peer_takes_requests_again(
    sage: ForeignServer, dial: Dial, alice: Person
) -> None:
    def resumed(call: Call) -> None:
        again = call.receive()
        assert (again["intent"], json.loads(again["body"]["content"])) == (
            "subscribe",
            {"after": 0},
        )
        (ask,) = call.server.received_of("ask")
        call.delta(ask["stream_id"], 1, "chunk", text="two", offset=4)
        call.delta(ask["stream_id"], 2, "done", envelope=call.server.signed(ask, "one two"))

    sage.calls += [refused_after_a_delta("4.29"), resumed]
    assert answer_text(question_events(dial, alice, "sage")) == "one two"


def test_an_answer_whose_deltas_are_refused_is_cancelled(
    sage: ForeignServer, dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[Any] = []

    async def cancel(question: Any, signed: Any) -> None:
        cancelled.append(signed.stream_id)

    monkeypatch.setattr(conversation, "_cancel", cancel)
    sage.calls.append(refused_after_a_delta("4.03"))
    error = question_events(dial, alice, "sage")[-1]
    assert error["type"] == "response.error"
    (ask,) = sage.received_of("ask")
    wait_until(lambda: cancelled == [ask["stream_id"]])
