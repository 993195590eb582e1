"""Runs that fail, and the safe words that report it."""

import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING

import msgspec
import pytest

from agents_app.runtime.agent_run import AgentError, run_agent
from agents_app.selectors import AgentSpec
from tests.agents_app.run_context import Broker, Media
from tests.agents_app.runtime.runs.scripted_runs import (
    Play,
    failure,
    keep_in,
    output,
    request_of,
    run,
    with_tools,
)
from upp import ErrorCode, LLMRequest, UPPError
from upp.providers.scripted import Call, Fail, Step, Text

if TYPE_CHECKING:
    from uamp.events import Event


async def test_too_many_rounds_are_reported(play: Callable[[Play], AgentSpec]) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Call(name="short", arguments={})

    spec = with_tools(play(script), "short", max_steps=2)
    error = await failure(spec, request_of())
    assert error.code == "too_many_steps"
    assert error.message == "bot used its 2 tool rounds without coming to an answer."


async def test_an_agent_that_wrote_its_tokens_takes_no_other_step(
    play: Callable[[Play], AgentSpec],
) -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("one two three")
        if len(request.messages) < 5:
            yield Call(name="short", arguments={})

    spec = with_tools(play(script), "short", max_output_tokens=6)
    error = await failure(spec, request_of())
    assert error.code == "too_many_steps"
    assert "tokens without coming to an answer; 6 are allowed." in error.message
    enough = with_tools(spec, "short", max_output_tokens=1000)
    events, end = await run(enough, request_of())
    assert (end.steps, end.usage.output_tokens) == (3, 9)
    assert output(events)
    # What its last process had written counts too.
    again = await failure(enough, msgspec.structs.replace(request_of(), written=995))
    assert "wrote 1001 tokens" in again.message


@pytest.mark.parametrize("code", list(ErrorCode))
async def test_a_failure_is_reported_in_safe_words(
    play: Callable[[Play], AgentSpec], code: ErrorCode, caplog: pytest.LogCaptureFixture
) -> None:
    async def script(_request: LLMRequest) -> AsyncIterator[Step]:
        yield Fail(UPPError("key sk-1 at http://inside", code=code, retry_after=3))

    with caplog.at_level(logging.WARNING):
        error = await failure(play(script), request_of())
    assert "sk-1" not in str(error)
    assert "inside" not in str(error)
    assert "sk-1" in caplog.text
    assert error.retry_after == 3
    expected = {
        ErrorCode.RATE_LIMITED: "rate_limit_exceeded",
        ErrorCode.CONTEXT_LENGTH_EXCEEDED: "context_length_exceeded",
        ErrorCode.CONTENT_FILTERED: "content_filtered",
        ErrorCode.TIMEOUT: "timeout",
        ErrorCode.CANCELLED: "interrupted",
    }
    assert error.code == expected.get(code, "provider_error")


async def test_the_fail_agent_says_half_and_fails() -> None:
    events: list[Event] = []
    spec = AgentSpec(id="a", name="fail")
    with pytest.raises(AgentError) as caught:
        await run_agent(spec, request_of(), keep_in(events), broker=Broker(), media=Media())
    assert len(events) > 3
    assert caught.value.code == "provider_error"


@pytest.mark.parametrize("kind", ["connected"])
async def test_only_hosted_agents_run_here(kind: str) -> None:
    error = await failure(AgentSpec(id="a", name="far", kind=kind), request_of())
    assert error.code == "agent_offline"
