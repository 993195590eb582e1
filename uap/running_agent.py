"""The agent of a run, as strategies and middleware see it (UAP §5.1, §9.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from upp import LLMInstance, Model, Tool


class RunningAgent(Protocol):
    """The members of `uap.Agent` that describe it; at run time it is that agent."""

    @property
    def id(self) -> str:
        """The agent's id, a UUIDv4."""

    @property
    def llm(self) -> LLMInstance:
        """The model with its configuration and tools."""

    @property
    def model(self) -> Model:
        """The model."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The tools."""

    @property
    def system(self) -> str | None:
        """The system prompt."""

    @property
    def session_id(self) -> str | None:
        """The name of the agent's checkpoints."""
