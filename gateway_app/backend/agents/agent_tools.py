"""The tools of an agent, for protocols that list them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from agents_app import selectors as agents
from agents_app.runtime.offered_tools import tools_of_agent
from sessions_app import database
from sessions_app.access.protocol_rights import check_scope
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from sessions_app.access.principal import Principal


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentTool:
    """A tool that the agent runs itself; `parameters` is a JSON Schema object."""

    name: str
    description: str
    parameters: dict[str, Any]


async def tools_of(principal: Principal, agent: str | None) -> list[AgentTool]:
    """Return the tools of an agent; raises RemoteProtocolError agent_not_found or forbidden."""
    check_scope(principal, "agents:read")
    spec = None
    if agent is not None:
        spec = await database.run(partial(agents.get_agent, agent, viewer=principal.user_id))
    if spec is None or not principal.rights.may_ask(spec.id):
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "There is no such agent.")
    return [
        AgentTool(name=tool.name, description=tool.description, parameters=tool.parameters)
        for tool in tools_of_agent(spec).values()
    ]
