"""The protocols that pages show, in display order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway_app.a2a.shown import ShownTasks
from gateway_app.acp.shown import ShownPrompts
from gateway_app.ag_ui.shown import ShownRuns
from gateway_app.anthropic.shown import ShownMessages
from gateway_app.completions.shown import ShownCompletions
from gateway_app.openai_responses.shown import ShownResponses
from gateway_app.protocols.native import ShownUamp

if TYPE_CHECKING:
    from gateway_app.shapes.shown_protocol import ShownProtocol

PROTOCOLS: Final[tuple[ShownProtocol, ...]] = (
    ShownUamp(),
    ShownCompletions(),
    ShownResponses(),
    ShownMessages(),
    ShownRuns(),
    ShownTasks(),
    ShownPrompts(),
)
