"""Server tools: the definition of a tool, and the tools that ship with the server (docs/tools.md).

Tools of MCP servers are in `mcp`; running calls is the job of `sessions_app.tools`. Modules that
define tools import what they need from here.
"""

from agents_app.tools.registry import (
    ReadContent,
    ServerTool,
    ToolCancelled,
    ToolContext,
    ToolError,
    ToolOutcome,
    tool,
)

__all__ = [
    "ReadContent",
    "ServerTool",
    "ToolCancelled",
    "ToolContext",
    "ToolError",
    "ToolOutcome",
    "tool",
]
