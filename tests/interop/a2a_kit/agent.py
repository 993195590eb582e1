"""The agent that A2A's conformance kit asks for: it answers as the id of a message says.

An agent of this server does not see the ids of its clients, so that `named` puts the id of each
message into its text. What is asked of a client, and an answer as a message, are asked for as each
client asks for them: in the metadata of a message.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from agents_app.models import Agent
from agents_app.providers.scripts import user_text
from agents_app.tools.registry import ToolOutcome, tool
from gateway_app.a2a.tasks.messages import REPLY, TOOLS
from gateway_app.a2a.tasks.task import TaskPart
from uamp import FileContent, MediaUrl
from upp import ErrorCode, LLMRequest, ToolResultMessage, UPPError
from upp.providers.scripted import Call, Fail, Pause, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from gateway_app.a2a.tasks.messages import SentMessage

NAME: Final = "kit"
SHOW_FILE: Final = "tests.interop.a2a_kit.agent.show_file"
# Longer than the two time-outs of a stream that the kit waits for a task to go on.
LONG_SECONDS: Final = 5.0
_MARK: Final = re.compile(r"\[message ([^\]]+)\]")
_ASK: Final = {
    "type": "function",
    "function": {"name": "ask", "description": "Ask the client.", "parameters": {}},
}
_TEXTS: Final = {
    "tck-artifact-text": "Generated text content",
    "tck-artifact-data": '{"key": "value", "count": 42}',
    "tck-message-response": "Direct message response",
    "tck-stream-001": "Stream hello from TCK",
    "tck-stream-003": "Stream task lifecycle",
    "tck-stream-ordering-001": "Ordered output",
    "tck-stream-artifact-text": "Streamed text content",
}


def with_message_id(message: SentMessage) -> SentMessage:
    """Return a message with its id in its text, and with what its id asks for in its metadata."""
    metadata = dict(message.metadata)
    if not message.task_id:
        metadata[TOOLS] = [_ASK]
    if message.message_id.startswith("tck-message-response"):
        metadata[REPLY] = "message"
    mark = TaskPart(text=f"[message {message.message_id}]")
    return replace(message, parts=(*message.parts, mark), metadata=metadata)


def make_agent() -> Agent:
    """Make the agent, which visitors may use."""
    return Agent.objects.create(
        name=NAME, is_public=True, tools=["show_file"], options={"script": NAME}
    )


@tool(long_running=False)
def show_file(url: str) -> ToolOutcome:
    """Show a file of text: the one at a URL, or one of this tool's own."""
    medium = MediaUrl(url=url) if url else "T3V0cHV0Lgo="
    file_content = FileContent(file=medium, filename="output.txt", mime_type="text/plain")
    return ToolOutcome(result="Shown.", content_items=(file_content,), is_presented=True)


async def answer(agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Answer as the id of the last message says; one without a scenario is asked back."""
    last = request.messages[-1]
    results = last.results if isinstance(last, ToolResultMessage) else ()
    text = str(results[-1].result) if results else user_text(agent, request)
    marks = _MARK.findall(text)
    message_id = marks[-1] if marks else ""
    if results and not marks:
        # The file was shown.
        return
    scenario = next((beginning for beginning in _TEXTS if message_id.startswith(beginning)), "")
    if scenario:
        yield Text(_TEXTS[scenario])
    elif message_id.startswith("tck-stream-artifact-chunked"):
        yield Text("chunk-1 ")
        yield Text("chunk-2")
    elif message_id.startswith(("tck-artifact-file", "tck-stream-artifact-file")):
        url = "https://example.com/output.txt" if "file-url" in message_id else ""
        yield Call(name="show_file", arguments={"url": url})
    elif message_id.startswith("tck-reject-task"):
        yield Fail(UPPError("rejected", code=ErrorCode.CONTENT_FILTERED, provider="scripted"))
    elif message_id.startswith("test-resubscribe-message-id"):
        yield Pause(LONG_SECONDS)
        yield Text("Done.")
    elif message_id.startswith("tck-") and not message_id.startswith("tck-input-required"):
        yield Text("Hello from TCK")
    else:
        yield Call(name="ask", arguments={})
