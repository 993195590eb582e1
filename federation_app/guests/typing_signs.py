"""Signs that someone types, between servers: not stored, and lost without harm.

They bypass the order of messages (`outgoing`), so that they never delay one. A peer gets at most
one in `SECONDS`, and none while something else is posted to it, the last one is under way, or it
does not answer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.contrib.auth.models import User
from django.utils import timezone

from chat_app.log import fanout
from chat_app.members.membership import is_member
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members.reading import Intent
from federation_app.guests import accounts
from federation_app.guests.posts import SignedPost, sign
from federation_app.models import ChatFollower, ChatMirror
from federation_app.peers import registry
from sessions_app import database
from sessions_app.frames import frame
from uamp import events as ev

if TYPE_CHECKING:
    from federation_app.guests.contents import TypingSign
    from federation_app.models import Peer

SECONDS: Final = 3.0
MAX_CHATS: Final = 5000
_MARK: Final = '"presence.typing"'


def sign_in(message: dict[str, Any]) -> tuple[int, bool] | None:
    """Return the person in a typing message of the layer and whether they still type, or None."""
    if message.get("user") is None or _MARK not in message["frame"]:
        return None
    event = msgspec.json.decode(message["frame"])
    return message["user"], event.get("is_typing") is True


def signs_for(chat_id: str, user_id: int, *, is_typing: bool) -> list[SignedPost]:
    """Return the envelopes which say that a person of this server types in a chat. Synchronous."""
    user = User.objects.filter(pk=user_id, is_active=True).first()
    if user is None or accounts.is_guest(user):
        return []
    rows = [
        (row.peer_id, row.home_chat_id) for row in ChatMirror.objects.filter(chat_id=chat_id)
    ] or [(row.peer_id, chat_id) for row in ChatFollower.objects.filter(chat_id=chat_id)]
    homes = dict(rows)
    ready = registry.trusted_peers().filter(
        pk__in=homes, failures=0, deliver_at__lte=timezone.now()
    )
    return [
        sign(
            peer,
            Intent.INFORM,
            {
                "act": "typing",
                "chat": homes[peer.pk],
                "by": accounts.remote_people(peer, [user])[0],
                "is_typing": is_typing,
            },
        )
        for peer in ready
    ]


async def show(peer: Peer, sign: TypingSign) -> None:
    """Show the members of a chat here that a person of a peer types; raises EnvelopeError."""
    chat_id, user = await database.run(_place, peer, sign)
    event = ev.PresenceTyping(
        user_id=str(user.pk),
        username=user.get_username(),
        is_typing=sign.is_typing,
        chat_id=chat_id,
    )
    await fanout.send(
        fanout.chat_group(chat_id),
        fanout.signal_message(chat_id=chat_id, frame=frame(event), user_id=user.pk),
    )


def _place(peer: Peer, sign: TypingSign) -> tuple[str, User]:
    """Return the chat or mirror of a sign, and the account of its author, a member of it."""
    user = accounts.find_guest(peer, sign.by)
    mirror = ChatMirror.objects.filter(peer=peer, home_chat_id=sign.chat).first()
    chat_id = sign.chat if mirror is None else mirror.chat_id
    if not is_member(chat_id, user.pk):
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such chat.", detail="chat")
    return chat_id, user


def concerned_chats() -> frozenset[str]:
    """Return the chats whose changes wake a delivery: followed ones, and mirrors of peers' chats.

    At most MAX_CHATS of each, the newest. In other chats, a periodic job finds what is due, and
    typing is not shown.
    """
    chat_ids: set[str] = set()
    for rows in (ChatFollower.objects.all(), ChatMirror.objects.all()):
        chat_ids.update(rows.order_by("-created_at").values_list("chat_id", flat=True)[:MAX_CHATS])
    return frozenset(chat_ids)
