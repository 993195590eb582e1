"""The chats of one caller, for protocols whose clients manage conversations and their messages.

Every method checks that the caller is in the chat: to others, it does not exist. Methods raise
RemoteProtocolError.
"""

from __future__ import annotations

import uuid
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Final
from urllib.parse import urljoin

from django.contrib.auth.models import User
from django.db import IntegrityError

from agents_app.rest.rights import MissingRight
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.errors import MessageNotFound, NotTheAuthor
from chat_app.log import history
from chat_app.members import chats, membership, participants
from chat_app.members.chat_lists import metadata_of
from chat_app.members.membership import NotAMember
from chat_app.members.rights import NotAllowed
from gateway_app.backend.content_links import content_link
from sessions_app import database, services
from sessions_app.access.protocol_rights import check_scope, forbidden
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from sessions_app.access.principal import Principal
    from uamp import ChatMessage

_NAMESPACE: Final = uuid.UUID("0d4f6f5e-6a57-4a3e-8a55-58f4b2b0c0a1")


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredConversation:
    """A chat; `created_at` is in Unix seconds. `is_open` chats take in agents that are asked."""

    id: str
    created_at: int
    metadata: Mapping[str, str]
    is_open: bool


class Conversations:
    """The chats of one caller. `address` is the request's URL as the client addressed it."""

    def __init__(self, principal: Principal, address: str) -> None:
        self._principal = principal
        self._address = address

    async def create(
        self, metadata: Mapping[str, str], *, agent: str, key: str
    ) -> StoredConversation:
        """Create a chat of the caller with an agent, if one is named.

        The same `key` of an idempotent request leads to the same chat.
        """
        check_scope(self._principal, "chats:write")
        if self._principal.rights.chats is not None:
            raise RemoteProtocolError(
                ErrorCode.FORBIDDEN,
                "This credential is restricted to certain chats and cannot create others.",
            )
        return await database.run(partial(self._create, metadata, agent, key))

    def _create(self, metadata: Mapping[str, str], agent: str, key: str) -> StoredConversation:
        user_id = self._user_id
        agents = [services.agent_by_name(agent, self._principal)] if agent else []
        name = f"{user_id}:{self._principal.credential}:{key}"
        chat_id = f"chat_{uuid.uuid5(_NAMESPACE, name).hex}" if key else ""
        create = partial(
            chats.create_chat,
            title="",
            created_by_id=user_id,
            user_ids=[user_id],
            # In a chat with a single agent, every message addresses it.
            agents=[(spec.id, "always") for spec in agents],
            metadata=metadata,
            chat_id=chat_id,
        )
        with suppress(IntegrityError):  # the first request with the key created it
            chat_id = create().pk
        return self._find(chat_id)

    async def find(self, conversation_id: str) -> StoredConversation:
        """Return a chat."""
        check_scope(self._principal, "chats:read")
        return await database.run(self._find, conversation_id)

    def _find(self, conversation_id: str) -> StoredConversation:
        metadata = metadata_of(conversation_id, reader_id=self._user_id)
        if metadata is None or not self._principal.rights.sees_chat(conversation_id):
            raise _no_conversation(conversation_id)
        return StoredConversation(
            id=metadata.id,
            created_at=int(metadata.created_at.timestamp()),
            metadata=metadata.metadata or {},
            is_open=metadata.metadata is not None,
        )

    async def set_metadata(self, conversation_id: str, metadata: Mapping[str, str]) -> None:
        """Replace the metadata of a chat."""
        await self._change(
            conversation_id,
            partial(
                chats.set_metadata,
                chat_id=conversation_id,
                changed_by_id=self._user_id,
                metadata=metadata,
            ),
        )

    async def delete(self, conversation_id: str) -> None:
        """Delete a chat for everyone."""

        def delete() -> None:
            participants.delete_chat(chat_id=conversation_id, deleted_by=self._user())

        await self._change(conversation_id, delete)

    async def take_in(self, conversation_id: str, agent: str) -> None:
        """Add an agent to an open chat, if it is not in there."""

        def take_in() -> None:
            if not self._find(conversation_id).is_open:
                return
            spec = services.agent_by_name(agent, self._principal)
            members = membership.all_agent_members(conversation_id, asker=None)
            if spec.id in {member.agent_id for member in members}:
                return
            check_scope(self._principal, "chats:write")
            participants.add_participant(
                chat_id=conversation_id,
                added_by=self._user(),
                agent_id=spec.id,
                trigger="mention" if members else "always",
                rights=self._principal.rights,
            )

        with _refused(conversation_id):
            await database.run(take_in)

    async def _change(self, conversation_id: str, change: Callable[[], None]) -> None:
        check_scope(self._principal, "chats:write")

        def checked() -> None:
            self._find(conversation_id)
            change()

        with _refused(conversation_id):
            await database.run(checked)

    # --- Messages ---

    async def messages(
        self, conversation_id: str, start: str, *, is_descending: bool, limit: int
    ) -> Sequence[ChatMessage]:
        """Return current messages from the message `start` on, or from an end of the chat."""
        await self.find(conversation_id)
        read = partial(
            history.messages_from,
            conversation_id,
            start,
            is_descending=is_descending,
            limit=limit,
        )
        return await database.run(read)

    async def message_of_response(self, conversation_id: str, response_id: str) -> str:
        """Return the id of the message that a response wrote in a chat; '' if none did."""
        await self.find(conversation_id)
        return await database.run(history.message_of_response, conversation_id, response_id)

    async def delete_message(self, conversation_id: str, message_id: str) -> None:
        """Delete a message, as its author or as an owner of the chat."""
        check_scope(self._principal, "messages:write")

        def delete() -> None:
            self._find(conversation_id)
            delete_message(chat_id=conversation_id, message_id=message_id, user_id=self._user_id)

        with _refused(conversation_id):
            await database.run(delete)

    def link_in(self, conversation_id: str) -> Callable[[str], str]:
        """Return a function that gives temporary addresses to the media of a chat."""
        return partial(
            content_link,
            base_url=urljoin(self._address, "/"),
            user_id=self._user_id,
            chat_id=conversation_id,
        )

    @property
    def _user_id(self) -> int:
        if self._principal.user_id is None:
            raise RemoteProtocolError(ErrorCode.UNAUTHORIZED, "Sign in, or send a token.")
        return self._principal.user_id

    def _user(self) -> User:
        return User.objects.get(pk=self._user_id)


@contextmanager
def _refused(conversation_id: str) -> Iterator[None]:
    """Convert refusals of the chat's services."""
    try:
        yield
    except NotAMember:
        raise _no_conversation(conversation_id) from None
    except MessageNotFound:
        raise RemoteProtocolError(
            ErrorCode.MESSAGE_NOT_FOUND, "The conversation has no such item."
        ) from None
    except MissingRight as missing:
        raise forbidden(missing) from None
    except NotAllowed as error:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, str(error)) from None
    except NotTheAuthor:
        raise RemoteProtocolError(
            ErrorCode.FORBIDDEN, "Only its author or an owner may delete it."
        ) from None


def _no_conversation(conversation_id: str) -> RemoteProtocolError:
    return RemoteProtocolError(
        ErrorCode.CHAT_NOT_FOUND, f"Conversation with id {conversation_id!r} not found."
    )
