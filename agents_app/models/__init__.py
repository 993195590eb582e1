"""The rows of agents, sponsorships, connections, checkpoints, remote tasks and tool sources."""

from agents_app.models.agents import (
    AGENT_ID,
    NAME_PATTERN,
    Agent,
    AgentKind,
    BudgetPeriod,
    ModelProvider,
    RemoteProtocol,
    Sponsorship,
    new_agent_id,
)
from agents_app.models.checkpoints import Checkpoint
from agents_app.models.connections import AgentConnection, ProcessLease
from agents_app.models.remote_tasks import RemoteTask
from agents_app.models.tool_sources import (
    SOURCE_NAME,
    ToolSource,
    ToolSourceApproval,
    ToolSourceTransport,
)

__all__ = [
    "AGENT_ID",
    "NAME_PATTERN",
    "SOURCE_NAME",
    "Agent",
    "AgentConnection",
    "AgentKind",
    "BudgetPeriod",
    "Checkpoint",
    "ModelProvider",
    "ProcessLease",
    "RemoteProtocol",
    "RemoteTask",
    "Sponsorship",
    "ToolSource",
    "ToolSourceApproval",
    "ToolSourceTransport",
    "new_agent_id",
]
