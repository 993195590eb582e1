"""Short tools that hang, leave or come in crowds: each has a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.runtime import short_tools
from agents_app.runtime.short_tools import run_here
from agents_app.tools.registry import ServerTool, ToolContext, ToolOutcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

MORE_THAN_THE_LOOPS_OWN = min(32, (os.cpu_count() or 1) + 4) + 1


def short(run: Callable[[ToolContext, dict[str, Any]], ToolOutcome]) -> ServerTool:
    """Return a short tool that does this."""
    return ServerTool(name="odd", description="", parameters={}, run=run, long_running=False)


@pytest.fixture
def hanging() -> Iterator[ServerTool]:
    """Give a tool that hangs for as long as the test."""
    over = threading.Event()

    def hang(_context: ToolContext, _arguments: dict[str, Any]) -> ToolOutcome:
        over.wait(30)
        return ToolOutcome(result="late")

    yield short(hang)
    over.set()


async def test_tools_that_hang_take_no_other_tools_place(
    hanging: ServerTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_tools, "SHORT_TOOL_SECONDS", 0.1)
    calls = [run_here(hanging, f"call_{n}", {}) for n in range(MORE_THAN_THE_LOOPS_OWN)]
    assert {outcome.result for outcome in await asyncio.gather(*calls)} == {
        "The tool took too long."
    }
    # Names are looked up and files are read on the loop's threads.
    assert await asyncio.wait_for(asyncio.to_thread(str, 1), 5) == "1"
    left = [thread for thread in threading.enumerate() if thread.name == "tool-odd"]
    assert left
    # The end of the process does not wait for them.
    assert all(thread.daemon for thread in left)


async def test_more_tools_than_places_are_reported_to_the_model(
    hanging: ServerTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_tools, "SHORT_TOOL_SECONDS", 0.1)
    monkeypatch.setattr(short_tools, "_places", threading.BoundedSemaphore(1))
    await run_here(hanging, "call_1", {})
    refused = await run_here(hanging, "call_2", {})
    assert refused.is_error
    assert refused.result == "Too many tools are running on this server. Try again later."


@pytest.mark.parametrize("kind", [SystemExit, StopIteration])
async def test_a_tool_that_leaves_is_a_tool_that_broke(kind: type[BaseException]) -> None:
    def leave(_context: ToolContext, _arguments: dict[str, Any]) -> ToolOutcome:
        raise kind

    with pytest.raises(RuntimeError, match=kind.__name__):
        await asyncio.wait_for(run_here(short(leave), "call_1", {}), 5)


async def test_a_place_is_free_again_after_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(short_tools, "_places", threading.BoundedSemaphore(1))

    def done(_context: ToolContext, _arguments: dict[str, Any]) -> ToolOutcome:
        return ToolOutcome(result="done")

    for _ in range(3):
        assert (await run_here(short(done), "call_1", {})).result == "done"
