"""The accounts of guests, and the names by which peers know people here. Synchronous."""

from __future__ import annotations

import re
import unicodedata
from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import User
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.utils.translation import gettext_lazy as _

from chat_app.members.membership import people_of
from chat_app.people.names import is_name_elsewhere
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.names.identity import identity_at, read_identity
from federation_app.guests.contents import RemotePerson
from federation_app.guests.names import NAME_CHARS, OWN_CHARS, FullName, own_host, read_name
from federation_app.models import Guest, Peer
from federation_app.peers import registry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from django.db.models import QuerySet

ERASED: Final = "erased-"
"""The beginning of the name of a person who was erased (`sessions_app.data_rights.erasure`)."""
_PK: Final = re.compile(r"-([0-9]{1,18})\Z")


def host_of(peer: Peer) -> str:
    """Return the host whose people a peer speaks for; raises EnvelopeError unauthorized.

    An agent of a host, or a name below it, speaks for no one.
    """
    identity = read_identity(peer.did)
    if identity.path:
        raise EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "Only servers may act for people.", detail="from"
        )
    return identity.authority


def peer_at(host: str) -> Peer:
    """Return the trusted peer of a host; raises EnvelopeError not_found."""
    try:
        return registry.find_peer(identity_at(host).did)
    except EnvelopeError:
        raise EnvelopeError(
            EnvelopeCode.NOT_FOUND, f"{host} is not a peer of this server.", detail="host"
        ) from None


def own_name(peer: Peer, person: RemotePerson) -> FullName:
    """Return the name of a person of a peer; raises EnvelopeError unauthorized for another host."""
    name = read_name(person.name)
    if name.host != host_of(peer):
        raise EnvelopeError(
            EnvelopeCode.UNAUTHORIZED, "You may act only for your own people.", detail="by"
        )
    return name


def find_guest(peer: Peer, person: RemotePerson) -> User:
    """Return the account of a guest who acts; raises EnvelopeError.

    not_found for an unknown one, unauthorized for a person of another server, and for an account
    that an operator has deactivated.
    """
    own_name(peer, person)
    row = Guest.objects.filter(peer=peer, remote_id=person.id).select_related("user").first()
    if row is None:
        raise EnvelopeError(EnvelopeCode.NOT_FOUND, "There is no such guest.", detail="by")
    if not row.user.is_active:
        raise EnvelopeError(EnvelopeCode.UNAUTHORIZED, "The person is blocked.", detail="by")
    return row.user


def guest_account(peer: Peer, person: RemotePerson) -> User:
    """Return the account of a person of a peer, and make it if there is none.

    Raises EnvelopeError unauthorized, and conflict if another account has the name.
    """
    name = str(own_name(peer, person))
    try:
        with transaction.atomic():
            row = Guest.objects.filter(peer=peer, remote_id=person.id).select_related("user")
            guest = row.first()
            if guest is None:
                user = User(username=name)
                user.set_unusable_password()
                user.save()
                Guest.objects.create(peer=peer, remote_id=person.id, user=user)
                return user
            if guest.user.username != name and not guest.user.username.startswith(ERASED):
                guest.user.username = name
                guest.user.save(update_fields=["username"])
            return guest.user
    except IntegrityError:
        raise EnvelopeError(
            EnvelopeCode.CONFLICT, "Another account has the name.", detail="by"
        ) from None


def is_of_a_peer(name: str) -> bool:
    """Return whether a name ends with `@` and the host of a peer, suspended and revoked ones too.

    No account of a person here gets such a name: the guest could not join, or be distinguished.
    """
    host = unicodedata.normalize("NFKC", name).rpartition("@")[2].strip().lower()
    try:
        did = identity_at(host).did
    except EnvelopeError:
        return False
    return Peer.objects.filter(did=did).exists()


def check_new_name(name: str) -> None:
    """Validate the username of an account; raises ValidationError for a new one of a peer."""
    if is_name_elsewhere(name) and not User.objects.filter(username=name).exists():
        raise ValidationError(
            _("Names that end with the host of another server are for its people.")
        )


def person_here(name: FullName) -> User | None:
    """Return the active person of this server who has a full name."""
    if name.host != own_host():
        return None
    people = User.objects.filter(is_active=True).exclude(pk__in=Guest.objects.values("user"))
    user = people.filter(username=name.name).first()
    if user is None and (ending := _PK.search(name.name)) is not None:
        user = people.filter(pk=int(ending[1])).first()
    return user if user is not None and _full_name(user, name.host) == str(name) else None


def has_guests(peer: Peer, chat_id: str) -> bool:
    """Return whether a guest of a peer is in a chat."""
    members = [user.pk for user in people_of(chat_id)]
    return Guest.objects.filter(peer=peer, user_id__in=members).exists()


def guest_users() -> QuerySet[User]:
    """Return the accounts of guests."""
    return User.objects.filter(pk__in=Guest.objects.values("user"))


def is_guest(user: User) -> bool:
    """Return whether an account belongs to a person on another server."""
    return Guest.objects.filter(user=user).exists()


def remote_people(peer: Peer, users: Iterable[User]) -> list[RemotePerson]:
    """Return people as a peer knows them: its own ones by their id there."""
    members = list(users)
    guests = {
        row.user_id: row for row in Guest.objects.filter(user__in=members).select_related("peer")
    }
    here = own_host()
    names = []
    for user in members:
        guest = guests.get(user.pk)
        if guest is not None and guest.peer_id == peer.pk:
            # An account that was erased here has a name without a host.
            name = user.username if "@" in user.username else f"{user.username}@{host_of(peer)}"
            names.append(RemotePerson(id=guest.remote_id, name=name))
        else:
            names.append(RemotePerson(id=str(user.pk), name=_full_name(user, here)))
    return names


def _full_name(user: User, host: str) -> str:
    """Return the name of a person at a host; one that is too long ends with the person's key."""
    name, limit = user.username, min(OWN_CHARS, NAME_CHARS - len(f"@{host}"))
    if len(name) > limit:
        end = f"-{user.pk}"
        name = name[: limit - len(end)] + end
    return f"{name}@{host}"
