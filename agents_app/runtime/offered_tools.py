"""The tools offered to a model: the server's, those of MCP servers and the client's.

A client's tool cannot use the name of a server tool.
"""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from agents_app.conversation.delegation_orders import (
    DELEGATE,
    delegate_description,
    delegate_schema,
)
from agents_app.conversation.presentation import PRESENT, PRESENT_DESCRIPTION, PRESENT_SCHEMA
from agents_app.conversation.state_changes import (
    SET_STATE,
    SET_STATE_DESCRIPTION,
    SET_STATE_SCHEMA,
)
from agents_app.mcp.tools import served
from agents_app.runtime.run_request import RunRequest
from agents_app.selectors import AgentSpec
from agents_app.tools.registry import ServerTool, server_tools
from uamp.types.session import ToolDefinition

logger = logging.getLogger(__name__)

NO_PARAMETERS: Mapping[str, Any] = {"type": "object", "properties": {}}
"""The parameters of a tool that was declared without any."""


def tools_of_agent(spec: AgentSpec) -> dict[str, ServerTool]:
    """Return an agent's tools from this server and from MCP servers, by name."""
    available = {
        **{listed.name: served(listed) for listed in spec.source_tools},
        **server_tools(),
    }
    for name in spec.tools:
        if name not in available and name not in {PRESENT, SET_STATE}:
            logger.warning("Agent %s: this server has no tool named %s", spec.name, name)
    tools = {name: available[name] for name in spec.tools if name in available}
    for name in spec.approvals:
        if name in tools and not tools[name].long_running:
            # The row was written without the form that checks it; no person could be asked.
            logger.warning("Agent %s: %s is short and cannot wait for a person", spec.name, name)
            del tools[name]
        elif name in tools:
            tools[name] = replace(tools[name], needs_approval=True)
    return tools


def tool_definitions(
    spec: AgentSpec, request: RunRequest
) -> list[tuple[str, str, Mapping[str, Any]]]:
    """Return the tools offered to a model: names, descriptions and parameters."""
    served_here = tools_of_agent(spec)
    tools: list[tuple[str, str, Mapping[str, Any]]] = [
        (tool.name, tool.description, tool.parameters) for tool in served_here.values()
    ]
    tools += [
        (tool.name, function.description or "", function.parameters or NO_PARAMETERS)
        for tool in tools_of_client(request.tools, served_here).values()
        if (function := tool.function) is not None
    ]
    if PRESENT in spec.tools:
        tools.append((PRESENT, PRESENT_DESCRIPTION, PRESENT_SCHEMA))
    if SET_STATE in spec.tools:
        tools.append((SET_STATE, SET_STATE_DESCRIPTION, SET_STATE_SCHEMA))
    if spec.delegates:
        about = delegate_description(spec.delegates)
        tools.append((DELEGATE, about, delegate_schema(spec.delegates)))
    return tools


def run_by_client(spec: AgentSpec, request: RunRequest) -> frozenset[str]:
    """Return the names of the tools that the client of a request runs itself."""
    if not request.tools:
        return frozenset()
    return frozenset(tools_of_client(request.tools, tools_of_agent(spec)))


def tools_of_client(
    declared: Sequence[ToolDefinition], server_tools: Mapping[str, ServerTool]
) -> dict[str, ToolDefinition]:
    """Return the client's functions by name, except those with the name of a server tool."""
    functions: dict[str, ToolDefinition] = {}
    builtin_names = {PRESENT, SET_STATE, DELEGATE}
    for tool in declared:
        if (
            tool.function is not None
            and tool.name not in server_tools
            and tool.name not in builtin_names
        ):
            functions.setdefault(tool.name, tool)
    return functions
