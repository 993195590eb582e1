"""Agents, their sponsorships, checkpoints and tool sources as rows."""

from agents_app.models.agents import AGENT_ID, NAME_PATTERN, Agent, Sponsorship, new_agent_id
from agents_app.models.checkpoints import Checkpoint
from agents_app.models.tool_sources import SOURCE_NAME, ToolSource

__all__ = [
    "AGENT_ID",
    "NAME_PATTERN",
    "SOURCE_NAME",
    "Agent",
    "Checkpoint",
    "Sponsorship",
    "ToolSource",
    "new_agent_id",
]
