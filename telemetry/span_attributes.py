"""The names of what spans say, each in one place.

The `gen_ai` names follow OpenTelemetry's semantic conventions for generative AI, which are still in
development and move between packages: the names are our own constants, so that an update of a
package renames nothing in anyone's dashboards. `uamp_server` is the namespace of this server.
"""

from __future__ import annotations

from typing import Final

OPERATION: Final = "gen_ai.operation.name"
PROVIDER: Final = "gen_ai.provider.name"
REQUEST_MODEL: Final = "gen_ai.request.model"
INPUT_TOKENS: Final = "gen_ai.usage.input_tokens"
OUTPUT_TOKENS: Final = "gen_ai.usage.output_tokens"
AGENT_NAME: Final = "gen_ai.agent.name"
TOOL_NAME: Final = "gen_ai.tool.name"

CHAT: Final = "chat"
"""The operation of a request to a model."""

REQUEST_ID: Final = "uamp_server.request.id"
RESPONSE_ID: Final = "uamp_server.response.id"
CHAT_ID: Final = "uamp_server.chat.id"
TRANSPORT: Final = "uamp_server.transport"
