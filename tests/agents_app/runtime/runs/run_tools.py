"""Short server tools that work, fail, look around and misbehave."""

import threading
from typing import Any

from agents_app.tools.registry import ServerTool, ToolContext, ToolError, ToolOutcome, tool


def echo_tool(_context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    if arguments.get("fail"):
        raise ToolError("Say something else.")
    return ToolOutcome(result=str(arguments))


SHORT = ServerTool(
    name="short", description="", parameters={"type": "object"}, run=echo_tool, long_running=False
)


def use_context(context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    context.progress(percent=50)
    if arguments["what"] == "read":
        context.read_content("id-1")
    if arguments["what"] == "search":
        context.search_messages(["a"], limit=1)
    context.write_content(b"", mime_type="text/plain", filename="a.txt")
    raise AssertionError


NOSY = ServerTool(
    name="nosy", description="", parameters={"type": "object"}, run=use_context, long_running=False
)
HANG = threading.Event()


@tool(long_running=False)
def odd(how: str) -> object:
    """Misbehave."""
    match how:
        case "hang":
            HANG.wait(10)
        case "time out":
            raise TimeoutError("secret host")
        case "no json":
            return object()
        case "nul":
            return "a\0b\ud800"
    return "x" * int(how)
