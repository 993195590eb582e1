"""The mirrors of peers' chats: entries of the home's log, applied in order. Synchronous.

Each entry names the one before it. A known entry changes nothing; after a gap the home is asked to
resume after the last applied entry.
"""

from __future__ import annotations

import logging
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from chat_app.conversation import mirrors as chats
from chat_app.conversation.errors import NotAnEmoji, TooManyPins, TooManyReactions
from chat_app.log.entries import NewMessage
from chat_app.log.history import chat_heads
from chat_app.members.agents.agent_mentions import MentionStop
from chat_app.members.membership import NotAMember, has_left_freely, is_member, last_leaving
from chat_app.members.receipts import mark_read
from chat_app.people.names import clean_title
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.guests import accounts, invitations
from federation_app.guests.contents import FileQuery
from federation_app.guests.names import NAME_CHARS, OWN_CHARS, own_host, read_name
from federation_app.guests.shared_files import message_items, turn_of
from federation_app.message_notes import is_same_text, missing_note, shorten, with_note
from federation_app.models import ChatMirror, Peer
from sessions_app.access import rates
from sessions_app.queue.files import QueuedFile, files_of
from sessions_app.queue.rows import find_waiting, ordered_elsewhere
from uamp.storable_text import storable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.contents.reading_rights import ContentRecord
    from federation_app.guests.contents import ChatEntry, RemotePerson
    from federation_app.guests.fetching import FileProblem

logger = logging.getLogger(__name__)

_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")
_KEY_DIGITS: Final = 18
_MAX_TIME: Final = 2**43
_REASON_CHARS: Final = 40
_WORDS: Final = 500


def query_of_files(peer: Peer, entry: ChatEntry) -> tuple[str, FileQuery] | None:
    """Return the mirror for which an entry's files are fetched, and the query that fetches them.

    None without a file to fetch: the entry is not the next one, a person here sent the files, or no
    one here is still in the chat.
    """
    mirror = ChatMirror.objects.filter(peer=peer, home_chat_id=entry.chat).first()
    message = entry.event.get("message")
    if mirror is None or not entry.files or not isinstance(message, dict):
        return None
    if entry.seq <= mirror.applied_seq or entry.after > max(mirror.applied_seq, entry.start):
        return None
    here = [member for member in entry.members if member.name.rpartition("@")[2] == own_host()]
    users = [user for member in here if (user := _person(peer, entry, member)) is not None]
    reader = next((user for user in users if is_member(mirror.chat_id, user.pk)), None)
    author = None if entry.author is None else _person(peer, entry, entry.author)
    if reader is None or _own_turn(mirror, entry, message, author) is not None:
        return None
    message_id = _id(message, "id")
    return mirror.chat_id, FileQuery(chat=entry.chat, message=message_id, by=str(reader.pk))


def apply(peer: Peer, entry: ChatEntry, files: Sequence[ContentRecord | FileProblem] = ()) -> None:
    """Apply an entry of the log of a peer's chat, with its files; raises EnvelopeError.

    not_found if no person here has joined that chat, conflict after a gap.
    """
    accounts.host_of(peer)
    behind = None
    with transaction.atomic():
        mirror = _mirror(peer, entry)
        applied = mirror.applied_seq
        if mirror.home_epoch not in {"", entry.epoch}:
            # A restored backup: the places after its end are used again.
            applied = min(applied, entry.after)
        if entry.seq <= applied:
            return
        if entry.after > max(applied, entry.start):
            behind = mirror
        else:
            users = [user for member in entry.members if (user := _person(peer, entry, member))]
            users = [user for user in users if not _is_leaving(mirror, user)]
            out = chats.set_chat(
                mirror.chat_id,
                title=entry.title,
                only_owners_pin=entry.only_owners_pin,
                users=users,
            )
            invitations.end(peer, entry.chat, out)
            _apply_event(peer, mirror, entry, files)
            mirror.applied_seq, mirror.is_behind = entry.seq, False
            mirror.home_epoch = entry.epoch
            mirror.save(update_fields=["applied_seq", "home_epoch", "is_behind"])
    if behind is not None:
        ChatMirror.objects.filter(pk=behind.pk).update(is_behind=True)
        raise EnvelopeError(
            EnvelopeCode.CONFLICT, f"The last entry here is {behind.applied_seq}.", detail="after"
        )


def _mirror(peer: Peer, entry: ChatEntry) -> ChatMirror:
    rows = ChatMirror.objects.select_for_update(no_key=True)
    mirror = rows.filter(peer=peer, home_chat_id=entry.chat).first()
    if mirror is not None:
        return mirror
    members = [_person(peer, entry, member) for member in entry.members]
    here = [user for user in members if user is not None and not accounts.is_guest(user)]
    if not here:
        raise EnvelopeError(
            EnvelopeCode.NOT_FOUND, "No person here is in such a chat.", detail="chat"
        )
    chat_id = chats.make_mirror(home=accounts.host_of(peer), title=entry.title, member=here[0])
    return ChatMirror.objects.create(
        peer=peer,
        home_chat_id=entry.chat,
        chat_id=chat_id,
        applied_seq=entry.after,
        sent_seq=chat_heads([chat_id])[chat_id],
    )


def _person(peer: Peer, entry: ChatEntry, person: RemotePerson) -> User | None:
    """Return the account of a person; None for one without an account.

    Of people here the home may name only those who have accepted to join. A name that cannot be an
    account's does not hold up the log.
    """
    try:
        if read_name(person.name).host != own_host():
            return accounts.guest_account(peer, person)
    except EnvelopeError as error:
        logger.warning("a member of a chat of %s was skipped: %s", peer.did, error)
        return None
    if not person.id.isdecimal() or len(person.id) > _KEY_DIGITS:
        return None
    if not invitations.may_join(peer, entry.chat, int(person.id)):
        return None
    return User.objects.filter(pk=int(person.id), is_active=True).first()


def _is_leaving(mirror: ChatMirror, user: User) -> bool:
    """Return whether a person has left the mirror and the home does not know it yet."""
    return (
        has_left_freely(mirror.chat_id, user.pk)
        and last_leaving(mirror.chat_id, [user.pk]) > mirror.sent_seq
    )


def _apply_event(
    peer: Peer,
    mirror: ChatMirror,
    entry: ChatEntry,
    files: Sequence[ContentRecord | FileProblem],
) -> None:
    event = entry.event
    author = None if entry.author is None else _person(peer, entry, entry.author)
    # Changes that a person here made to their own messages are already in the mirror.
    is_own = author is not None and not accounts.is_guest(author)
    match event.get("type"):
        case "message.created":
            _add_message(peer, mirror, entry, author, files)
        case "message.edited" if not is_own:
            chats.edit(
                mirror.chat_id,
                _text(event, "message_id"),
                _limited(_text(event, "content"), author, accounts.host_of(peer)),
                author_id=None if author is None else author.pk,
            )
        case "message.deleted" if not is_own:
            chats.delete(mirror.chat_id, _text(event, "message_id"))
        case "message.read" if author is not None and not is_own:
            _read(mirror.chat_id, author, _text(event, "message_id"))
        case "reaction.added" | "reaction.removed" if author is not None and not is_own:
            _react(mirror.chat_id, event, author)
        case "message.pinned" | "message.unpinned":
            # Pins belong to the chat and follow the home's order, but the home cannot pin in the
            # name of a person here.
            _pin(mirror.chat_id, event, None if is_own else author)
        case "agent.stopped" if event.get("message_id") is not None:
            _stop(mirror.chat_id, event)


def _own_turn(
    mirror: ChatMirror, entry: ChatEntry, message: dict[str, Any], author: User | None
) -> Any:
    """Return the message (`QueuedTurn`) that a person here has written, if it is this one."""
    turn = turn_of(message.get("client_event_id"))
    if turn is None or author is None or accounts.is_guest(author):
        return None
    row = find_waiting(mirror.chat_id, turn, user_id=author.pk)
    text = _text(message, "content").replace("\0", "")
    if row is None or not is_same_text(text, row.text):
        return None
    hashes = [queued_file.content.sha256 for queued_file in files_of(row)]
    return row if hashes == [file.sha256 for file in entry.files] else None


def _add_message(
    peer: Peer,
    mirror: ChatMirror,
    entry: ChatEntry,
    author: User | None,
    files: Sequence[ContentRecord | FileProblem],
) -> None:
    """Append a message. It counts as written by a person here only if it is waiting here."""
    message = entry.event.get("message")
    if not isinstance(message, dict):
        raise malformed("A message.created event must have a message.", detail="event")
    created = message.get("created_at")
    if not isinstance(created, int) or not 0 <= created < _MAX_TIME:
        raise malformed("created_at must be a time in milliseconds.", detail="event")
    text = _text(message, "content").replace("\0", "")
    host = accounts.host_of(peer)
    turn = _own_turn(mirror, entry, message, author)
    if turn is not None:
        # Its full text is here if an envelope had no room for it.
        queued, text = list(files_of(turn)), turn.text
    else:
        described = zip(entry.files, files, strict=False)
        queued = [
            QueuedFile(content, file.description)
            for file, content in described
            if not isinstance(content, str)
        ]
        text = with_note(text, missing_note(len(entry.files) - len(queued), host))
        if author is not None and not accounts.is_guest(author):
            author = None
        text = _limited(text, author, host)
    is_agent = turn is None and message.get("sender_kind") == "agent"
    new = NewMessage(
        id=_id(message, "id"),
        role="assistant" if is_agent else "user",
        # A message of the future would keep its chat first in every list.
        at=min(datetime.fromtimestamp(created / 1000, UTC), timezone.now()),
        name=_shown_name(message, host) if author is None else author.get_username(),
        content=text,
        content_items=message_items(text, queued),
        sender_user_id=None if author is None else author.pk,
        transport="envelope",
        reply_to=_answered(mirror, message, turn),
    )
    try:
        seq = chats.add_message(mirror.chat_id, new)
    except chats.ForeignMessage:
        logger.warning("%s sent a message with an id already in use", peer.did)
        return
    if seq is not None and turn is not None:
        ordered_elsewhere(mirror.chat_id, turn.pk, new.id, seq)


def _answered(mirror: ChatMirror, message: dict[str, Any], turn: Any) -> str | None:
    """Return the message that a message replies to, if it is in the mirror.

    What a person here replied to is known here, so the home cannot change it.
    """
    if turn is None:
        answered = message.get("reply_to")
    else:
        answered = next((item["reply_to"] for item in turn.inputs if item.get("reply_to")), None)
    is_here = isinstance(answered, str) and chats.holds(mirror.chat_id, answered)
    return answered if is_here else None


def _shown_name(message: dict[str, Any], host: str) -> str:
    """Return the name of an author without an account: one line, and the true host at its end."""
    name = clean_title(_text(message, "name")).partition("@")[0][:OWN_CHARS]
    return f"{name}@{host}"[-NAME_CHARS:]


def _limited(text: str, author: User | None, host: str) -> str:
    """Return a text as far as the limits of people here allow it to be stored for its author.

    It is not refused, because the entries after it would have to wait.
    """
    if author is None:
        return text
    largest = settings.UAMP_MESSAGE_BYTES
    size = min(_bytes(text), largest)
    quota = rates.limiter().hit("bytes of text", rates.person(author.pk), cost=size)
    room = largest if quota.allowed else 0
    return text if _bytes(text) <= room else shorten(text, host, room=room, size=_bytes)


def _bytes(text: str) -> int:
    return len(text.encode())


def _read(chat_id: str, author: User, message_id: str) -> None:
    try:
        mark_read(chat_id=chat_id, user_id=author.pk, message_id=message_id)
    except NotAMember:
        return


def _react(chat_id: str, event: dict[str, Any], author: User) -> None:
    is_added = event["type"] == "reaction.added"
    message_id, emoji = _text(event, "message_id"), _text(event, "emoji")
    try:
        chats.react(chat_id, message_id, user_id=author.pk, emoji=emoji, given=is_added)
    except (NotAnEmoji, TooManyReactions):
        logger.warning("a reaction from another server to %s was skipped", message_id)


def _pin(chat_id: str, event: dict[str, Any], author: User | None) -> None:
    is_pinned, message_id = event["type"] == "message.pinned", _text(event, "message_id")
    try:
        chats.pin(
            chat_id, message_id, user_id=None if author is None else author.pk, given=is_pinned
        )
    except TooManyPins:
        logger.warning("another server's pin of %s was skipped", message_id)


def _stop(chat_id: str, event: dict[str, Any]) -> None:
    """Say why an agent of the home does not answer a message; it has no id here."""
    agent, reason, words = (
        storable(_text(event, name))[:limit]
        for name, limit in (("agent", NAME_CHARS), ("reason", _REASON_CHARS), ("message", _WORDS))
    )
    stop = MentionStop(agent_id="", agent=agent, reason=reason, words=words)
    chats.stop(chat_id, _text(event, "message_id"), stop)


def _id(event: dict[str, Any], name: str) -> str:
    value = _text(event, name)
    if _ID.fullmatch(value) is None:
        raise malformed(f"{name} of the event must be an id.", detail="event")
    return value


def _text(event: dict[str, Any], name: str) -> str:
    value = event.get(name)
    if not isinstance(value, str):
        raise malformed(f"{name} of the event must be a string.", detail="event")
    return value
