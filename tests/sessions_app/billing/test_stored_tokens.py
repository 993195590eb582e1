"""Inputs and messages that wait in the database hold no secret of a payment token."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sessions_app.models import PendingInput, QueuedTurn, Session
from tests.client import TERMINAL, new_event, open_stream, text_of
from tests.live_server import Dial, Person, quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced, token_of

if TYPE_CHECKING:
    import httpx


def post(
    web: httpx.Client, who: Person | None, session_id: str, type_: str, **fields: Any
) -> httpx.Response:
    """Send an event by HTTP."""
    headers = {} if who is None else dict(who.headers)
    if session_id:
        headers["X-Session-ID"] = session_id
    return web.post("/events", json=new_event(type_, **fields), headers=headers)


@pytest.mark.parametrize("is_visitor", [False, True])
@pytest.mark.parametrize("is_good", [True, False])
def test_the_token_of_an_input_pays_for_its_turn_and_its_secret_is_not_stored(
    web: httpx.Client, alice: Person, *, is_visitor: bool, is_good: bool
) -> None:
    agent = priced("paid", per_answer="1")
    token = token_of(alice) if is_good else "ptok_unknown"
    who = None if is_visitor else alice
    opened = post(web, who, "", "session.create", session={}, agent="paid")
    session_id = opened.headers["X-Session-ID"]
    headers = {"X-Session-ID": session_id, **({} if who is None else who.headers)}
    with open_stream(web, "GET", "/events/stream", headers=headers) as stream:
        fields = {"text": "Hello", "payment_token": token, "event_id": "input_1"}
        for _ in range(2):
            # The repeat has no effect.
            assert post(web, who, session_id, "input.text", **fields).status_code == 202
        (payload,) = PendingInput.objects.values_list("payload", flat=True)
        assert token not in str(payload)
        assert post(web, who, session_id, "response.create").is_success
        frames = [event.data for event in stream.until("payment.required", *TERMINAL)]
    if is_good:
        assert text_of(frames) == "Hello"
        assert earned(agent) == "1"
    else:
        # The refusal is sent when money is due.
        assert frames[-1]["type"] == "payment.required"
        errors = [frame for frame in frames if frame["type"] == "payment.error"]
        assert [error["code"] for error in errors] == ["token_invalid"]
    assert clean()


def test_a_queued_message_pays_with_its_token_and_holds_no_secret(
    dial: Dial, alice: Person, bob: Person
) -> None:
    quick_agent("endless", "slow", words=2000)
    agent = priced("paid", per_answer="1")
    chat = shared_chat(alice, bob, agents=("endless", "paid"))
    token = token_of(alice)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@endless talk")
    client.until("response.delta")
    client.send("input.text", text="@paid Hello", payment_token=token)
    client.send("response.create", queue=True)
    client.until("queue.updated")
    (inputs,) = QueuedTurn.objects.values_list("inputs", flat=True)
    assert token not in str(inputs)
    assert inputs[0]["text"] == "@paid Hello"
    assert Session.objects.filter(chat=chat).exclude(payment_token_id="").exists()
    client.send("response.cancel")
    while not text_of(client.until(*TERMINAL)).endswith("Hello"):
        pass
    assert earned(agent) == "1"
