"""OpenAI's clients of the Realtime API: `realtime_client.py ORIGIN KEY`."""

import asyncio
import json
import sys
from typing import Any

from agents.realtime import (  # type: ignore[import-not-found]  # not in .venv
    OpenAIRealtimeWebSocketModel,
    RealtimeAgent,
    RealtimeRunner,
)
from openai import AsyncOpenAI  # type: ignore[import-not-found]  # not in .venv

ORIGIN, KEY = sys.argv[1:3]
SOCKETS = ORIGIN.replace("http", "ws", 1)
TOOL = {
    "type": "function",
    "name": "search",
    "description": "Search",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}


def client(key: str = KEY) -> Any:
    """Return the client of a key."""
    return AsyncOpenAI(base_url=f"{ORIGIN}/v1", websocket_base_url=f"{SOCKETS}/v1", api_key=key)


async def say(connection: Any, text: str) -> None:
    """Put a message into the conversation and ask for a response."""
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    await connection.conversation.item.create(item=item)
    await connection.response.create()


async def until_done(connection: Any, delta: str) -> dict[str, Any]:
    """Return the text of the deltas up to the end of the response, and its calls."""
    text, calls = "", []
    async for event in connection:
        if event.type == delta:
            text += event.delta
        elif event.type == "response.function_call_arguments.done":
            calls.append(event.call_id)
        elif event.type == "response.done":
            return {"text": text, "status": event.response.status, "calls": calls}
    raise RuntimeError("the socket closed")


async def ga() -> dict[str, Any]:
    """Ask, call a tool, and cancel, in the dialect of GA."""
    delta = "response.output_text.delta"
    async with client().realtime.connect(model="echo") as connection:
        await say(connection, "Hello there")
        answer = await until_done(connection, delta)
    async with client().realtime.connect(model="tool-user") as connection:
        await connection.session.update(session={"type": "realtime", "tools": [TOOL]})
        await say(connection, "Search three cats")
        called = await until_done(connection, delta)
        output = {
            "type": "function_call_output",
            "call_id": called["calls"][0],
            "output": '"three cats"',
        }
        await connection.conversation.item.create(item=output)
        await connection.response.create()
        answered = await until_done(connection, delta)
    async with client().realtime.connect(model="slow") as connection:
        await say(connection, "Count")
        async for event in connection:
            if event.type == delta:
                await connection.response.cancel()
                break
        cancelled = await until_done(connection, delta)
    return {
        "text": answer["text"],
        "status": answer["status"],
        "tool": answered["text"],
        "cancelled": cancelled["status"],
    }


async def beta() -> dict[str, Any]:
    """Ask in the dialect of the beta."""
    async with client().beta.realtime.connect(model="echo") as connection:
        await connection.session.update(session={"modalities": ["text"]})
        await say(connection, "Hello there")
        return await until_done(connection, "response.text.delta")


async def secrets() -> dict[str, Any]:
    """Ask with secrets of both dialects."""
    session = {"type": "realtime", "model": "echo", "instructions": "Be brief."}
    issued = await client().realtime.client_secrets.create(session=session)
    async with client(issued.value).realtime.connect(model="echo") as connection:
        created = await connection.recv()
        await say(connection, "Hello there")
        answer = await until_done(connection, "response.output_text.delta")
    older = await client().beta.realtime.sessions.create(model="echo", modalities=["text"])
    async with client(older.client_secret.value).beta.realtime.connect(model="echo") as connection:
        await say(connection, "Hello there")
        beta_answer = await until_done(connection, "response.text.delta")
    return {
        "instructions": created.session.instructions,
        "model": issued.session.model,
        "text": answer["text"],
        "beta": beta_answer["text"],
    }


async def agents(key: str = KEY) -> str:
    """Ask with the Realtime agents of OpenAI's Agents SDK, and return what was said."""
    runner = RealtimeRunner(
        starting_agent=RealtimeAgent(name="echo", instructions="Be brief."),
        model=OpenAIRealtimeWebSocketModel(),
        config={"model_settings": {"model_name": "echo", "output_modalities": ["text"]}},
    )
    settings = {"url": f"{SOCKETS}/v1/realtime?model=echo", "api_key": key}
    async with await runner.run(model_config=settings) as session:
        await session.send_message("Hello there")
        async for event in session:
            if event.type == "error":
                return str(event.error)
            if event.type == "agent_end":
                break
        answers = [item for item in session._history if item.role == "assistant"]
        return "".join(part.text or "" for item in answers for part in item.content)


async def main() -> dict[str, Any]:
    """Do all of it."""
    return {
        "ga": await ga(),
        "beta": await beta(),
        "secrets": await secrets(),
        "agents": await agents(),
    }


print(json.dumps(asyncio.run(main())))  # noqa: T201 its result
