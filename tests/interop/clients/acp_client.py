"""The client of ACP over both of its transports: `acp_client.py ORIGIN KEY TRANSPORT TOKEN`."""

import asyncio
import json
import sys
from typing import Any

import httpx
from acp import (  # type: ignore[import-not-found]  # not in .venv
    PROTOCOL_VERSION,
    RequestError,
    connect_to_agent,
    text_block,
)
from acp.http import create_http_stream  # type: ignore[import-not-found]  # not in .venv
from acp.schema import (  # type: ignore[import-not-found]  # not in .venv
    AllowedOutcome,
    RequestPermissionResponse,
)
from acp.ws import create_websocket_stream  # type: ignore[import-not-found]  # not in .venv

ORIGIN, KEY, TRANSPORT, TOKEN = sys.argv[1:5]
HEADERS = {"Authorization": f"Bearer {KEY}"}


class Editor:
    """A client that allows what it is asked to allow, and keeps the updates."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.began = asyncio.Event()
        self.permissions: list[str] = []

    def on_connect(self, conn: Any) -> None:
        """Take the connection, which is not needed."""

    async def session_update(self, update: Any, **_: Any) -> None:
        """Keep an update."""
        self.updates.append(update)
        if update.session_update == "agent_message_chunk":
            self.began.set()

    async def request_permission(self, options: Any, tool_call: Any, **_: Any) -> Any:
        """Allow the call."""
        self.permissions.append(tool_call.title)
        return RequestPermissionResponse(
            outcome=AllowedOutcome(option_id=options[0].option_id, outcome="selected")
        )

    async def settle(self) -> None:
        """Wait for updates that arrived: the client handles them beside the answer."""
        count = -1
        while count < len(self.updates):
            count = len(self.updates)
            await asyncio.sleep(0.3)

    def kinds(self) -> list[str]:
        """Return the kinds of updates, in order of their names."""
        return sorted({update.session_update for update in self.updates})

    def text(self) -> str:
        """Return the text of the answers."""
        chunks = [u for u in self.updates if u.session_update == "agent_message_chunk"]
        return "".join(chunk.content.text for chunk in chunks)


class Connected:
    """A connection to an agent over the transport that is tested."""

    def __init__(self, agent: str) -> None:
        self.agent = agent
        self.editor = Editor()

    async def __aenter__(self) -> Any:
        path = f"/agents/{self.agent}/acp"
        if TRANSPORT == "ws":
            url = ORIGIN.replace("http", "ws", 1) + path
            stream = await create_websocket_stream(url, headers=HEADERS)
        else:
            http = httpx.AsyncClient(timeout=60, trust_env=False)
            stream = create_http_stream(ORIGIN + path, client=http, headers=HEADERS)
        self.connection = connect_to_agent(self.editor, stream)
        await self.connection.initialize(protocol_version=PROTOCOL_VERSION)
        return self.connection, self.editor

    async def __aexit__(self, *_: object) -> None:
        await self.connection.close()


async def talk() -> dict[str, Any]:
    """Ask, then load the session over another connection."""
    async with Connected("thinker") as (agent, editor):
        session = await agent.new_session(cwd="/", mcp_servers=[])
        answer = await agent.prompt(
            prompt=[text_block("Hello there")], session_id=session.session_id
        )
        listed = await agent.list_sessions()
        await editor.settle()
    async with Connected("thinker") as (agent, again):
        await agent.load_session(cwd="/", mcp_servers=[], session_id=session.session_id)
        await again.settle()
        loaded = again.kinds()
        await agent.prompt(prompt=[text_block("Again")], session_id=session.session_id)
        await again.settle()
    return {
        "text": editor.text(),
        "stop": answer.stop_reason,
        "kinds": editor.kinds(),
        "listed": listed.sessions[0].session_id == session.session_id,
        "loaded": loaded,
        "again": again.text(),
    }


async def cancel() -> str:
    """Cancel a prompt while it is answered."""
    async with Connected("slow") as (agent, editor):
        session = await agent.new_session(cwd="/", mcp_servers=[])
        prompt_task = asyncio.ensure_future(
            agent.prompt(prompt=[text_block("Count")], session_id=session.session_id)
        )
        await asyncio.wait_for(editor.began.wait(), 60)
        await agent.cancel(session_id=session.session_id)
        return str((await prompt_task).stop_reason)


async def pay() -> dict[str, Any]:
    """Ask an agent with a price, and pay with a token in `_meta`."""
    async with Connected("paid-echo") as (agent, editor):
        session = await agent.new_session(cwd="/", mcp_servers=[])
        ask = {"prompt": [text_block("Hello there")], "session_id": session.session_id}
        code = 0
        try:
            await agent.prompt(**ask)
        except RequestError as error:
            code = error.code
        paid = await agent.prompt(**ask, payment_token=TOKEN)
        await editor.settle()
        return {"code": code, "stop": paid.stop_reason, "text": editor.text()}


async def main() -> dict[str, Any]:
    """Do all of it."""
    return {"talk": await talk(), "cancel": await cancel(), "pay": await pay()}


print(json.dumps(asyncio.run(main())))  # noqa: T201 its result
