"""LangChain and pydantic-ai, which speak through OpenAI's Python client."""

import asyncio
import json
import sys
from typing import Any

from langchain_openai import ChatOpenAI  # type: ignore[import-not-found]  # not in .venv
from pydantic_ai import Agent  # type: ignore[import-not-found]  # not in .venv
from pydantic_ai.models.openai import (  # type: ignore[import-not-found]  # not in .venv
    OpenAIChatModel,
    OpenAIResponsesModel,
)
from pydantic_ai.providers.openai import OpenAIProvider  # type: ignore[import-not-found]  # not in .venv

ORIGIN, KEY = sys.argv[1:3]
BASE = f"{ORIGIN}/v1"


def langchain(*, responses: bool) -> dict[str, Any]:
    """Ask whole, streamed, and with a tool, over one of OpenAI's protocols."""
    chat = ChatOpenAI(model="echo", base_url=BASE, api_key=KEY, use_responses_api=responses)
    tool = {"name": "search", "description": "Find", "parameters": {"type": "object"}}
    user = ChatOpenAI(model="tool-user", base_url=BASE, api_key=KEY, use_responses_api=responses)
    called = user.bind_tools([{"type": "function", "function": tool}]).invoke("find cats")
    return {
        "whole": chat.invoke("Hello there").text,
        "stream": "".join(chunk.text for chunk in chat.stream("Hello there")),
        "calls": [call["name"] for call in called.tool_calls],
    }


async def pydantic_ai(model: Any) -> dict[str, Any]:
    """Run an agent with a tool, whole and streamed, over one of OpenAI's protocols."""
    agent = Agent(model("tool-user", provider=OpenAIProvider(base_url=BASE, api_key=KEY)))

    @agent.tool_plain  # type: ignore[untyped-decorator]  # not in .venv
    def search(query: str) -> str:
        """Find something."""
        return f"three {query}"

    result = await agent.run("cats")
    async with agent.run_stream("cats") as stream:
        streamed = await stream.get_output()
    return {"whole": result.output, "stream": streamed}


def main() -> dict[str, Any]:
    """Use each framework over Chat Completions and over the Responses API."""
    return {
        "langchain": [langchain(responses=False), langchain(responses=True)],
        "pydantic_ai": [
            asyncio.run(pydantic_ai(OpenAIChatModel)),
            asyncio.run(pydantic_ai(OpenAIResponsesModel)),
        ],
    }


print(json.dumps(main()))  # noqa: T201 its result
