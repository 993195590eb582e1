"""The methods of ACP that start no turn, for every transport.

A transport implements AcpPort, which sends client events in the caller's sessions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

import msgspec

import uamp
from gateway_app.acp import read, write
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gateway_app.acp.read import Rpc
    from gateway_app.backend.agents.agent_tools import AgentTool
    from gateway_app.backend.session_reader import LoadedSession, SessionReader
    from uamp.events import Event

TRANSPORT: Final = "acp"
EXTENSION: Final = "acp"
"""The session extension that stores the client's working directory as `cwd`."""


class AcpPort(Protocol):
    """The transport of one client, as the methods use it.

    `send`, `begin` and `open_session` raise RemoteProtocolError if an event is refused.
    """

    @property
    def agent(self) -> str | None:
        """The agent named by the path."""

    def link_in(self, chat_id: str) -> Callable[[str], str]:
        """Return a function that returns the client's addresses of the media of a chat."""

    def own_sessions(self, extension: str) -> SessionReader:
        """Return a reader of the caller's sessions with the path's agent."""

    async def tools(self) -> list[AgentTool]:
        """Return the agent's tools; raises RemoteProtocolError agent_not_found."""

    def drop_inputs(self, session_id: str) -> None:
        """Drop the inputs of a refused turn."""

    async def send(self, event: Event) -> None:
        """Send a client event."""

    async def begin(self, create: ev.ResponseCreate) -> str:
        """Begin a turn and return its response."""

    async def open_session(self, create: ev.SessionCreate) -> str:
        """Open a session and return its id."""


def params_of(message: Rpc, kind: type[Any]) -> Any:
    """Parse the parameters of a request; raises RpcError invalid params."""
    try:
        return msgspec.convert(message.params, kind)
    except msgspec.ValidationError as error:
        raise read.RpcError(read.INVALID_PARAMS, f"{error}.") from None


def initialize(message: Rpc, agent: str | None) -> dict[str, Any]:
    """Return the agent's capabilities in the terms of both dialects."""
    params = params_of(message, read.InitializeParams)
    name = agent or "uamp-server"
    return {
        "protocolVersion": read.PROTOCOL_VERSION if params.is_official else "1.0",
        "agentCapabilities": {
            "loadSession": True,
            "promptCapabilities": {"image": True, "audio": True, "embeddedContext": True},
            "sessionCapabilities": {"list": {}, "resume": {}, "close": {}},
        },
        "agentInfo": {"name": name, "version": uamp.VERSION},
        "authMethods": [],
        "serverInfo": {"name": name, "version": uamp.VERSION},
        "capabilities": {"streaming": True, "tools": True},
    }


async def new_session(port: AcpPort, message: Rpc) -> dict[str, Any]:
    """Open a session; the client's folders and MCP servers are not used."""
    params = params_of(message, read.NewSessionParams)
    extensions = {EXTENSION: {"cwd": params.cwd}} if params.cwd else {}
    create = ev.SessionCreate(session=uamp.SessionConfig(extensions=extensions))
    return {"sessionId": await port.open_session(create)}


async def list_sessions(port: AcpPort, message: Rpc) -> dict[str, Any]:
    """Return a page of the caller's sessions with the agent, filtered by `cwd` if given."""
    params = params_of(message, read.ListSessionsParams)
    sessions, cursor = await port.own_sessions(EXTENSION).page(params.cursor or "")
    rows = [
        {
            "sessionId": session.id,
            "cwd": session.extension.get("cwd") or "/",
            "updatedAt": session.changed_at.isoformat(),
            **({"title": session.title} if session.title else {}),
        }
        for session in sessions
    ]
    if params.cwd is not None:
        rows = [session for session in rows if session["cwd"] == params.cwd]
    return {"sessions": rows, **({"nextCursor": cursor} if cursor else {})}


def history_of(port: AcpPort, session_id: str, loaded: LoadedSession) -> list[dict[str, Any]]:
    """Return the notifications that replay a session to its client."""
    updates = write.history_updates(loaded.messages, link=port.link_in(loaded.chat_id))
    return [write.update(session_id, content) for content in updates]


async def list_tools(port: AcpPort, message: Rpc) -> dict[str, Any]:
    """Return the tools that the agent runs itself (webagents' `tools/list`)."""
    del message
    return {
        "tools": [
            {"name": tool.name, "description": tool.description, "inputSchema": tool.parameters}
            for tool in await port.tools()
        ]
    }


async def call_tool(port: AcpPort, message: Rpc) -> dict[str, Any]:
    """Refuse webagents' `tools/call`: a tool runs only in the response that calls it."""
    del port, message
    raise read.RpcError(
        read.METHOD_NOT_FOUND,
        "Tools are called by the agent, in its answers: a person may have to allow a call, and it"
        " is paid for with the answer. Send a prompt instead.",
    )


async def begin(
    port: AcpPort,
    session_id: str,
    inputs: Sequence[uamp.InputEvent],
    create: ev.ResponseCreate,
    *,
    token: str | None,
) -> str:
    """Begin the turn of a prompt and return its response's id; raises RemoteProtocolError."""
    if token is not None:
        await port.send(ev.SessionUpdate(session_id=session_id, payment_token=token))
    try:
        for event in inputs:
            await port.send(event)
    except RemoteProtocolError:
        port.drop_inputs(session_id)
        raise
    return await port.begin(msgspec.structs.replace(create, session_id=session_id))


def payment_of(session_id: str, response_id: str, token: str) -> ev.PaymentSubmit:
    """Return the payment for a response that waits for one."""
    payment = uamp.Payment(scheme="token", token=token)
    return ev.PaymentSubmit(session_id=session_id, payment=payment, response_id=response_id)


def decision_of(message: Rpc) -> ev.ToolApprove | None:
    """Return a person's decision on a call, from the answer to `session/request_permission`.

    None if the message answers no such request.
    """
    session_id, _, place = str(message.id).partition("/")
    response_id, _, call_id = place.partition("/")
    if not call_id:
        return None
    outcome = message.result.get("outcome") if isinstance(message.result, dict) else None
    chosen = outcome.get("optionId") if isinstance(outcome, dict) else None
    return ev.ToolApprove(
        session_id=session_id,
        call_id=call_id,
        response_id=response_id,
        approved=chosen == write.ALLOW,
    )
