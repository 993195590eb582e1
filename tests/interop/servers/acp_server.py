"""An agent on the Python SDK of ACP: `acp_server.py PORT`. It repeats words one by one.

The SDK's example agent sends the blocks of a prompt back; this one does it in pieces, over the
SDK's HTTP and WebSocket server. `GET /cancelled` counts the prompts that were cancelled.
"""

import asyncio
import sys
import uuid
from typing import Any

import uvicorn
from acp import (  # type: ignore[import-not-found]  # not in .venv
    PROTOCOL_VERSION,
    InitializeResponse,
    NewSessionResponse,
    PromptResponse,
    update_agent_message_text,
    update_agent_thought_text,
)
from acp.http.asgi import create_asgi_app  # type: ignore[import-not-found]  # as above
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

cancelled: list[str] = []


class Parrot:
    """Repeats the last paragraph of a prompt; after `stay` it goes on until it is cancelled."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        self._stop = asyncio.Event()

    async def initialize(self, protocol_version: int, **_: Any) -> InitializeResponse:
        """Agree to the version of the SDK."""
        del protocol_version
        return InitializeResponse(protocol_version=PROTOCOL_VERSION)

    async def new_session(self, cwd: str, **_: Any) -> NewSessionResponse:
        """Open a session."""
        del cwd
        return NewSessionResponse(session_id=uuid.uuid4().hex)

    async def prompt(self, session_id: str, prompt: list[Any], **_: Any) -> PromptResponse:
        """Answer."""
        await self._connection.session_update(session_id, update_agent_thought_text("Words."))
        for word in prompt[0].text.rpartition("\n\n")[2].split():
            piece = update_agent_message_text(f"{word} ")
            await self._connection.session_update(session_id, piece)
            if word == "stay":
                await asyncio.wait_for(self._stop.wait(), 60)
                return PromptResponse(stop_reason="cancelled")
        return PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id: str, **_: Any) -> None:
        """End the prompt."""
        cancelled.append(session_id)
        self._stop.set()


async def count(_request: Request) -> PlainTextResponse:
    """Return the number of prompts that were cancelled."""
    return PlainTextResponse(str(len(cancelled)))


app = Starlette(routes=[Route("/cancelled", count), Mount("/acp", create_asgi_app(Parrot))])
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="warning")
