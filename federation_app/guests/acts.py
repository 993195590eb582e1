"""Actions of guests in chats here; each uses the same service as a member's (ADR 66)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NoReturn

import msgspec
from django.db.models import F, Value
from django.db.models.functions import Greatest
from django.utils import timezone

import uamp
from chat_app.contents import storage
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.erasure import leave
from chat_app.conversation.errors import (
    EmptyMessage,
    MessageNotFound,
    NotAnEmoji,
    NotTheAuthor,
    PinsAreTheOwners,
    TooManyPins,
    TooManyReactions,
    TooManyRevisions,
)
from chat_app.conversation.pins import pin_message, unpin_message
from chat_app.conversation.reactions import add_reaction, remove_reaction
from chat_app.conversation.revisions import edit_message
from chat_app.members.membership import NotAMember, is_member
from chat_app.members.receipts import mark_read
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.guests import accounts, fetching
from federation_app.guests.contents import (
    FileQuery,
    GuestDeletion,
    GuestEdit,
    GuestLeaving,
    GuestMessage,
    GuestPin,
    GuestReaction,
    GuestReactionRemoval,
    GuestRead,
    GuestUnpin,
    PersonErasure,
)
from federation_app.guests.shared_files import input_of
from federation_app.models import ChatFollower, Guest, Peer
from sessions_app import database
from sessions_app.access import rates
from sessions_app.access.principal import Principal, PrincipalKind
from sessions_app.connection.defaults import Defaults
from sessions_app.connection.rate_limit import RateLimited, count_text
from sessions_app.data_rights.erasure import StillRunning, erase_person
from sessions_app.handlers.chats.messages import size_of_edit
from sessions_app.handlers.sessions import find_session
from sessions_app.transports.followed_response import FollowedResponse
from sessions_app.transports.http_exchange import HttpExchange
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    from django.contrib.auth.models import User

    from chat_app.contents.reading_rights import ContentRecord
    from federation_app.guests.contents import ActInOrder, ActOnMessage, Continuation

TRANSPORT: Final = "envelope"
UNPAID: Final = "The agent has a price, and no one pays for guests in this chat."


async def say(peer: Peer, message: GuestMessage) -> None:
    """Send a guest's message to a chat, once; raises EnvelopeError and RemoteProtocolError.

    An answer that no one has agreed to pay for is refused with the message.
    """
    user, is_known = await database.run(_sender, peer, message)
    if is_known:
        return
    files = await _files_of(peer, user, message)
    principal = Principal(
        key=PrincipalKind.PERSON.key(user.pk), user_id=user.pk, username=user.get_username()
    )
    http = HttpExchange(None, principal, TRANSPORT, defaults=Defaults(follows_closed=True))
    http.connection.pay = _refuse_to_pay
    followed = FollowedResponse(http)
    session_id = f"guest-{message.chat}"
    try:
        if (open_session := await find_session(session_id, principal)) is not None:
            await http.join_found(open_session)
        else:
            session = uamp.SessionConfig(id=session_id)
            await followed.take(ev.SessionCreate(session=session, chat=message.chat))
            followed.check()
        for event in _inputs(message, files):
            await http.take(msgspec.json.encode({**event, "session_id": session_id}))
            followed.check()
        await followed.take(ev.ResponseCreate(session_id=session_id, event_id=message.ref))
        followed.check()
    except RemoteProtocolError as error:
        await database.run(_discard, files)
        raise _final_or_passing(error) from None
    finally:
        await http.close()
    await database.run(_note, peer, message, files)


async def _files_of(peer: Peer, user: User, message: GuestMessage) -> list[ContentRecord]:
    """Return the files of a guest's message, stored here; raises EnvelopeError."""
    if not message.files:
        return []
    query = FileQuery(chat=message.chat, ref=message.ref)
    results = await fetching.fetch_files(
        peer, message.files, query, chat_id=message.chat, user_id=user.pk
    )
    files = [result for result in results if not isinstance(result, str)]
    problems = [result for result in results if isinstance(result, str)]
    if not problems:
        return files
    await database.run(_discard, files)
    code = EnvelopeCode.CONFLICT
    if {fetching.FileProblem.TOO_LARGE, fetching.FileProblem.NO_ROOM} & set(problems):
        code = EnvelopeCode.TOO_LARGE
    raise EnvelopeError(code, f"A file of the message {problems[0]}.", detail="files")


def _discard(files: Sequence[ContentRecord]) -> None:
    """Delete the files of a message that was refused."""
    since = min((content.created_at for content in files), default=timezone.now())
    storage.discard([str(content.pk) for content in files], since=since)


def _inputs(message: GuestMessage, files: Sequence[ContentRecord]) -> list[dict[str, Any]]:
    """Return the client events of a guest's message."""
    events: list[dict[str, Any]] = [
        input_of(content, file.description)
        for content, file in zip(files, message.files, strict=True)
    ]
    if message.text or not files:
        events.insert(0, {"type": "input.text", "text": message.text})
    if message.reply_to is not None:
        events[0]["reply_to"] = message.reply_to
    return [{**event, "event_id": f"{message.ref}-{number}"} for number, event in enumerate(events)]


async def _refuse_to_pay(*_answer: object) -> NoReturn:
    raise RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, UNPAID)


def _sender(peer: Peer, message: GuestMessage) -> tuple[User, bool]:
    user = _member(peer, message)
    is_known = ChatFollower.objects.filter(
        peer=peer, chat_id=message.chat, last_message=message.ref
    ).exists()
    return user, is_known


def _member(peer: Peer, act: GuestMessage | ActOnMessage) -> User:
    user = accounts.find_guest(peer, act.by)
    if not is_member(act.chat, user.pk):
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such chat.", detail="chat")
    return user


def _note(peer: Peer, message: GuestMessage, files: Sequence[ContentRecord]) -> None:
    storage.keep_for_chat([str(content.pk) for content in files], message.chat)
    ChatFollower.objects.filter(peer=peer, chat_id=message.chat).update(last_message=message.ref)


def do(peer: Peer, act: ActInOrder) -> None:
    """Carry out what a guest did; a repeat changes nothing.

    Raises EnvelopeError, and RemoteProtocolError for an edit that is too large.
    """
    if isinstance(act, PersonErasure):
        _erase(peer, act)
        return
    if isinstance(act, GuestLeaving):
        leave(act.chat, accounts.find_guest(peer, act.by))
        return
    user = _member(peer, act)
    try:
        _act(act, user.pk)
    except (MessageNotFound, NotAMember):
        raise EnvelopeError(
            EnvelopeCode.NOT_FOUND, "There is no such message.", detail="message"
        ) from None
    except NotTheAuthor:
        raise EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "The message was written by someone else.", detail="message"
        ) from None
    except PinsAreTheOwners as error:
        raise EnvelopeError(EnvelopeCode.UNAUTHORIZED, str(error), detail="message") from None
    except NotAnEmoji:
        raise malformed("A reaction must be one emoji.", detail="emoji") from None
    except (EmptyMessage, TooManyPins, TooManyReactions, TooManyRevisions):
        raise EnvelopeError(
            EnvelopeCode.CONFLICT,
            "The chat or the message has reached a limit, or the message would be empty.",
            detail="message",
        ) from None


def _act(act: ActOnMessage, user_id: int) -> None:
    on: dict[str, Any] = {"chat_id": act.chat, "message_id": act.message, "user_id": user_id}
    match act:
        case GuestEdit():
            _count(user_id, act.text)
            edit_message(**on, content=act.text)
        case GuestDeletion():
            delete_message(**on)
        case GuestRead():
            mark_read(**on)
        case GuestReaction():
            add_reaction(**on, emoji=act.emoji)
        case GuestReactionRemoval():
            remove_reaction(**on, emoji=act.emoji)
        case GuestPin():
            pin_message(**on)
        case GuestUnpin():
            unpin_message(**on)


def _count(user_id: int, text: str) -> None:
    """Count the text of an edit; raises RemoteProtocolError and EnvelopeError."""
    try:
        count_text(rates.person(user_id), size_of_edit(text))
    except RemoteProtocolError as error:
        raise _final_or_passing(error) from None


def _final_or_passing(error: RemoteProtocolError) -> Exception:
    """Return an error that a guest's server takes as final, for a limit that lasts.

    The guest's server retries refusals by other limits, and delivers nothing else until they pass.
    """
    if isinstance(error, RateLimited) and error.lasts:
        return EnvelopeError(EnvelopeCode.CONFLICT, error.message, detail="text")
    return error


def _erase(peer: Peer, act: PersonErasure) -> None:
    """Erase the account of a person who was erased on their own server; raises EnvelopeError busy.

    It holds their messages in chats here and in mirrors, and a blocked person is erased as well.
    """
    accounts.own_name(peer, act.by)
    row = Guest.objects.filter(peer=peer, remote_id=act.by.id).select_related("user").first()
    if row is None:
        return
    try:
        erase_person(row.user, reason="Erased on their own server.", wait=0)
    except StillRunning:
        raise EnvelopeError(EnvelopeCode.BUSY, "Answers to the person are still running.") from None


def go_on(peer: Peer, place: Continuation) -> None:
    """Send the log of a chat to a peer again after a place; raises EnvelopeError not_found."""
    rows = ChatFollower.objects.filter(peer=peer, chat_id=place.chat)
    if not rows.exists():
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such chat.", detail="chat")
    # What was written before its first guest joined is not for the peer.
    after = Greatest(F("first_seq"), Value(place.after))
    rows.filter(sent_seq__gt=place.after).update(sent_seq=after)
