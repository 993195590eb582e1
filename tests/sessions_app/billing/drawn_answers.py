"""Generated answers: their prices, their steps, and how they end."""

from __future__ import annotations

import base64
import itertools
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from django.db.models import F
from django.utils import timezone
from hypothesis import strategies as st

from agents_app.tools.registry import ToolContext, tool
from payments_app.money import Money
from payments_app.spending import approvals
from sessions_app.models import Response
from tests import factories
from tests.chat_app.contents.pdf_files import pdf, tree
from tests.client import TERMINAL, wait_until
from tests.journeys.paid_turns import again
from tests.live_server import person
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from upp import ErrorCode, ToolResultMessage, UPPError
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Call, Fail, Pause, Reasoning, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.client import Frame, UampClient
    from tests.live_server import Dial
    from upp import LLMRequest

SCRIPT: Final = "delivery"
WORK: Final = "tests.sessions_app.billing.drawn_answers.paid_work"
UNIT: Final = 10**9
SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}
SOUND = b"\xff\xf3\x14\xc0" + bytes(20)
PDF = pdf(tree(3))
# The fields of an input, and what a step that is cut off reads of it, by estimate.
MEDIA: dict[str, tuple[dict[str, Any], int]] = {
    "audio": ({"audio": base64.b64encode(SOUND * 500).decode(), "format": "mp3"}, 384),
    "file": (
        {
            "file": base64.b64encode(PDF).decode(),
            "filename": "a.pdf",
            "mime_type": "application/pdf",
        },
        4_500,
    ),
    "image": ({"image": base64.b64encode(factories.png()).decode(), "format": "png"}, 258),
}
WORDS: Final = 500
"""More tokens than the question, its labels, the tools and a result have, by estimate."""


@tool(long_running=False)
def paid_work(_context: ToolContext) -> str:
    """Work."""
    return "done"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """A drawn answer: prices in smallest units, the steps' texts and counts, and its end.

    `call` is what leads to the second step. `ends_in` is the step that `ending` cuts off.
    `max_tokens` is what is reserved for output; the model does not keep to it.
    """

    per_answer: int
    per_input: int
    per_output: int
    per_sound: int | None
    per_call: int
    expected_tokens: int | None
    medium: str | None
    pieces: tuple[tuple[bool, int], ...]
    later: tuple[tuple[bool, int], ...]
    counted: tuple[int, int]
    call: str | None
    ending: str
    ends_in: int
    max_tokens: int | None


def _adapted(drawn: Answer) -> Answer:
    """Return an answer that ends as it says."""
    if drawn.ending == "top-up":
        # Its count is beyond what is held, and nothing else is.
        return replace(drawn, per_input=UNIT, max_tokens=None)
    if drawn.ending == "top-up in a text":
        return replace(drawn, per_output=UNIT, pieces=((False, 80), *drawn.pieces), max_tokens=10)
    if drawn.ending == "killed" and not (drawn.call and drawn.later):
        return replace(drawn, ends_in=1)
    return drawn


_price = st.one_of(st.just(0), st.integers(1, UNIT), st.sampled_from([1, 999, UNIT]))
_pieces = st.lists(st.tuples(st.booleans(), st.integers(1, 60)), max_size=3).map(tuple)
answers = st.builds(
    Answer,
    per_answer=_price,
    per_input=_price,
    per_output=_price,
    per_sound=st.one_of(st.none(), _price),
    per_call=_price,
    expected_tokens=st.one_of(st.none(), st.integers(1, 100)),
    medium=st.sampled_from([None, *MEDIA]),
    pieces=_pieces,
    later=_pieces,
    counted=st.tuples(st.integers(1, 9_000), st.integers(1, 300)),
    call=st.sampled_from([None, "client", "server"]),
    ending=st.sampled_from(
        [
            "completed", "error", "time-out", "cancel", "silent client", "killed", "top-up",
            "top-up in a text",
        ]
    ),
    ends_in=st.integers(1, 2),
    max_tokens=st.one_of(st.none(), st.integers(1, 20)),
).map(_adapted)  # fmt: skip

_answers: dict[str, Answer] = {}
# The agents whose answer another process goes on with.
_taken_over: set[str] = set()
_numbers = itertools.count(1)


async def deliver(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Play the answer that was drawn for this agent."""
    drawn = _answers[agent.name]
    is_later = any(isinstance(message, ToolResultMessage) for message in request.messages)
    for is_thought, chars in drawn.later if is_later else drawn.pieces:
        yield Reasoning("x" * chars) if is_thought else Text("x" * chars)
    if cut_in(drawn) == (2 if is_later else 1) and agent.name not in _taken_over:
        if drawn.ending == "error":
            yield Fail(UPPError("It is down.", code=ErrorCode.PROVIDER_ERROR))
        yield Pause(60)
    input_tokens, output_tokens = counted(drawn)
    yield Usage(
        TokenUsage(
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            total_tokens=input_tokens + output_tokens,
        )
    )
    if drawn.call is not None and not is_later:
        yield Call(name="search" if drawn.call == "client" else paid_work.name, arguments={})


def cut_in(drawn: Answer) -> int | None:
    """Return the step that is cut off; None where all steps end."""
    if drawn.ending == "top-up in a text":
        return 1
    if drawn.ending not in {"error", "time-out", "cancel", "killed"}:
        return None
    return 1 if drawn.call is None else drawn.ends_in


def is_continued(drawn: Answer) -> bool:
    """Return whether an answer goes on elsewhere: its process died after its first step."""
    return drawn.ending == "killed" and cut_in(drawn) == 2


def counted(drawn: Answer) -> tuple[int, int]:
    input_tokens, output_tokens = drawn.counted
    return (
        (input_tokens + 10**6, output_tokens)
        if drawn.ending == "top-up"
        else (input_tokens, output_tokens)
    )


def play(drawn: Answer, dial: Dial) -> tuple[Agent, Response]:
    number = next(_numbers)
    who = again(partial(person, f"asker{number}"))
    agent = again(partial(_agent, drawn, f"agent{number}"))
    again(partial(rich, who, "1000000"))
    if not drawn.ending.startswith("top-up"):
        again(partial(approvals.approve, who.user.pk, agent.pk, usd("900000")))
    client = dial(who)
    try:
        client.create_session(agent=agent.name, session={"tools": [SEARCH]})
        client.send("input.text", text="Hello")
        if drawn.medium is not None:
            client.send(f"input.{drawn.medium}", **MEDIA[drawn.medium][0])
        limit = {} if drawn.max_tokens is None else {"max_tokens": drawn.max_tokens}
        client.send("response.create", response=limit)
        _hear(drawn, agent.name, client)
    finally:
        client.close()
    response = Response.objects.filter(agent=agent)
    wait_until(lambda: not again(response.filter(status__in=Response.LIVE).exists))
    return agent, again(response.get)


def _agent(drawn: Answer, name: str) -> Agent:
    pricing: dict[str, Any] = {
        "per_answer": str(Money(drawn.per_answer)),
        "input_per_1k": str(Money(drawn.per_input)),
        "output_per_1k": str(Money(drawn.per_output)),
        "tools": {paid_work.name: str(Money(drawn.per_call))},
    }
    if drawn.per_sound is not None:
        pricing["audio_input_per_1k"] = str(Money(drawn.per_sound))
    if drawn.expected_tokens is not None:
        pricing |= {"unfinished": "share", "expected_tokens": drawn.expected_tokens}
    _answers[name] = drawn
    agent = priced(name, SCRIPT, **pricing)
    agent.tools = [paid_work.name]
    if drawn.ending in {"time-out", "top-up in a text"} or (
        drawn.ending == "silent client" and drawn.call == "client"
    ):
        # Less than that, and a busy machine ends an answer before the step that is to be cut off.
        agent.max_seconds = 6
    agent.save()
    return agent


def _hear(drawn: Answer, agent: str, client: UampClient) -> None:
    """Hear an answer to its end, and do what ends it."""
    demands, is_unpaid = 0, False
    received = {0: 0, 1: 0, 2: 0}
    # Nothing is there to be cut off before the answer was created.
    step, pieces = 0, {0: (), 1: drawn.pieces, 2: drawn.later}
    while True:
        if cut_in(drawn) == step and received[step] >= sum(chars for _, chars in pieces[step]):
            _cut_off(drawn, agent, client, received[step])
            received[step] = -(10**6)
        frame = client.receive()
        if frame["type"] in TERMINAL:
            return
        if frame["type"] == "response.created":
            step = 1
        received[step] += _chars(frame)
        assert not (is_unpaid and _chars(frame)), "text came after the demand for its payment"
        if frame["type"] == "tool.call" and drawn.ending != "silent client":
            client.send("tool.result", call_id=frame["call_id"], result="1")
        if frame["type"] == "payment.required":
            demands += 1
            wallet = {"scheme": "balance", "network": "uamp"}
            if demands == 1 and (frame.get("extra") or {}).get("action") != "topup":
                client.send("payment.submit", response_id=frame["response_id"], payment=wallet)
            else:
                is_unpaid = True
                client.send("response.cancel")
        if "tool_call" in (frame.get("delta") or {}) or frame["type"] == "tool.call":
            step = 2


def _cut_off(drawn: Answer, agent: str, client: UampClient, chars: int) -> None:
    if drawn.ending == "cancel":
        client.send("response.cancel")
    if drawn.ending == "killed":
        if is_continued(drawn):
            _taken_over.add(agent)
        _kill(agent, chars + (sum(chars for _, chars in drawn.pieces) if cut_in(drawn) == 2 else 0))


def _chars(frame: Frame) -> int:
    if frame["type"] == "thinking":
        return len(frame["content"])
    return len((frame.get("delta") or {}).get("text") or "")


def _kill(agent: str, chars: int) -> None:
    """Let another process seem to have taken an answer over and died, once its row has all."""
    rows = Response.objects.filter(agent__name=agent)

    def is_flushed() -> bool:
        row = again(rows.first)
        return row is not None and stored(row) >= chars

    wait_until(is_flushed)
    past = timezone.now() - timedelta(seconds=1)
    again(partial(rows.update, process="gone", fence=F("fence") + 1, lease_until=past))


def stored(response: Response) -> int:
    return sum(len(i.get("text", "") + i.get("thinking", "")) for i in response.output or [])
