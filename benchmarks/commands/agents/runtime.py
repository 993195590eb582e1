"""Measure what the agent runtime adds to a provider's stream: `python -m benchmarks runtime`.

In one process without a socket or a database, with the scripted provider. Each layer plays the same
script, and its cost is a slope (many deltas or steps against none), which cancels the fixed cost of
a turn. A step is one inference with one call of a tool that does nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import statistics
import time
from typing import TYPE_CHECKING, Any, Final

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")

import django

django.setup()

# Django has to be set up first.
from django.test.utils import override_settings  # noqa: E402

from agents_app.providers.scripts import SCRIPTS  # noqa: E402
from agents_app.runtime.agent_run import RunRequest, run_agent  # noqa: E402
from agents_app.selectors import AgentSpec  # noqa: E402
from agents_app.tools.registry import ServerTool, ToolOutcome  # noqa: E402
from sessions_app.response.context import RunContext  # noqa: E402
from sessions_app.response.port import RunPort  # noqa: E402
from uamp import Message  # noqa: E402
from uap import AgentState, agent  # noqa: E402
from upp import LLMRequest, TextBlock, Tool, ToolResultMessage, UserMessage, llm  # noqa: E402
from upp.providers.scripted import Call, ScriptedModel, Step, Text  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence

    from uamp.events import Event

    Layer = Callable[[int, int], Awaitable[None]]

DELTAS: Final = 4000
STEPS: Final = 100
NOTHING: Final = "nothing"
SERVER_TOOL: Final = ServerTool(
    name=NOTHING,
    description="Do nothing.",
    parameters={"type": "object"},
    run=lambda _context, _arguments: ToolOutcome(result="done"),
    long_running=False,
)


def _script(deltas: int, steps: int) -> Callable[[LLMRequest], AsyncGenerator[Step, None]]:
    async def play(request: LLMRequest) -> AsyncGenerator[Step, None]:
        done = sum(isinstance(message, ToolResultMessage) for message in request.messages)
        if done < steps:
            yield Call(name=NOTHING, arguments={})
            return
        for _ in range(deltas):
            yield Text("word ")

    return play


def _tool() -> Tool:
    return Tool(
        name=NOTHING,
        description="Do nothing.",
        parameters={"type": "object"},
        run=lambda _arguments: "done",
    )


# --- Layers ---


async def provider(deltas: int, steps: int) -> None:
    """Read the provider's stream directly, with one inference per step."""
    for number in range(steps + 1):
        last = number == steps
        model = ScriptedModel(script=_script(deltas if last else 0, 0 if last else 1))
        async for _ in model.stream(
            LLMRequest(messages=(UserMessage(content=(TextBlock(text="go"),)),))
        ):
            pass


async def model_stream(deltas: int, steps: int) -> None:
    """Read `upp.llm().stream()`."""
    model = ScriptedModel(script=_script(deltas, steps))
    bot = llm(model=model, tools=[_tool()], max_iterations=None)
    async with bot.stream("go") as stream:
        async for _ in stream:
            pass


async def agent_stream(deltas: int, steps: int) -> None:
    """Read `uap.agent().stream()`."""
    bot = agent(model=ScriptedModel(script=_script(deltas, steps)), tools=[_tool()])
    async with bot.stream("go", AgentState.initial()) as stream:
        async for _ in stream:
            pass


def _request(deltas: int, steps: int) -> tuple[AgentSpec, RunRequest]:
    play = _script(deltas, steps)
    SCRIPTS["bench"] = lambda _spec, request: play(request)
    spec = AgentSpec(
        id="agent", name="bench", options={"script": "bench"}, tools=(NOTHING,), max_steps=steps + 2
    )
    history = (Message(role="user", content="go"),)
    return spec, RunRequest(response_id="resp_bench", history=history)


class _NoTools:
    """The tool broker and media loader of a free run: admits every step."""

    async def admit_step(self) -> None:
        """See ToolBroker."""

    def inference_sent(self) -> None:
        """See ToolBroker."""

    async def wrote(self, text: str) -> None:
        """See ToolBroker."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(name)


async def events(deltas: int, steps: int) -> None:
    """Read `run_agent`: UAMP events."""
    spec, request = _request(deltas, steps)
    no_tools: Any = _NoTools()
    await run_agent(spec, request, _drop, broker=no_tools, media=no_tools)


def _drop(_shown: Event | str) -> None:
    """Receive text or an event and drop it."""


class _Listener:
    """A listener that receives every frame and drops it."""

    def text(self, response_id: str, offset: int, text: str, frame: tuple[str, str]) -> None:
        """See response.context.Listener."""

    def frame(self, response_id: str, frame: str) -> None:
        """See response.context.Listener."""

    def event(self, seq: int, event_type: str, response_id: str, frame: str) -> None:
        """See response.context.Listener."""

    def ended(self, response_id: str) -> None:
        """See response.context.Listener."""


async def published(deltas: int, steps: int) -> None:
    """Publish `run_agent` to one listener: frames are encoded and the output is stored."""
    spec, request = _request(deltas, steps)
    no_tools: Any = _NoTools()
    context = RunContext(
        response_id="resp_bench",
        chat_id="chat_bench",
        session_id=None,
        spec=spec,
        request=request,
        fence=1,
        fan_out=False,
    )
    port = RunPort(context, no_tools)
    port.subscribers.listen(_Listener())

    await run_agent(spec, request, port.publish, broker=no_tools, media=no_tools)


LAYERS: Final[dict[str, Layer]] = {
    "provider": provider,
    "upp.llm": model_stream,
    "uap.agent": agent_stream,
    "run_agent": events,
    "run_agent, published": published,
}


# --- Measuring ---


async def _seconds(layer: Layer, deltas: int, steps: int) -> float:
    gc.collect()
    began = time.process_time()
    await layer(deltas, steps)
    return time.process_time() - began


async def _slope(layer: Layer, deltas: int, steps: int, rounds: int) -> float:
    """Return the CPU time of one delta or one step in microseconds."""
    await layer(10, 2)
    slopes = [
        await _seconds(layer, deltas, steps) - await _seconds(layer, 0, 0) for _ in range(rounds)
    ]
    return statistics.median(slopes) * 1e6 / (deltas or steps)


async def measure(rounds: int) -> None:
    """Print the table."""
    print(f"{'':22}{'us/delta':>10}{'over':>8}{'us/step':>10}{'over':>8}")
    base: tuple[float, float] | None = None
    for name, layer in LAYERS.items():
        delta = await _slope(layer, DELTAS, 0, rounds)
        step = await _slope(layer, 0, STEPS, rounds)
        base = base or (delta, step)
        print(f"{name:22}{delta:>10.1f}{delta - base[0]:>8.1f}{step:>10.0f}{step - base[1]:>8.0f}")


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks runtime", description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args(arguments)
    with override_settings(UAMP_SERVER_TOOLS=["benchmarks.commands.agents.runtime.SERVER_TOOL"]):
        asyncio.run(measure(options.rounds))


if __name__ == "__main__":
    main()
