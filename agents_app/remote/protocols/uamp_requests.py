"""The request to a remote agent over UAMP: one event with the whole conversation (UAMP §5.12)."""

from typing import Any

import msgspec

from agents_app.remote.protocols.conversations import uamp_messages
from uamp.events import ResponseConfig, ResponseCreate
from uamp.types.session import (
    FunctionDefinition,
    JsonSchemaFormat,
    ResponseFormat,
    ToolDefinition,
)
from upp import LLMRequest
from upp.tools import Tool


def response_create(request: LLMRequest) -> ResponseCreate:
    """Return the request for an answer, which ends when it calls one of this side's tools."""
    config = ResponseConfig(
        instructions=request.system,
        messages=tuple(uamp_messages(request.messages)),
        tools=tuple(map(_tool, request.tools)) or None,
        client_tools="end",
    )
    options = msgspec.to_builtins(config) | dict(request.params)
    return ResponseCreate(
        event_id="response",
        response=msgspec.convert(options, ResponseConfig),
        response_format=_format(request),
    )


def _tool(tool: Tool) -> ToolDefinition:
    parameters: dict[str, Any] = dict(tool.parameters)
    return ToolDefinition(
        function=FunctionDefinition(
            name=tool.name, description=tool.description, parameters=parameters
        )
    )


def _format(request: LLMRequest) -> ResponseFormat | None:
    if request.structure is None:
        return None
    schema = JsonSchemaFormat(name="answer", schema=dict(request.structure))
    return ResponseFormat(type="json_schema", json_schema=schema)
