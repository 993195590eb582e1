"""openai-agents, whose models speak the Responses API by default, with a tool of its own."""

import asyncio
import json
import sys
from typing import Any

from agents import (  # type: ignore[import-not-found]  # in an environment of its own
    Agent,
    Runner,
    function_tool,
    set_default_openai_client,
    set_tracing_disabled,
)
from openai import AsyncOpenAI  # type: ignore[import-not-found]  # as above

ORIGIN, KEY = sys.argv[1:3]


@function_tool  # type: ignore[untyped-decorator]  # not in .venv
def search(query: str) -> str:
    """Find something."""
    return f"three {query}"


async def main() -> dict[str, Any]:
    """Run an agent whole, streamed, with a history of its own, and with that of the server."""
    set_tracing_disabled(True)
    set_default_openai_client(AsyncOpenAI(base_url=f"{ORIGIN}/v1", api_key=KEY))
    agent = Agent(name="finder", instructions="Find.", model="tool-user", tools=[search])
    first = await Runner.run(agent, "cats")
    streamed = Runner.run_streamed(agent, "dogs")
    kinds = {event.type async for event in streamed.stream_events()}
    echo = Agent(name="echo", model="echo")
    history = [*first.to_input_list(), {"role": "user", "content": "Again"}]
    first_result = await Runner.run(echo, "Hello there", auto_previous_response_id=True)
    chained = await Runner.run(echo, "More", previous_response_id=first_result.last_response_id)
    return {
        "whole": first.final_output,
        "requests": first.context_wrapper.usage.requests,
        "streamed": streamed.final_output,
        "kinds": sorted(kinds),
        "history": (await Runner.run(echo, history)).final_output,
        "chained": chained.final_output,
        "chain": (await Runner.run(agent, "owls", auto_previous_response_id=True)).final_output,
    }


print(json.dumps(asyncio.run(main())))  # noqa: T201 its result
