"""An MCP server for tests, made with the `mcp` package: over stdio, or over HTTP on a port.

`python tests/agents_app/mcp/mcp_server.py JOURNAL [PORT]`: its tools write into the journal what
they did, and what they received.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import os
import sys
from pathlib import Path

# Each call of a tool over stdio starts this program: its imports are most of what it costs.
gc.disable()

from mcp.server.mcpserver import Context, MCPServer  # noqa: E402 as the line above says
from mcp.types import (  # noqa: E402 as above
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJg"
    "gg=="
)
READS = ToolAnnotations(read_only_hint=True)

server = MCPServer("test-server", version="7")


def journal(line: str) -> None:
    """Write a line into the journal."""
    with Path(sys.argv[1]).open("a") as file:
        file.write(f"{line}\n")


@server.tool(annotations=READS)
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
async def slow(context: Context, steps: int = 3, pause: float = 0.05) -> str:
    """Take some steps, and report each."""
    journal("began")
    try:
        for step in range(1, steps + 1):
            await context.report_progress(step, steps, f"step {step}")
            await asyncio.sleep(pause)
    except asyncio.CancelledError:
        journal("cancelled")
        raise
    journal("ended")
    return f"{steps} steps"


@server.tool(annotations=ToolAnnotations(idempotent_hint=True))
async def walk(context: Context, query: str) -> str:
    """Take as many steps as the query says."""
    return await slow(context, int(query), 0.1)


@server.tool()
async def hint(context: Context) -> str:
    """Report progress without an end."""
    await context.report_progress(7, None, "seven so far")
    await asyncio.sleep(0.2)
    return "done"


@server.tool(annotations=READS)
def image() -> CallToolResult:
    """Return an image, a file, a text of a resource and a link."""
    data = base64.b64encode(PNG).decode()
    blob = BlobResourceContents(
        uri="file:///notes.txt", mime_type="text/plain", blob=base64.b64encode(b"rain").decode()
    )
    text = TextResourceContents(uri="https://secret.example/a", text="It rains.")
    link = ResourceLink(name="map", uri="https://secret.example/map")
    return CallToolResult(
        content=[
            TextContent(text="Here it is."),
            ImageContent(data=data, mime_type="image/png"),
            ImageContent(data="no base64!", mime_type="image/png"),
            EmbeddedResource(resource=blob),
            EmbeddedResource(resource=text),
            link,
        ]
    )


@server.tool()
def fail() -> CallToolResult:
    """Fail, and say so."""
    return CallToolResult(content=[TextContent(text="There is no rain.")], is_error=True)


@server.tool(structured_output=False)
def huge(size: int) -> str:
    """Return a text of a size."""
    return "x" * size


@server.tool()
def structured() -> CallToolResult:
    """Return an object and no text."""
    return CallToolResult(content=[], structured_content={"rain": [1, 2]})


@server.tool()
def nothing() -> CallToolResult:
    """Return nothing."""
    return CallToolResult(content=[])


@server.tool()
def crash() -> str:
    """End the program in the middle of a call."""
    journal("crashed")
    sys.stderr.write("the password is hunter2hunter2\n")
    sys.stderr.flush()
    os._exit(3)


@server.tool(name="no.good name!")
def odd() -> str:
    """Have a name that models cannot say."""
    return "odd"


@server.tool(structured_output=False)
def secret() -> str:
    """Return the secret of the environment."""
    return f"it is {os.environ.get('TOKEN', 'nowhere')}"


if __name__ == "__main__":
    if len(sys.argv) > 2:
        import uvicorn

        app = server.streamable_http_app(json_response=False)
        uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[2]), log_level="warning")
    else:
        server.run("stdio")
