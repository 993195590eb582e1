"""Writes for sessions (UAMP §5.1, §5.2). Synchronous.

Responses are written by `store`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.db import IntegrityError, transaction

from agents_app import selectors as agents
from chat_app.members import chats, membership
from chat_app.new_rows import insert
from sessions_app.access.standing import agent_disabled, is_private
from sessions_app.models import Session
from sessions_app.selectors import open_session_of, sessions_named
from sessions_app.transitions import HELD
from uamp import ErrorCode, RemoteProtocolError, SessionState

if TYPE_CHECKING:
    import uamp
    from agents_app.selectors import AgentSpec
    from sessions_app.access.principal import Principal
    from sessions_app.records import OpenSession
    from uamp import events as ev

SESSION_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")


def open_session(
    *,
    principal: Principal,
    transport: str,
    create: ev.SessionCreate,
    agent_name: str | None,
    chat_id: str | None,
    held_by: str = "",
    ephemeral: bool = False,
    follows_closed: bool = False,
) -> OpenSession:
    """Open a session, with a new private chat unless the client names a chat.

    With `follows_closed`, the session takes over the client's id of a closed session, and its chat.

    `held_by` is the id of the connection that will hold the session, if any. An `ephemeral` session
    with a private chat is deleted after UAMP_EPHEMERAL_HOURS. Raises RemoteProtocolError:
    chat_not_found, agent_not_found, agent_disabled, unauthorized, session_exists, invalid_event.
    """
    client_id = repeat_id = ""
    try:
        with transaction.atomic():
            _check_chat(principal, chat_id)
            agent = _agent_of_session(principal, agent_name, chat_id)
            client_id = _client_id(principal, create.session.id)
            repeat_id = _repeat_id(principal, create.session.id)
            before = _closed_before(client_id, principal) if follows_closed else None
            if before is None and client_id and sessions_named(client_id, principal).exists():
                raise _session_exists()
            row = Session(
                client_id=client_id,
                user_id=principal.user_id,
                principal=principal.key,
                api_key_id=principal.api_key_id,
                agent_id=agent.id if agent else None,
                chat_scoped=chat_id is not None,
                status=HELD if held_by else SessionState.IDLE,
                held_by=held_by,
                transport=transport,
                uamp_version=create.uamp_version[:10],
                config=msgspec.to_builtins(msgspec.structs.replace(create.session, id=None)),
                client_capabilities=(
                    msgspec.to_builtins(create.client_capabilities)
                    if create.client_capabilities
                    else None
                ),
            )
            _put_in_chat(row, chat_id, agent, before)
            row.ephemeral = ephemeral and chat_id is None
            row.pk = repeat_id or row.pk
            row.opened_seq = row.chat.last_seq
            insert(row)
    except IntegrityError:
        named = sessions_named(client_id, principal) if client_id else Session.objects.none()
        if repeat_id:
            named = Session.objects.filter(pk=repeat_id)
        if named.exists():
            raise _session_exists() from None  # another connection won the race
        raise
    return open_session_of(row, principal, agent_name=agent.name if agent else None)


def _session_exists() -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.SESSION_EXISTS, "You used this session id before. Leave it out."
    )


def _closed_before(client_id: str, principal: Principal) -> Session | None:
    """Return the closed session that has the client's id, after freeing the id."""
    named = sessions_named(client_id, principal) if client_id else Session.objects.none()
    before = named.select_related("chat").filter(status=SessionState.CLOSED).first()
    if before is not None:
        Session.objects.filter(pk=before.pk).update(client_id="")
    return before


def _client_id(principal: Principal, suggested: str | None) -> str:
    """Return the client's choice of session id, or "" to have the server choose.

    Anyone who knows the id of a visitor's session can use it, so the server always chooses those.
    """
    if not suggested or principal.is_visitor:
        return ""
    if not SESSION_ID.fullmatch(suggested):
        raise RemoteProtocolError(
            ErrorCode.INVALID_EVENT,
            "A session id may have at most 64 letters, digits, '-', '_', '.'.",
        )
    return suggested


def _repeat_id(principal: Principal, suggested: str | None) -> str:
    """Return the server-chosen session id that a visitor's repeated batch names, or ""."""
    is_repeat = principal.repeat and suggested and suggested.startswith(principal.repeat)
    return suggested if is_repeat and principal.is_visitor and suggested else ""


def _agent_of_session(
    principal: Principal, agent_name: str | None, chat_id: str | None
) -> AgentSpec | None:
    """Return the agent that a session names, or the default agent for a private chat."""
    if agent_name is None and chat_id is not None:
        return None  # the chat's members and their trigger rules decide
    name = agent_name or settings.UAMP_DEFAULT_AGENT
    if chat_id is not None:
        spec = _agent_of_chat(principal, name, chat_id)
    else:
        remembered = agents.remembered_agent(name, user_id=principal.user_id)
        spec = agent_by_name(name, principal) if remembered is None else remembered
    if not principal.rights.may_ask(spec.id):
        raise _agent_not_found(name)
    if principal.is_visitor and not settings.UAMP_ALLOW_ANONYMOUS:
        raise RemoteProtocolError(ErrorCode.UNAUTHORIZED, "Sign in, or send a token.")
    return spec


def _agent_of_chat(principal: Principal, name: str, chat_id: str) -> AgentSpec:
    members = membership.all_agent_members(chat_id, asker=principal.user_id)
    member = next((entry for entry in members if entry.is_named(name)), None)
    if member is None:
        # The name may be spelled in another form; an unknown agent is refused as everywhere.
        agent_id = agent_by_name(name, principal).id
        member = next((entry for entry in members if entry.agent_id == agent_id), None)
    if member is None:
        raise RemoteProtocolError(
            ErrorCode.AGENT_NOT_FOUND, f"There is no agent {name!r} in this chat."
        )
    if not member.is_usable:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, is_private(name))
    if not member.is_enabled:
        raise RemoteProtocolError(*agent_disabled(member.name))
    return agents.get_spec(member.agent_id)


def agent_by_name(name: str, principal: Principal) -> AgentSpec:
    """Return an agent that the principal may use.

    Raises RemoteProtocolError: agent_disabled, or agent_not_found if it is unknown or not theirs.
    """
    spec = agents.get_agent(name, viewer=principal.user_id)
    off = None
    if spec is None:
        off = agents.get_agent(name, viewer=principal.user_id, is_enabled=False)
    agent = spec or off
    if agent is None or not principal.rights.may_ask(agent.id):
        raise _agent_not_found(name)
    if spec is None:
        raise RemoteProtocolError(*agent_disabled(agent.name))
    return spec


def _agent_not_found(name: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.AGENT_NOT_FOUND, f"There is no agent {name!r} that you may use."
    )


def is_member(session: OpenSession) -> bool:
    """Return whether the session's person is still a member of its chat."""
    return membership.is_member(session.chat_id, session.principal.user_id)


def _check_chat(principal: Principal, chat_id: str | None) -> None:
    """Raise RemoteProtocolError chat_not_found for strangers, before any other check.

    A credential without rights to the chat counts as a stranger's. A credential limited to certain
    chats cannot create others.
    """
    if chat_id is None:
        if principal.rights.chats is not None:
            raise RemoteProtocolError(
                ErrorCode.FORBIDDEN,
                "This credential is restricted to certain chats. Specify one in `chat`.",
            )
        return
    if not principal.rights.sees_chat(chat_id) or not membership.is_member(
        chat_id, principal.user_id
    ):
        raise RemoteProtocolError(
            ErrorCode.CHAT_NOT_FOUND, "There is no such chat, or you are not in it."
        )


def _put_in_chat(
    row: Session, chat_id: str | None, agent: AgentSpec | None, before: Session | None
) -> None:
    """Set the session's chat: the given one, the closed session's, or a new private one.

    The closed session's private chat is reused if its person and agent are unchanged. A new chat is
    not read back.
    """
    if chat_id is not None:
        row.chat_id = chat_id
        return
    if (
        before is not None
        and not before.chat_scoped
        and before.agent_id == row.agent_id
        and membership.is_member(before.chat_id, row.user_id)
    ):
        row.chat = before.chat
        return
    row.chat = chats.create_chat(
        title="",
        created_by_id=row.user_id,
        user_ids=[] if row.user_id is None else [row.user_id],
        agents=[] if agent is None else [(agent.id, "always")],
        kind="session",
    )


def update_session(
    session_id: str,
    *,
    config: uamp.SessionConfig | None = None,
    client_capabilities: uamp.Capabilities | None = None,
) -> None:
    """Store a changed configuration or changed client capabilities (UAMP §5.2, §5.5)."""
    changes: dict[str, Any] = {}
    if config is not None:
        changes["config"] = msgspec.to_builtins(config)
    if client_capabilities is not None:
        changes["client_capabilities"] = msgspec.to_builtins(client_capabilities)
    if changes:
        Session.objects.filter(pk=session_id).update(**changes)


def keep_payment_token(session: OpenSession, token_id: str) -> None:
    """Have a payment token pay for a session's next answers (UAMP §5.1, §5.2).

    Anyone who knows the id of a visitor's session may use it, so there the token pays only for what
    is asked over the connection that presented it, and is not stored with the session.
    """
    session.payment_token_id = token_id
    if not session.principal.is_visitor:
        Session.objects.filter(pk=session.id).update(payment_token_id=token_id)
