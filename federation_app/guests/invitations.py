"""Invitations across servers, on both sides: made, answered, withdrawn, received. Synchronous.

An invitation is one row on each side. Its state is sent until the other server has accepted it
(`outgoing`). The home of the chat decides whether an acceptance counts.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Final

from django.db import transaction

from chat_app.log.history import chat_heads
from chat_app.members.inviting import CannotInvite, check_may_invite
from chat_app.members.membership import NotAMember, is_member
from chat_app.members.participants import add_participant
from chat_app.members.rights import NotAllowed
from chat_app.people.notices import notify_person
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.guests import accounts
from federation_app.guests.names import read_name
from federation_app.models import ChatFollower, GuestInvitation, InvitationState, Peer

if TYPE_CHECKING:
    from collections.abc import Collection

    from django.contrib.auth.models import User

    from federation_app.guests.contents import Acceptance, ChatInvitation, Withdrawal

MAX_OPEN_INVITATIONS: Final = 50
"""How many open invitations of one peer a person may have, and one person may have sent."""
SUBJECT: Final = "invitations"
"""What `person.changed` says to the pages of a person whose invitations have changed."""
_ANSWERS: Final = {
    "accept": InvitationState.ACCEPTED,
    "decline": InvitationState.DECLINED,
    "block": InvitationState.BLOCKED,
}


class TooManyInvitations(EnvelopeError):
    """The limit of open invitations is reached."""

    def __init__(self) -> None:
        super().__init__(
            EnvelopeCode.RATE_LIMITED, "Too many invitations are open.", retry_after=60
        )


def invite(*, chat_id: str, invited_by: User, name: str) -> GuestInvitation:
    """Invite a person of a peer to a chat; the same open invitation is returned again.

    Raises EnvelopeError for a name that cannot be invited, NotAMember and NotAllowed.
    """
    full_name = read_name(name)
    peer = accounts.peer_at(full_name.host)
    accounts.host_of(peer)
    with transaction.atomic():
        title = check_may_invite(chat_id=chat_id, user_id=invited_by.pk)
        mine = GuestInvitation.objects.filter(
            is_received=False, user=invited_by, state=InvitationState.OPEN
        )
        existing = mine.filter(peer=peer, chat_id=chat_id, name=str(full_name)).first()
        if existing is not None:
            return existing
        if mine.count() >= MAX_OPEN_INVITATIONS:
            raise TooManyInvitations
        notify_person(invited_by.pk, SUBJECT)
        return GuestInvitation.objects.create(
            peer=peer,
            invitation_id=str(uuid.uuid4()),
            is_received=False,
            user=invited_by,
            name=str(full_name),
            chat_id=chat_id,
            title=title,
        )


def invite_by_name(chat_id: str, invited_by: User, name: str) -> str:
    """Invite a person of a peer to a chat, and return the id of the invitation.

    Raises CannotInvite, NotAMember and NotAllowed.
    """
    try:
        row = invite(chat_id=chat_id, invited_by=invited_by, name=name)
    except EnvelopeError as error:
        raise CannotInvite(error.message) from None
    return row.invitation_id


def open_invitations(user: User) -> list[GuestInvitation]:
    """Return the open invitations that a person has received or sent, the newest first."""
    rows = GuestInvitation.objects.filter(user=user, state=InvitationState.OPEN)
    return list(rows.order_by("-id")[: 4 * MAX_OPEN_INVITATIONS])


def answer(*, user: User, invitation_id: str, answer: str) -> GuestInvitation:
    """Accept, decline or block an invitation, or withdraw one that the person has sent.

    Raises EnvelopeError not_found, and conflict if it has been answered or withdrawn.
    """
    is_received = answer != "withdraw"
    state = _ANSWERS.get(answer, InvitationState.WITHDRAWN)
    with transaction.atomic():
        row = (
            GuestInvitation.objects.select_for_update(no_key=True)
            .filter(user=user, invitation_id=invitation_id, is_received=is_received)
            .first()
        )
        if row is None:
            raise _no_invitation()
        if row.state == state:
            return row
        if row.state != InvitationState.OPEN:
            raise EnvelopeError(
                EnvelopeCode.CONFLICT, f"The invitation is {row.state}.", detail="invitation"
            )
        _change(row, state, is_sent=False)
    return row


def receive(peer: Peer, new: ChatInvitation) -> None:
    """Store an invitation of a peer for a person here; raises EnvelopeError.

    not_found for a person who does not exist, or has blocked the inviter: they look alike.
    """
    inviter = str(accounts.own_name(peer, new.by))
    user = accounts.person_here(read_name(new.to))
    theirs = GuestInvitation.objects.filter(peer=peer, is_received=True, user=user)
    if user is None or theirs.filter(name=inviter, state=InvitationState.BLOCKED).exists():
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such person.", detail="to")
    with transaction.atomic():
        existing = GuestInvitation.objects.filter(peer=peer, invitation_id=new.invitation).first()
        if existing is not None:
            same = (user.pk, inviter, new.chat, True)
            if (existing.user_id, existing.name, existing.chat_id, existing.is_received) != same:
                raise EnvelopeError(
                    EnvelopeCode.CONFLICT, "Another invitation has this id.", detail="invitation"
                )
            return
        if theirs.filter(state=InvitationState.OPEN).count() >= MAX_OPEN_INVITATIONS:
            raise TooManyInvitations
        GuestInvitation.objects.create(
            peer=peer,
            invitation_id=new.invitation,
            is_received=True,
            is_sent=True,
            user=user,
            name=inviter,
            chat_id=new.chat,
            title=new.title,
        )
        notify_person(user.pk, SUBJECT)


def receive_withdrawal(peer: Peer, withdrawal: Withdrawal) -> None:
    """Withdraw a peer's invitation, even one that was accepted but not yet confirmed."""
    with transaction.atomic():
        row = _locked(peer, withdrawal.invitation, is_received=True)
        if row.state == InvitationState.OPEN or not row.is_sent:
            _change(row, InvitationState.WITHDRAWN, is_sent=True)


def receive_decline(peer: Peer, declined: Withdrawal) -> None:
    """Note that the invited person has declined."""
    with transaction.atomic():
        row = _locked(peer, declined.invitation, is_received=False)
        if row.state == InvitationState.OPEN:
            _change(row, InvitationState.DECLINED, is_sent=True)


def receive_acceptance(peer: Peer, accepted: Acceptance) -> None:
    """Make the invited person a member; raises EnvelopeError.

    conflict if the invitation is no longer open; unauthorized for anyone but the invited person,
    and if the inviter may no longer add members.
    """
    with transaction.atomic():
        row = _locked(peer, accepted.invitation, is_received=False)
        if str(accounts.own_name(peer, accepted.by)) != row.name:
            raise EnvelopeError(
                EnvelopeCode.UNAUTHORIZED, "Another person is invited.", detail="by"
            )
        user = accounts.guest_account(peer, accepted.by)
        if row.state == InvitationState.ACCEPTED and is_member(row.chat_id, user.pk):
            return
        if row.state != InvitationState.OPEN:
            raise EnvelopeError(
                EnvelopeCode.CONFLICT, f"The invitation is {row.state}.", detail="invitation"
            )
        if not user.is_active or not row.user.is_active:
            raise EnvelopeError(EnvelopeCode.UNAUTHORIZED, "The person is blocked.", detail="by")
        head = chat_heads([row.chat_id]).get(row.chat_id, 0)
        follower = ChatFollower.objects.filter(peer=peer, chat_id=row.chat_id)
        follows = follower.exists() and accounts.has_guests(peer, row.chat_id)
        try:
            add_participant(chat_id=row.chat_id, added_by=row.user, user=user, has_accepted=True)
        except (NotAMember, NotAllowed):
            raise EnvelopeError(
                EnvelopeCode.UNAUTHORIZED,
                "The inviter may no longer add members.",
                detail="invitation",
            ) from None
        if not follows:
            # The peer may not read what was written after its last guest left.
            ChatFollower.objects.update_or_create(
                peer=peer, chat_id=row.chat_id, defaults={"first_seq": head, "sent_seq": head}
            )
        _change(row, InvitationState.ACCEPTED, is_sent=True)


def end(peer: Peer, chat_id: str, user_ids: Collection[int]) -> None:
    """End the accepted invitations of people who are no longer in a chat of a peer.

    The peer cannot add them again without a new one.
    """
    if user_ids:
        GuestInvitation.objects.filter(
            peer=peer,
            chat_id=chat_id,
            user_id__in=user_ids,
            is_received=True,
            state=InvitationState.ACCEPTED,
        ).update(state=InvitationState.ENDED)


def may_join(peer: Peer, chat_id: str, user_id: int) -> bool:
    """Return whether a person here has accepted an invitation to a chat of a peer."""
    return GuestInvitation.objects.filter(
        peer=peer,
        chat_id=chat_id,
        user_id=user_id,
        is_received=True,
        state=InvitationState.ACCEPTED,
    ).exists()


def forget(user: User) -> None:
    """End the invitations of a person who is being erased; needs a transaction."""
    rows = GuestInvitation.objects.filter(user=user)
    rows.filter(is_sent=True).exclude(state=InvitationState.OPEN).delete()
    still_open = rows.filter(state=InvitationState.OPEN)
    still_open.filter(is_received=True).update(state=InvitationState.DECLINED, is_sent=False)
    still_open.filter(is_received=False).update(state=InvitationState.WITHDRAWN, is_sent=False)


def _locked(peer: Peer, invitation_id: str, *, is_received: bool) -> GuestInvitation:
    row = (
        GuestInvitation.objects.select_for_update(no_key=True, of=("self",))
        .select_related("user")
        .filter(peer=peer, invitation_id=invitation_id, is_received=is_received)
        .first()
    )
    if row is None:
        raise _no_invitation()
    return row


def _change(row: GuestInvitation, state: InvitationState, *, is_sent: bool) -> None:
    row.state, row.is_sent = state, is_sent
    row.save(update_fields=["state", "is_sent"])
    notify_person(row.user_id, SUBJECT)


def _no_invitation() -> EnvelopeError:
    return EnvelopeError(
        EnvelopeCode.NOT_FOUND, "There is no such invitation.", detail="invitation"
    )
