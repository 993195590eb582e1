"""One generated paid turn over a real socket.

A generated turn has prices, the model's output and bill, the client's requests, the payers who
agreed, and the available money. `play` runs it; `turn_costs.wrong_with` returns the errors in its
payments.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from django.db import OperationalError, transaction
from hypothesis import strategies as st

from agents_app import sponsorships
from agents_app.models import Agent
from agents_app.tools.registry import tool
from chat_app.members.agreed_prices import prices_in
from payments_app import services as ledger
from payments_app.money import Money
from payments_app.spending import approvals
from payments_app.tokens import issuance
from sessions_app.models import Response
from tests.client import TERMINAL, WAIT_SECONDS, Frame, wait_until
from tests.live_server import person, shared_chat
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Call, Pause, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_app.selectors import AgentSpec
    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.live_server import Dial, Person
    from upp import LLMRequest

T = TypeVar("T")

SCRIPT: Final = "drawn"
UNIT: Final = 10**9
OWNER_SECONDS: Final = 1.0
TOOL_SECONDS: Final = 0.1
WORK: Final = "tests.journeys.paid_turns.work"
_numbers = itertools.count(1)


class _Work:
    """The state of an agent's tool: whether it has begun, and may end."""

    def __init__(self) -> None:
        self.begun, self.over = threading.Event(), threading.Event()


_plans: dict[str, Turn] = {}
tasks: defaultdict[str, _Work] = defaultdict(_Work)


@dataclass(frozen=True, kw_only=True)
class Turn:
    """A generated turn; prices and amounts are in the smallest units.

    `stop_after` is the number of pieces after which its client cancels, `payments` the number of
    demands it pays before it cancels instead. With a `tool_price`, the agent finally calls a tool,
    and the client cancels while that runs.
    """

    per_answer: int
    per_input: int
    per_output: int
    expected_tokens: int | None
    pieces: tuple[int, ...]
    letter: str
    billed: tuple[int, int]
    max_tokens: Any
    in_extensions: bool
    stop_after: int | None
    consent: str
    allowed: int
    has: int
    payments: int
    tool_price: int | None = None


_price = st.one_of(
    st.just(0), st.integers(1, 3 * UNIT), st.sampled_from([1, 999, UNIT // 100, UNIT])
)
_sane_tokens = st.one_of(st.none(), st.integers(1, 4_000))
_any_tokens = st.one_of(
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False, allow_infinity=False),
    st.booleans(),
    st.sampled_from(["1", "-1", [], {}]),
)
turns = st.builds(
    Turn,
    per_answer=_price,
    per_input=_price,
    per_output=_price,
    expected_tokens=st.one_of(st.none(), st.integers(1, 500)),
    pieces=st.lists(st.integers(1, 900), max_size=5).map(tuple),
    letter=st.sampled_from("xé漢👍"),
    billed=st.tuples(st.integers(0, 3_000), st.integers(0, 3_000)),
    max_tokens=st.one_of(_sane_tokens, _sane_tokens, _any_tokens),
    in_extensions=st.booleans(),
    stop_after=st.one_of(st.none(), st.none(), st.integers(0, 3)),
    consent=st.sampled_from(["asked", "approval", "token", "owner", "sponsor", "unasked_sponsor"]),
    allowed=st.integers(1, 30 * UNIT),
    has=st.sampled_from([0, UNIT // 1000, UNIT, 20 * UNIT, 1000 * UNIT]),
    payments=st.integers(0, 4),
    tool_price=st.one_of(st.none(), st.none(), _price),
)


async def drawn(agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Write the pieces generated for this agent's turn, and bill as generated."""
    turn = _plans[agent.name]
    for number, chars in enumerate(turn.pieces):
        if number == turn.stop_after:
            yield Pause(60)
        yield Text(turn.letter * chars)
    if turn.stop_after == len(turn.pieces):
        yield Pause(60)
    input_tokens, output_tokens = turn.billed
    yield Usage(
        TokenUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
        )
    )
    if turn.tool_price is not None:
        yield Call(name=work.name, arguments={"agent": agent.name})


@tool(long_running=False)
def work(agent: str) -> str:
    """Work until the turn is over."""
    tasks[agent].begun.set()
    tasks[agent].over.wait(WAIT_SECONDS)
    return "done"


@dataclass
class Played:
    """The outcome of a turn."""

    turn: Turn
    agent: Agent
    asker: Person
    owner: Person
    frames: list[Frame]
    refused: bool


def play(turn: Turn, dial: Dial) -> Played:
    """Run a turn to its end."""
    played, fields = again(partial(_prepared, turn))
    client = dial(played.asker)
    try:
        played.refused = _Asker(turn, client, played.frames, tasks[played.agent.name]).ask(fields)
    finally:
        client.close()
        tasks[played.agent.name].over.set()
    live = Response.objects.filter(agent=played.agent, status__in=Response.LIVE)
    wait_until(lambda: not again(live.exists))
    return played


def again(work: Callable[[], T]) -> T:
    """Retry work that in-memory SQLite rejects while the server writes."""
    for _ in range(20):
        try:
            return work()
        except OperationalError:
            time.sleep(0.05)
    return work()


@transaction.atomic
def _prepared(turn: Turn) -> tuple[Played, dict[str, Any]]:
    """Create the people, money, agent and agreements; return the fields of the session."""
    number = next(_numbers)
    asker, owner = person(f"asker{number}"), person(f"owner{number}")
    agent = _agent(turn, f"agent{number}", owner)
    for who in (asker, owner):
        _fund(who, turn.has)
    chat = _agreed(turn, agent, asker, owner)
    fields: dict[str, Any] = {"chat": chat.pk} if chat else {"agent": agent.name}
    if turn.consent == "token" and turn.has:
        fields["payment_token"] = _token(turn, asker, number)
    return Played(turn, agent, asker, owner, [], refused=False), fields


class _Asker:
    """The client of a turn: asks, pays as often as generated, and cancels when generated to."""

    def __init__(self, turn: Turn, client: UampClient, frames: list[Frame], done: _Work) -> None:
        self._turn, self._client, self._frames = turn, client, frames
        self._work = done
        self._has_called = False
        self._stop_at = None if turn.stop_after is None else sum(turn.pieces[: turn.stop_after])
        self._chars = 0
        self._paid = 0

    def ask(self, fields: dict[str, Any]) -> bool:
        """Ask until the turn ends; return whether it was refused."""
        turn, client = self._turn, self._client
        client.create_session(**fields)
        client.settle()
        options: dict[str, Any] = {}
        if turn.max_tokens is not None and turn.in_extensions:
            client.send("session.update", session={"extensions": {"max_tokens": turn.max_tokens}})
            self._frames += client.until("session.updated", "session.error")
            if self._frames[-1]["type"] == "session.error":
                return True
        elif turn.max_tokens is not None:
            options["max_tokens"] = turn.max_tokens
        client.send("input.text", text="Hello")
        client.send("response.create", **({"response": options} if options else {}))
        while not self._has_ended():
            self._hear()
        return bool(self._frames[-1]["type"] == "session.error")

    def _has_ended(self) -> bool:
        if not self._frames or self._frames[-1]["type"] not in _ENDS:
            return False
        # A refused payment or cancellation that crossed the end does not mean a refused turn.
        code = (self._frames[-1].get("error") or {}).get("code")
        return code not in {"payment_not_due", "nothing_to_cancel"}

    def _hear(self) -> None:
        of_owner = self._turn.consent == "owner"
        if self._has_called and self._work.begun.wait(TOOL_SECONDS):
            self._has_called = False
            self._client.send("response.cancel")
        seconds = TOOL_SECONDS if self._has_called else WAIT_SECONDS
        try:
            frame = self._client.receive(OWNER_SECONDS if of_owner else seconds)
        except TimeoutError:
            if self._has_called and not of_owner:
                return
            if not of_owner:
                raise
            # The owner was asked but has too little money; the asker is not notified.
            self._client.send("response.cancel")
            return
        self._frames.append(frame)
        self._react(frame)

    def _react(self, frame: Frame) -> None:
        if frame["type"] == "response.delta":
            self._chars += len(frame["delta"].get("text") or "")
            self._has_called |= "tool_call" in frame["delta"]
        if frame["type"] in {"response.created", "response.delta"}:
            if self._chars == self._stop_at:
                self._client.send("response.cancel")
        elif frame["type"] == "payment.required" and self._paid < self._turn.payments:
            self._paid += 1
            self._client.send(
                "payment.submit",
                response_id=frame["response_id"],
                payment={"scheme": "balance", "network": "uamp"},
            )
        elif frame["type"] in {"payment.required", "payment.error"}:
            self._client.send("response.cancel")


def _agent(turn: Turn, name: str, owner: Person) -> Agent:
    pricing: dict[str, Any] = {
        "per_answer": _text(turn.per_answer),
        "input_per_1k": _text(turn.per_input),
        "output_per_1k": _text(turn.per_output),
    }
    if turn.expected_tokens is not None:
        pricing |= {"unfinished": "share", "expected_tokens": turn.expected_tokens}
    if turn.tool_price is not None:
        pricing["tools"] = {work.name: _text(turn.tool_price)}
    _plans[name] = turn
    return Agent.objects.create(
        name=name,
        is_public=True,
        owner=owner.user,
        options={"script": SCRIPT},
        pricing=pricing,
        tools=[] if turn.tool_price is None else [work.name],
    )


def _agreed(turn: Turn, agent: Agent, asker: Person, owner: Person) -> Chat | None:
    """Make a payer agree to pay; return the chat if the chat's rule is used."""
    if turn.consent == "approval":
        approvals.approve(asker.user.pk, agent.pk, Money(turn.allowed))
    if turn.consent == "sponsor":
        sponsorships.sponsor(agent.pk, owner.user, {"total": _text(turn.allowed)})
    if turn.consent not in {"owner", "sponsor", "unasked_sponsor"}:
        return None
    chat = shared_chat(owner, asker, agents=(agent.name,), trigger="always")
    # Owners who did not choose to pay do not pay.
    chosen = turn.consent == "owner" and turn.allowed % 2
    chat.payer = turn.consent.removeprefix("unasked_")
    chat.payer_user = owner.user if chosen else None
    chat.agreed_prices = prices_in(chat.pk)
    chat.save()
    return chat


def _fund(who: Person, amount: int) -> None:
    if amount:
        ledger.top_up(
            key=f"fund:{who.user.pk}",
            account=ledger.account_of_user(who.user.pk).id,
            amount=Money(amount),
            provider="tests",
            external_id=f"fund:{who.user.pk}",
        )


def _token(turn: Turn, asker: Person, number: int) -> str:
    amount = Money(min(turn.allowed, turn.has))
    issued = issuance.issue(
        key=f"token:{number}", user_id=asker.user.pk, amount=amount, expires_in=600
    )
    return issued.token


def _text(units: int) -> str:
    return str(Money(units))


_ENDS: Final = {*TERMINAL, "session.error"}
