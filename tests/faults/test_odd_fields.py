"""Odd numbers and choices in every field that a client can send, on every transport, for money.

After each example: no error of the server's own, no demand of nothing or less, no answer that was
delivered and not paid, and a ledger that adds up. `ODD_EXAMPLES` is how many examples each
transport gets (`make odd-fields` asks for many more).
"""

from __future__ import annotations

import os
import uuid
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

import httpx
import pytest
from django.conf import settings as configured
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from websockets.exceptions import ConnectionClosed

from payments_app import services as ledger
from payments_app.models import Hold, Transfer
from payments_app.money import Money
from payments_app.spending import approvals
from payments_app.tokens import issuance
from sessions_app.models import PaymentRequest, Response
from tests.client import TERMINAL, Frame, UampClient, new_event, wait_until
from tests.faults.odd_bodies import RestPlace, rest_places
from tests.faults.odd_fields import Place, client_places, encode, odd_numbers, odd_values
from tests.live_server import Dial, Person, quick_agent, shared_chat
from uamp import ResponseState

if TYPE_CHECKING:
    from pytest_django import Settings

    from agents_app.models import Agent

# Fewer on PostgreSQL: the code that reads the fields is the same.
IN_THE_SUITE: Final = (
    20 if os.environ.get("SHORT_RUN") else 40 if os.environ.get("TEST_DATABASE_URL") else 80
)
NUMBER: Final = int(os.environ.get("ODD_EXAMPLES", str(IN_THE_SUITE)))
PLACES: Final = client_places()
# A field that a price depends on is tried as often as all others together.
PRICED: Final = [place for place in PLACES if place.name.endswith("max_tokens")]
EXAMPLES: Final = st.one_of(
    st.tuples(st.sampled_from(PRICED), odd_numbers()),
    st.tuples(st.sampled_from(PLACES), odd_values()),
)
PRICE: Final = Money.parse("0.25", "USD")
NO_ONE_S_FAULT: Final = frozenset({"internal_error", "unavailable"})


@pytest.fixture(autouse=True)
def _no_hurry(settings: Settings) -> None:
    """Let the examples come as fast as they can."""
    for name in dir(configured):
        if name.startswith("UAMP_") and name.endswith(("_PER_MINUTE", "_BURST", "_PER_HOUR")):
            setattr(settings, name, 10**6)
    settings.UAMP_AUTO_RESPOND_MS = 0


@pytest.fixture
def agent(demo: object) -> Agent:
    """Give an agent with a price for the answer and for each token."""
    agent = quick_agent("paid", "echo")
    agent.pricing = {"per_answer": str(PRICE), "output_per_1k": "10", "input_per_1k": "1"}
    agent.save()
    return agent


@pytest.fixture
def payer(alice: Person, agent: Agent) -> Person:
    """Give a person with money who lets the agent take what an answer costs."""
    ledger.top_up(
        key="seed",
        account=ledger.account_of_user(alice.user.pk).id,
        amount=Money.parse("1000000", "USD"),
        provider="tests",
        external_id="seed",
    )
    approvals.approve(alice.user.pk, agent.pk, Money.parse("50", "USD"))
    return alice


# --- What must hold ---


@dataclass
class Books:
    """Looks after each example at what is new in the rows."""

    seen: set[str] = field(default_factory=set)

    def check(self) -> None:
        """Wait until nothing runs, then compare the answers with what was paid for them."""
        wait_until(lambda: not live_responses())
        new = Response.objects.exclude(pk__in=self.seen)
        for row in new:
            self.seen.add(row.pk)
            if row.status == ResponseState.FAILED or not row.output:
                continue
            paid = sum(Transfer.objects.filter(response_id=row.pk).values_list("amount", flat=True))
            least = PRICE.amount if row.status == ResponseState.COMPLETED else 1
            assert paid >= least, (row.pk, row.status, paid)
        assert not Hold.objects.filter(state="active").exists()
        assert ledger.audit().clean


def live_responses() -> list[str]:
    """Return the responses that have not ended."""
    return list(Response.objects.filter(status__in=Response.LIVE).values_list("pk", flat=True))


def is_due(response_ids: list[str]) -> bool:
    """Return whether one of these responses is to be paid first; what is asked is never nothing."""
    due = PaymentRequest.objects.filter(response__in=response_ids)
    assert all(row.amount > 0 for row in due)
    return due.exists()


def sound(frames: list[Frame]) -> None:
    """Check frames of the server: no error of its own, no demand of nothing or less."""
    for frame in frames:
        error = frame.get("error") or {}
        assert error.get("code") not in NO_ONE_S_FAULT, frame
        assert frame.get("code") not in NO_ONE_S_FAULT, frame
        if frame["type"] == "payment.required":
            assert Decimal(frame["requirements"]["amount"]) > 0, frame


def answered(answer: httpx.Response) -> Any:
    """Check an HTTP answer and return its JSON, if it has any."""
    assert answer.status_code < 500, (answer.status_code, answer.text)
    assert "html" not in answer.headers.get("Content-Type", ""), answer.text
    body: Any = answer.json() if "json" in answer.headers.get("Content-Type", "") else None
    if answer.status_code == httpx.codes.PAYMENT_REQUIRED and "context" in body:
        assert Decimal(body["context"]["accepts"][0]["amount"]) > 0, body
    return body


def run_examples(show: Any, examples: st.SearchStrategy[Any] = EXAMPLES) -> Books:
    """Call `show(place, value)` for many examples, and check the books after each."""
    books = Books()

    @hypothesis_settings(
        max_examples=NUMBER,
        # The suite repeats its examples; a long run looks further.
        derandomize=NUMBER == IN_THE_SUITE,
        deadline=None,
        database=None,
        # One example is one request: there is little to make smaller, and each try is a turn.
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(examples)
    def run_example(example: tuple[Any, Any]) -> None:
        show(*example)
        books.check()

    run_example()
    return books


def odd_event(place: Place, value: Any) -> dict[str, Any]:
    """Return the event with the odd field, as a client would send it."""
    event = {"event_id": str(uuid.uuid4()), **place.with_value(value)}
    if place.type == "session.create":
        event.setdefault("uamp_version", "1.0")
        event.setdefault("session", {})
        event["agent"] = "paid"
    return event


# --- The transports ---


def to_the_end(client: UampClient) -> list[Frame]:
    """Return the server's events until nothing of this socket runs; dues are not paid."""
    frames = client.settle()
    while True:
        open_ids = {f["response_id"] for f in frames if f["type"] == "response.created"}
        open_ids -= {f["response_id"] for f in frames if f["type"] in TERMINAL}
        if not open_ids:
            return frames
        for frame in frames:
            if frame["type"] == "payment.required" and frame["response_id"] in open_ids:
                client.send("response.cancel", response_id=frame["response_id"])
        frames += client.until(*TERMINAL, "payment.required")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("sender", ["payer", "visitor"])
def test_a_socket(dial: Dial, payer: Person, sender: str) -> None:
    def show(place: Place, value: Any) -> None:
        client = dial(payer if sender == "payer" else None)
        try:
            if place.type != "session.create" or value is None:
                client.create_session(agent="paid")
            if place.type == "response.create":
                client.send("input.text", text="Say something.")
            client.send_raw(encode(odd_event(place, value)))
            sound(to_the_end(client))
            client.send("input.text", text="Say something that costs a little more.")
            client.send("response.create")
            sound(to_the_end(client))
        except ConnectionClosed:
            assert client.socket.close_code not in {1006, 1011}
        finally:
            client.close()

    assert run_examples(show).seen


@pytest.mark.sampled(2)
@pytest.mark.parametrize("path", ["/uamp", "/uamp/stream"])
@pytest.mark.parametrize("payment_state", ["paid", "unpaid"])
def test_a_batch(web: httpx.Client, payer: Person, path: str, payment_state: str) -> None:
    token = issuance.issue(
        key="token", user_id=payer.user.pk, amount=Money.parse("50000", "USD"), expires_in=3600
    )
    headers = {"Content-Type": "application/json"}
    if payment_state == "paid":
        headers["X-Payment-Token"] = token.token

    def show(place: Place, value: Any) -> None:
        opened = [new_event("session.create", uamp_version="1.0", session={}, agent="paid")]
        turn = [new_event("input.text", text="Say it."), new_event("response.create")]
        odd = [odd_event(place, value)]
        events = [*odd, *turn] if place.type == "session.create" else [*opened, *odd, *turn]
        if place.type == "response.create":
            events = [*opened, turn[0], *odd]
        body = answered(web.post(path, content=encode(events), headers=headers))
        if isinstance(body, list):
            sound(body)

    # Without a payment no response is so much as begun.
    assert bool(run_examples(show).seen) is (payment_state == "paid")


def test_events_over_http(web: httpx.Client, payer: Person) -> None:
    headers = {"Content-Type": "application/json", **payer.headers}

    def post(event: dict[str, Any], session_id: str = "") -> Any:
        all_headers = {**headers, "X-Session-ID": session_id} if session_id else headers
        body = answered(web.post("/events", content=encode(event), headers=all_headers))
        sound(body.get("events", []))
        return body

    def show(place: Place, value: Any) -> None:
        opened = post(new_event("session.create", uamp_version="1.0", session={}, agent="paid"))
        session_id = opened["session_id"]
        if place.type == "response.create":
            post(new_event("input.text", text="Say something."), session_id)
        post(odd_event(place, value), session_id)
        post(new_event("input.text", text="Say it."), session_id)
        post(new_event("response.create"), session_id)
        wait_until(lambda: not (live := live_responses()) or is_due(live))
        if live_responses():
            # More than the payer allowed: asked for, and not paid.
            post(new_event("response.cancel"), session_id)
        post(new_event("session.end"), session_id)

    assert run_examples(show).seen


# --- REST ---


def test_rest(web: httpx.Client, payer: Person) -> None:
    chat = shared_chat(payer, agents=("echo", "paid"))
    token = issuance.issue(
        key="token", user_id=payer.user.pk, amount=Money.parse("5", "USD"), expires_in=3600
    )
    ids = {"chat_id": str(chat.pk), "token_id": token.id, "agent": "paid"}

    def show(place: RestPlace, value: Any) -> None:
        path, query, body = place.request(value, ids)
        content = None if body is None else encode(body)
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid.uuid4())}
        answered(
            web.request(
                place.method,
                path,
                params=query,
                content=content,
                headers={**headers, **payer.headers},
            )
        )

    run_examples(show, st.tuples(st.sampled_from(rest_places()), odd_values()))
