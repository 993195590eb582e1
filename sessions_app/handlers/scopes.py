"""The credential scope that each client event requires (`agents_app.rest.rights`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agents_app.rest.rights import ANY, EVERYTHING
from sessions_app.access.protocol_rights import check_scope
from uamp import events as ev

if TYPE_CHECKING:
    import uamp
    from sessions_app.connection.client_connection import ClientConnection

SCOPES: Final[dict[type[uamp.Event], str]] = {
    ev.SessionCreate: "chats:read",
    ev.SessionUpdate: ANY,
    ev.SessionEnd: ANY,
    ev.CapabilitiesQuery: ANY,
    ev.ClientCapabilities: ANY,
    ev.InputText: "messages:write",
    ev.InputAudio: "messages:write",
    ev.InputImage: "messages:write",
    ev.InputVideo: "messages:write",
    ev.InputFile: "messages:write",
    ev.InputTyping: "messages:write",
    ev.ResponseCreate: "messages:write",
    ev.ResponseCancel: "messages:write",
    ev.QueueRemove: "messages:write",
    ev.QueueStart: "messages:write",
    ev.ToolResult: "messages:write",
    ev.ToolApprove: "tools:approve",
    ev.PaymentSubmit: "payments:write",
    ev.VoiceInvite: "messages:write",
    ev.VoiceAccept: "messages:write",
    ev.VoiceDecline: "messages:write",
    ev.VoiceEnd: "messages:write",
    ev.CallSignal: "messages:write",
    ev.CallAgentAdd: "messages:write",
    ev.CallAgentRemove: "messages:write",
    ev.CallAgentState: "messages:write",
    ev.MessageRead: "messages:write",
    ev.MessageEdit: "messages:write",
    ev.MessageDelete: "messages:write",
    ev.MessagePin: "messages:write",
    ev.MessageUnpin: "messages:write",
    ev.ReactionAdd: "messages:write",
    ev.ReactionRemove: "messages:write",
    ev.ChatUpdate: "chats:write",
    ev.ChatFork: "chats:write",
    ev.ParticipantAdd: "chats:write",
    ev.ParticipantRemove: "chats:write",
    ev.ParticipantUpdate: "chats:write",
    ev.StateUpdate: "messages:write",
    ev.ChatsWatch: "chats:read",
    ev.Ping: ANY,
}


def check_event(connection: ClientConnection, event: uamp.Event) -> None:
    """Raise RemoteProtocolError forbidden if the credential of an event lacks the right to it.

    That is the credential of the event's session or else of the connection. `session.create` is
    checked in its handler, since it may bring a token.
    """
    if isinstance(event, ev.SessionCreate):
        return
    attached = connection.sessions.get(event.session_id or "")
    principal = connection.principal if attached is None else attached.session.principal
    check_scope(principal, SCOPES.get(type(event), EVERYTHING))
