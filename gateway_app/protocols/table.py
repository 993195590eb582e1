"""The protocols that pages show, in display order."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from gateway_app.a2a.presentation import A2aPresentation
from gateway_app.acp.presentation import AcpPresentation
from gateway_app.ag_ui.presentation import AgUiPresentation
from gateway_app.anthropic.presentation import AnthropicPresentation
from gateway_app.completions.presentation import CompletionsPresentation
from gateway_app.openai_responses.presentation import ResponsesPresentation
from gateway_app.protocols.native import UampPresentation

if TYPE_CHECKING:
    from gateway_app.types.protocol_presentation import ProtocolPresentation

PROTOCOLS: Final[tuple[ProtocolPresentation, ...]] = (
    UampPresentation(),
    CompletionsPresentation(),
    ResponsesPresentation(),
    AnthropicPresentation(),
    AgUiPresentation(),
    A2aPresentation(),
    AcpPresentation(),
)
