"""What is charged is the price of what was delivered, over drawn prices, media and endings.

`DELIVERY_EXAMPLES` is the number of answers that are drawn; several run at once. A few suffice
beside the tables of test_delivered_is_paid.py and test_media_reservations.py; `make money-property`
draws 10,000.
"""

from __future__ import annotations

import base64
import itertools
import os
from dataclasses import dataclass, replace
from datetime import timedelta
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest
from django.db import connections
from django.db.models import F, Sum
from django.utils import timezone
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from agents_app.providers import scripts
from agents_app.tools.registry import ToolContext, tool
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from payments_app.models import Hold
from payments_app.money import Money
from payments_app.spending import approvals
from sessions_app.models import Response
from tests import factories
from tests.chat_app.contents.pdf_files import pdf, tree
from tests.client import TERMINAL, wait_until
from tests.journeys.paid_turns import again
from tests.live_server import person
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.threads import thread_pool
from upp import ErrorCode, ToolResultMessage, UPPError
from upp.conversation.turn import TokenUsage
from upp.providers.scripted import Call, Fail, Pause, Reasoning, Step, Text, Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from concurrent.futures import ThreadPoolExecutor

    from pytest_django import Settings

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec
    from tests.client import Frame, UampClient
    from tests.live_server import Dial
    from upp import LLMRequest

EXAMPLES = int(os.environ.get("DELIVERY_EXAMPLES", "6"))
# Answers mostly wait: for time-outs, for clients that stay silent, for the next sweep.
AT_ONCE: Final = 12
# The parts of a long run, which workers share.
PARTS: Final = 4 if EXAMPLES > 100 else 1
SCRIPT: Final = "delivery"
WORK: Final = "tests.sessions_app.billing.test_delivery_property.paid_work"
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
    """What is drawn: prices in smallest units, what the steps say and count, and what ends them.

    `call` is what leads to the second step. `ends_in` is the step that `ending` cuts off.
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


def _topped_up(drawn: Answer) -> Answer:
    """Return an answer whose count is beyond what is held, where that is its ending."""
    return replace(drawn, per_input=UNIT) if drawn.ending == "top-up" else drawn


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
        ["completed", "error", "time-out", "cancel", "silent client", "killed", "top-up"]
    ),
    ends_in=st.integers(1, 2),
).map(_topped_up)

_answers: dict[str, Answer] = {}
_numbers = itertools.count(1)


async def deliver(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Play the answer that was drawn for this agent."""
    drawn = _answers[agent.name]
    is_later = any(isinstance(one, ToolResultMessage) for one in request.messages)
    for is_thought, chars in drawn.later if is_later else drawn.pieces:
        yield Reasoning("x" * chars) if is_thought else Text("x" * chars)
    if _cut_in(drawn) == (2 if is_later else 1):
        if drawn.ending == "error":
            yield Fail(UPPError("It is down.", code=ErrorCode.PROVIDER_ERROR))
        yield Pause(60)
    read, written = _counted(drawn)
    yield Usage(TokenUsage(input_tokens=read, output_tokens=written, total_tokens=read + written))
    if drawn.call is not None and not is_later:
        yield Call(name="search" if drawn.call == "client" else paid_work.name, arguments={})


def _cut_in(drawn: Answer) -> int | None:
    """Return the step that is cut off; None where all steps end."""
    if drawn.ending not in {"error", "time-out", "cancel", "killed"}:
        return None
    # An answer whose process dies after a step goes on from its checkpoint.
    return 1 if drawn.ending == "killed" or drawn.call is None else drawn.ends_in


def _counted(drawn: Answer) -> tuple[int, int]:
    read, written = drawn.counted
    return (read + 10**6, written) if drawn.ending == "top-up" else (read, written)


@pytest.fixture
def unhurried(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let one person ask as often as a property does, and find a dead process soon."""
    settings.UAMP_RESPONSES_PER_MINUTE = 10**6
    settings.UAMP_SESSIONS_PER_MINUTE = 10**6
    settings.UAMP_REQUESTS_PER_MINUTE = 10**6
    settings.UAMP_EVENTS_PER_MINUTE = 10**6
    settings.UAMP_SWEEP_SECONDS = 0.3
    settings.UAMP_FLUSH_MS = 50
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, WORK]
    monkeypatch.setitem(scripts.SCRIPTS, SCRIPT, deliver)


def _play(drawn: Answer, dial: Dial) -> tuple[Agent, Response]:
    number = next(_numbers)
    who = again(partial(person, f"asker{number}"))
    agent = again(partial(_agent, drawn, f"agent{number}"))
    again(partial(rich, who, "1000000"))
    if drawn.ending != "top-up":
        again(partial(approvals.approve, who.user.pk, agent.pk, usd("900000")))
    client = dial(who)
    try:
        client.create_session(agent=agent.name, session={"tools": [SEARCH]})
        client.send("input.text", text="Hello")
        if drawn.medium is not None:
            client.send(f"input.{drawn.medium}", **MEDIA[drawn.medium][0])
        client.send("response.create")
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
    if drawn.ending == "time-out" or (drawn.ending == "silent client" and drawn.call == "client"):
        # Less than that, and a busy machine ends an answer before the step that is to be cut off.
        agent.max_seconds = 6
    agent.save()
    return agent


def _hear(drawn: Answer, agent: str, client: UampClient) -> None:
    """Hear an answer to its end, and do what ends it."""
    demands = 0
    received = {0: 0, 1: 0, 2: 0}
    # Nothing is there to be cut off before the answer was created.
    step, pieces = 0, {0: (), 1: drawn.pieces, 2: drawn.later}
    while True:
        if _cut_in(drawn) == step and received[step] >= sum(chars for _, chars in pieces[step]):
            _cut_off(drawn, agent, client, received[step])
            received[step] = -(10**6)
        frame = client.receive()
        if frame["type"] in TERMINAL:
            return
        if frame["type"] == "response.created":
            step = 1
        received[step] += _chars(frame)
        if frame["type"] == "tool.call" and drawn.ending != "silent client":
            client.send("tool.result", call_id=frame["call_id"], result="1")
        if frame["type"] == "payment.required":
            demands += 1
            wallet = {"scheme": "balance", "network": "uamp"}
            if demands == 1 and (frame.get("extra") or {}).get("action") != "topup":
                client.send("payment.submit", response_id=frame["response_id"], payment=wallet)
            else:
                client.send("response.cancel")
        if "tool_call" in (frame.get("delta") or {}) or frame["type"] == "tool.call":
            step = 2


def _cut_off(drawn: Answer, agent: str, client: UampClient, chars: int) -> None:
    if drawn.ending == "cancel":
        client.send("response.cancel")
    if drawn.ending == "killed":
        _kill(agent, chars)


def _chars(frame: Frame) -> int:
    if frame["type"] == "thinking":
        return len(frame["content"])
    return len((frame.get("delta") or {}).get("text") or "")


def _kill(agent: str, chars: int) -> None:
    """Let another process seem to have taken an answer over and died, once its row has all."""
    rows = Response.objects.filter(agent__name=agent)

    def is_flushed() -> bool:
        row = again(rows.first)
        return row is not None and _stored(row) >= chars

    wait_until(is_flushed)
    past = timezone.now() - timedelta(seconds=1)
    again(partial(rows.update, process="gone", fence=F("fence") + 1, lease_until=past))


# --- What it costs ---


def _wrong_with(drawn: Answer, agent: Agent, response: Response) -> list[str]:
    holds = Hold.objects.filter(response_id=response.pk)
    held = holds.aggregate(all=Sum("amount"))["all"] or 0
    charged = ledger_rows.balance(ledger.account_of_agent(agent.pk).id).posted.amount
    least, most = (min(amount, held) for amount in _due(drawn, response))
    wrong = []
    if not least - 2 <= charged <= most + 2:
        wrong.append(f"{response.status} {response.error}: {least} to {most} due, {charged} paid")
    if charged > held:
        wrong.append(f"{charged} charged, {held} held")
    if holds.filter(state="active").exists():
        wrong.append("something is still held")
    return wrong


def _due(drawn: Answer, response: Response) -> tuple[int, int]:
    """Return the least and the most that was delivered is worth."""
    cut = _cut_in(drawn)
    has_called = drawn.call is not None and cut != 1
    steps = 0 if cut == 1 else 2 if has_called and cut is None else 1
    if drawn.ending == "silent client" and drawn.call == "client":
        steps = 1
    if drawn.ending == "top-up":
        # The first count is beyond what is held: nothing after it is run.
        steps, has_called = 1, False
    read, written = _counted(drawn)
    said = sum(chars for _, chars in (drawn.pieces if cut == 1 else drawn.later)) if cut else 0
    if drawn.ending == "time-out" and cut == 2:
        # On a busy machine the time may be up before the second step says something.
        said = min(said, max(0, _stored(response) - sum(chars for _, chars in drawn.pieces)))
    sent = cut is not None and (said or drawn.ending == "cancel")
    estimates = [-(-said // 4) if sent else 0] * 2
    about = _read_by_estimate(drawn, steps) if sent else (0, 0)
    calls = [drawn.per_call if has_called and drawn.call == "server" else 0] * 2
    if not said:
        # A cancel may come before the inference was sent, and before the tool ran.
        about = (0, about[1])
        calls[0] = 0 if drawn.ending == "cancel" else calls[0]
    is_delivered = bool(has_called or said or (drawn.pieces and cut != 1))
    has_begun = is_delivered or bool(steps)
    if response.status == "failed" and not is_delivered:
        return 0, 0
    found = []
    for about_read, wrote, called in zip(about, estimates, calls, strict=True):
        output = steps * written + wrote
        total = Fraction((steps * read + about_read) * drawn.per_input + output * drawn.per_output)
        with_sound = about_read and cut == 1 and drawn.medium == "audio"
        if with_sound and drawn.per_sound is not None:
            total += MEDIA["audio"][1] * (drawn.per_sound - drawn.per_input)
        found.append(total / 1000 + called + _of_answer(drawn, response, output, has_begun))
    return int(min(found)), int(max(found)) + 1


def _stored(response: Response) -> int:
    return sum(len(i.get("text", "") + i.get("thinking", "")) for i in response.output or [])


def _read_by_estimate(drawn: Answer, steps: int) -> tuple[int, int]:
    if steps:
        before = sum(_counted(drawn))
        return before, before + WORDS
    medium = MEDIA[drawn.medium][1] if drawn.medium else 0
    return medium, medium + WORDS


def _of_answer(drawn: Answer, response: Response, output: int, has_begun: bool) -> int:  # noqa: FBT001 a fact
    if response.status == "completed":
        return drawn.per_answer
    if not has_begun:
        return 0
    if drawn.expected_tokens is None:
        return drawn.per_answer
    return drawn.per_answer * min(output, drawn.expected_tokens) // drawn.expected_tokens


def _usual(**fields: Any) -> Answer:
    usual: dict[str, Any] = {
        "per_answer": UNIT, "per_input": UNIT, "per_output": UNIT, "per_sound": 2 * UNIT,
        "per_call": UNIT // 2, "expected_tokens": None, "medium": "audio",
        "pieces": ((False, 40), (True, 20)), "later": ((False, 30),), "counted": (700, 20),
        "call": "server", "ending": "completed", "ends_in": 2,
    }  # fmt: skip
    return Answer(**usual | fields)


ENDINGS = [
    _usual(),
    _usual(ending="error"),
    _usual(ending="time-out", call="client"),
    _usual(ending="cancel", expected_tokens=100),
    _usual(ending="silent client", call="client"),
    _usual(ending="killed"),
    _usual(ending="killed", pieces=()),
    _usual(ending="top-up"),
    _usual(ending="error", ends_in=1, pieces=(), medium="file"),
]


@pytest.mark.parametrize(
    "part",
    [pytest.param(part, marks=[pytest.mark.long] if PARTS > 1 else []) for part in range(PARTS)],
)
@pytest.mark.usefixtures("unhurried")
@pytest.mark.timeout(max(300, EXAMPLES * 10))
def test_what_is_charged_is_the_price_of_what_was_delivered(dial: Dial, part: int) -> None:
    examples = len(range(part, EXAMPLES, PARTS))
    with thread_pool(AT_ONCE) as pool:
        _all_right(pool, dial, ENDINGS)

        @hypothesis_settings(
            max_examples=-(-examples // AT_ONCE),
            deadline=None,
            database=None,
            # To make an example smaller takes longer than to read it.
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
        )
        @given(st.lists(answers, min_size=AT_ONCE, max_size=AT_ONCE))
        def holds(drawn: list[Answer]) -> None:
            _all_right(pool, dial, drawn)

        holds()
    assert again(ledger.audit).clean


def _all_right(pool: ThreadPoolExecutor, dial: Dial, drawn: list[Answer]) -> None:
    for one, wrong in zip(drawn, pool.map(partial(_wrong_after, dial), drawn), strict=True):
        assert wrong == [], one


def _wrong_after(dial: Dial, drawn: Answer) -> list[str]:
    try:
        agent, response = _play(drawn, dial)
        return again(partial(_wrong_with, drawn, agent, response))
    finally:
        connections.close_all()
