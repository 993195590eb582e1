"""Middleware: order, recovery, and the log."""

import logging as standard_logging
import re
from dataclasses import replace
from typing import Any

import pytest

from tests.uap.agents import message_lines, model
from uap import AgentState, GenerateResult, Middleware, MiddlewareContext, agent
from uap.middleware import logging
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail

START = AgentState.initial()
DOWN = UPPError("down", code=ErrorCode.PROVIDER_ERROR)


class Recorder(Middleware):
    """Notes the calls of its hooks."""

    def __init__(self, name: str, log: list[str]) -> None:
        self.name = name
        self.log = log

    async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
        """Note."""
        self.log.append(f"{self.name}.before")
        return await super().before(context)

    async def after(self, context: MiddlewareContext, result: GenerateResult) -> GenerateResult:
        """Note."""
        self.log.append(f"{self.name}.after")
        return await super().after(context, result)

    async def on_error(self, context: MiddlewareContext, error: Exception) -> GenerateResult | None:
        """Note."""
        self.log.append(f"{self.name}.on_error {error}")
        return await super().on_error(context, error)


class Recovers(Recorder):
    """Gives a result in place of any error."""

    async def on_error(self, context: MiddlewareContext, error: Exception) -> GenerateResult | None:
        """Give one."""
        await super().on_error(context, error)
        return await agent(model=model("spare")).generate("x", START)


@pytest.mark.parametrize("streaming", [False, True])
async def test_before_runs_in_order_and_after_in_reverse(*, streaming: bool) -> None:
    """UAP §9.2: middleware executes in order for before, reverse order for after."""
    log: list[str] = []
    bot = agent(model=model("x"), middleware=[Recorder("first", log), Recorder("second", log)])
    await (bot.stream("go", START) if streaming else bot.generate("go", START))

    assert log == ["first.before", "second.before", "second.after", "first.after"]


async def test_before_may_change_what_goes_in_and_after_what_comes_out() -> None:
    """UAP §9.1: before returns a context, after a result; §6.3: withContext prunes."""

    class Prunes(Middleware):
        async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
            context.metadata["had"] = len(context.state.messages)
            return replace(context, state=context.state.with_context(context.state.messages[-2:]))

        async def after(self, context: MiddlewareContext, result: GenerateResult) -> GenerateResult:
            state = result.state.with_metadata("had", context.metadata["had"])
            return replace(result, state=state)

    bot = agent(model=model("a", "b", "c"), middleware=[Prunes()])
    state = START
    for word in ("one", "two", "three"):
        state = (await bot.ask(word, state)).state

    assert message_lines(state.messages) == ["user two", "assistant b", "user three", "assistant c"]
    assert state.metadata["had"] == 4


async def test_hooks_may_be_left_out_and_be_sync() -> None:
    """UAP §9.1: before, after and onError are optional."""
    log: list[str] = []

    class Short:
        name = "short"

        def before(self, context: MiddlewareContext) -> MiddlewareContext:
            log.append("before")
            return replace(context, state=context.state.with_metadata("seen", value=True))

        def after(self, _context: MiddlewareContext, _result: GenerateResult) -> None:
            log.append("after")

    class Empty:
        name = "empty"

    middleware: list[Any] = [Empty(), Short()]
    bot = agent(model=model("x"), middleware=middleware)
    result = await bot.generate("go", AgentState.initial())

    assert log == ["before", "after"]
    assert result.state.metadata["seen"] is True
    broken = agent(model=model([Fail(DOWN)]), middleware=middleware)
    with pytest.raises(UPPError):
        await broken.generate("go", AgentState.initial())


async def test_an_error_comes_out_in_reverse_until_one_gives_a_result() -> None:
    """UAP §9.1: onError may return a result; those outside see it as any other."""
    log: list[str] = []
    middleware = [Recorder("first", log), Recovers("second", log), Recorder("third", log)]
    result = await agent(model=model([Fail(DOWN)]), middleware=middleware).generate("go", START)

    assert result.turn.response.text == "spare"
    assert log == [
        *("first.before", "second.before", "third.before"),
        *("third.on_error down", "second.on_error down", "first.after"),
    ]


async def test_an_error_without_a_recovery_is_raised() -> None:
    """UAP §9.1: onError may return nothing."""
    log: list[str] = []
    middleware = [Recorder("first", log), Recorder("second", log)]
    with pytest.raises(UPPError) as raised:
        await agent(model=model([Fail(DOWN)]), middleware=middleware).generate("go", START)

    assert raised.value is DOWN
    assert log[2:] == ["second.on_error down", "first.on_error down"]


async def test_errors_of_middleware_are_reported_to_it_and_to_those_outside() -> None:
    log: list[str] = []

    class Broken(Recorder):
        async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
            raise ValueError(f"before {context.state.step}")

    class BrokenAfter(Recorder):
        async def after(self, context: MiddlewareContext, result: GenerateResult) -> GenerateResult:
            raise ValueError(f"after {context.state.step} {result.state.step}")

    for broken in (Broken("second", log), BrokenAfter("second", log)):
        middleware = [Recovers("first", log), broken, Recorder("third", log)]
        await agent(model=model("x"), middleware=middleware).generate("go", START)

    assert log == [
        *("first.before", "second.on_error before 0", "first.on_error before 0"),
        *("first.before", "second.before", "third.before", "third.after"),
        *("second.on_error after 0 1", "first.on_error after 0 1"),
    ]


async def test_the_error_hook_gets_the_context_that_before_made() -> None:
    seen: list[AgentState] = []

    class Marks(Middleware):
        async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
            return replace(context, state=context.state.with_metadata("x", 1))

        async def on_error(
            self, context: MiddlewareContext, error: Exception
        ) -> GenerateResult | None:
            seen.append(context.state)
            return await super().on_error(context, error)

    with pytest.raises(UPPError):
        await agent(model=model([Fail(DOWN)]), middleware=[Marks(), Recorder("", [])]).generate(
            "go", START
        )
    assert seen[0].metadata == {"x": 1}


async def test_the_log_has_a_line_for_the_begin_and_the_end() -> None:
    """UAP §9.3: logging() with its defaults."""
    lines: list[str] = []
    bot = agent(model=model("secret"), middleware=[logging(logger=lines.append)])
    await bot.generate("hidden", START)

    assert lines[0] == f"[UAP:INFO] Execution started: agent={bot.id}"
    expected = r"\[UAP:INFO\] Execution completed in \d+ms: steps=1 tools=0 tokens=2"
    assert re.fullmatch(expected, lines[1])
    assert len(lines) == 2


async def test_the_log_may_hold_messages_and_no_times() -> None:
    """UAP §9.3: level, includeMessages and includeTiming."""
    lines: list[str] = []
    log = logging(level="debug", logger=lines.append, include_messages=True, include_timing=False)
    bot = agent(model=model("an answer"), middleware=[log])
    await bot.generate("a question", START)

    assert lines[0].startswith("[UAP:DEBUG] Execution started: agent=")
    assert '"a question"' in lines[0]
    assert lines[1].startswith("[UAP:DEBUG] Execution completed: steps=1 tools=0 tokens=4 output=")
    assert '"an answer"' in lines[1]


async def test_the_log_reports_failures_and_lets_them_pass(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """UAP §9.3: without a logger, lines go to the standard one."""
    caplog.set_level(standard_logging.DEBUG, logger="uap")
    bot = agent(
        model=model([Fail(DOWN)]), middleware=[logging(level="warning", include_timing=False)]
    )
    with pytest.raises(UPPError):
        await bot.generate("go", START)

    assert [(record.levelname, record.message) for record in caplog.records] == [
        ("WARNING", f"[UAP:WARNING] Execution started: agent={bot.id}"),
        ("ERROR", "[UAP:ERROR] Execution failed: UPPError: down"),
    ]


async def test_the_log_goes_without_times_when_other_middleware_drops_the_metadata() -> None:
    class Forgets(Middleware):
        async def before(self, context: MiddlewareContext) -> MiddlewareContext | None:
            return replace(context, metadata={})

    lines: list[str] = []
    middleware = [logging(logger=lines.append), Forgets()]
    await agent(model=model("x"), middleware=middleware).generate("go", START)

    assert lines[1] == "[UAP:INFO] Execution completed: steps=1 tools=0 tokens=2"


def test_a_level_that_does_not_exist_is_refused() -> None:
    with pytest.raises(ValueError, match="'loud'"):
        logging(level="loud")
