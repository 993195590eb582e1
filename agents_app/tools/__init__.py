"""Server tools: what a tool is, and those that ship with the server (docs/tools.md).

Tools of MCP servers are in `mcp`; how a call runs is in `sessions_app.tools`. Modules of tools
import what they need of a tool from here.
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
