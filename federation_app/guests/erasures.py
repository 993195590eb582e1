"""The erasure of people across servers: each peer that has their messages is informed. Synchronous.

A peer knows a person by the chats that they shared with its own people. It is informed until it has
accepted (`outgoing`), even if none of them is still in the chat.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from chat_app.conversation.erasure import chats_of
from chat_app.members.membership import people_ever_in
from federation_app.guests import accounts, invitations
from federation_app.models import ErasureNotice, Guest

if TYPE_CHECKING:
    from django.contrib.auth.models import User


def note_erasure(user: User) -> None:
    """Note which peers are to be informed that a person is erased; needs a transaction."""
    invitations.forget(user)
    if accounts.is_guest(user):
        return
    shared = people_ever_in(chats_of(user.pk))
    guests = Guest.objects.filter(user_id__in=shared)
    for peer_id in guests.values_list("peer", flat=True).distinct():
        ErasureNotice.objects.get_or_create(peer_id=peer_id, user=user)
