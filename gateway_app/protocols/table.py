"""The protocols that pages show, in display order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway_app.a2a.presentation import ShownTasks
from gateway_app.acp.presentation import ShownPrompts
from gateway_app.ag_ui.presentation import ShownRuns
from gateway_app.anthropic.presentation import ShownMessages
from gateway_app.completions.presentation import ShownCompletions
from gateway_app.openai_responses.presentation import ShownResponses
from gateway_app.protocols.native import ShownUamp

if TYPE_CHECKING:
    from gateway_app.shapes.protocol_presentation import ShownProtocol

PROTOCOLS: Final[tuple[ShownProtocol, ...]] = (
    ShownUamp(),
    ShownCompletions(),
    ShownResponses(),
    ShownMessages(),
    ShownRuns(),
    ShownTasks(),
    ShownPrompts(),
)
