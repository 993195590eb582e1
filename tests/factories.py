"""Rows for tests: one function per model, with the minimum of valid data.

A message created here is also in the chat's log, as if a service had written it.
"""

from __future__ import annotations

import io
import uuid
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from django.contrib.auth.models import User
from django.utils import timezone
from PIL import Image

from agents_app import connections
from agents_app.models import Agent, AgentConnection
from chat_app.contents import quota, storage
from chat_app.log import entries
from chat_app.members import chats
from chat_app.models import Chat, ChatKind, Message, ParticipantReplyTrigger, Presence
from sessions_app.models import (
    QueuedTurn,
    Response,
    Session,
    SessionTransport,
    ToolCall,
    ToolCallKind,
)
from sessions_app.states import ToolCallState

if TYPE_CHECKING:
    from chat_app.models import Content


def user(username: str = "ada", **fields: Any) -> User:
    """Create a person with the password `password`."""
    return User.objects.create_user(username, password="password", **fields)


def superuser(username: str = "root") -> User:
    """Create a superuser."""
    return User.objects.create_superuser(username, password="password")


def agent(name: str = "echo", **fields: Any) -> Agent:
    """Create a public scripted agent."""
    defaults: dict[str, Any] = {"is_public": True, "options": {"script": "echo"}}
    return Agent.objects.create(name=name, **{**defaults, **fields})


def daemon(process: str, agent_id: str, *, connection: str, **fields: Any) -> AgentConnection:
    """Register an agent on a socket; raises connections.CannotRegister."""
    seconds = fields.pop("seconds", connections.LEASE_SECONDS)
    new = connections.NewConnection(agent_id, connection, **fields)
    (key,) = connections.open_connections(process, [new], seconds=seconds)
    if isinstance(key, connections.CannotRegister):
        raise key
    return AgentConnection.objects.get(pk=key)


def chat(*members: User | Agent, title: str = "", kind: str = ChatKind.GROUP) -> Chat:
    """Create a chat with these members; the first person owns it."""
    people = [member for member in members if isinstance(member, User)]
    return chats.create_chat(
        title=title,
        created_by_id=people[0].pk if people else None,
        user_ids=[person.pk for person in people],
        agents=[(m.pk, ParticipantReplyTrigger.ALWAYS) for m in members if isinstance(m, Agent)],
        kind=kind,
    )


def message(in_chat: Chat, sender: User | Agent, text: str = "Hello", **fields: Any) -> Message:
    """Create a message and append it to the chat's log."""
    new = entries.NewMessage(
        id=f"msg_{uuid.uuid4().hex}",
        role="assistant" if isinstance(sender, Agent) else "user",
        at=timezone.now(),
        name=str(sender),
        content=text,
        sender_user_id=sender.pk if isinstance(sender, User) else None,
        sender_agent_id=sender.pk if isinstance(sender, Agent) else None,
        **fields,
    )
    entries.append(in_chat.pk, [entries.message_event(in_chat.pk, new)], at=new.at)
    return Message.objects.get(pk=new.id)


def session(of: User, in_chat: Chat, **fields: Any) -> Session:
    """Create a session of a person in a chat."""
    return Session.objects.create(
        user=of,
        principal=f"user:{of.pk}",
        chat=in_chat,
        transport=SessionTransport.WEBSOCKET,
        uamp_version="1.0",
        **fields,
    )


def queued_turn(of: User, in_session: Session, **fields: Any) -> QueuedTurn:
    """Queue a message."""
    fields.setdefault("event_id", f"queued_{uuid.uuid4().hex}")
    return QueuedTurn.objects.create(
        chat=in_session.chat,
        session=in_session,
        user=of,
        inputs=[{"type": "input.text", "text": "Later"}],
        create={"type": "response.create"},
        text="Later",
        **fields,
    )


def response(by: Agent, in_chat: Chat, **fields: Any) -> Response:
    """Create a running response of an agent; with a final state, one that has just ended."""
    if fields.get("status") not in {None, *Response.LIVE}:
        fields.setdefault("finished_at", timezone.now())
    if by.pricing:
        fields.setdefault("request", {"pricing": by.pricing})
    return Response.objects.create(agent=by, chat=in_chat, **fields)


def tool_call(of: Response, name: str = "csv_report", **fields: Any) -> ToolCall:
    """Create a running long tool call."""
    defaults: dict[str, Any] = {
        "call_id": f"call_{uuid.uuid4().hex}",
        "kind": ToolCallKind.LONG,
        "status": ToolCallState.RUNNING,
        "deadline": timezone.now() + timedelta(minutes=5),
    }
    return ToolCall.objects.create(response=of, name=name, **{**defaults, **fields})


def presence(of: User) -> Presence:
    """Create an open socket of a person."""
    return Presence.objects.create(id=uuid.uuid4().hex, user=of, process="tests")


def png(width: int = 2, height: int = 2) -> bytes:
    """Return the bytes of a small red picture."""
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "red").save(buffer, "PNG")
    return buffer.getvalue()


def content(
    owner: User, data: bytes | None = None, *, mime_type: str = "image/png", filename: str = "a.png"
) -> Content:
    """Store a file of a person, an image by default."""
    return storage.store(
        png() if data is None else data,
        mime_type=mime_type,
        filename=filename,
        owner=quota.ContentOwner(user_id=owner.pk),
    )
