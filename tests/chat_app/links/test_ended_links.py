"""A link that has ended stays ended, whatever its maker gets back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User

from chat_app.forks import forking
from chat_app.links.invite_links import create_invite_link, join_by_link
from chat_app.links.share_links import create_share_link, share_link_of
from chat_app.members.participants import add_participant, change_role, remove_participant
from chat_app.models import Chat, ChatEvent, InviteLink, Participant, ShareLink
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.django_db


@dataclass(frozen=True)
class Scene:
    """Mia, who makes the link; a chat of Olga's, its fork by Mia, and Mia's fork of that."""

    olga: User
    mia: User
    source: Chat
    fork: Chat
    fork_of_fork: Chat

    def member(self, chat: Chat) -> int:
        """Return the id of Mia's membership."""
        return Participant.objects.get(chat=chat, user=self.mia).pk


@pytest.fixture
def scene() -> Scene:
    olga, mia = factories.user("olga"), factories.user("mia")
    source = factories.chat(olga, mia)
    Participant.objects.filter(chat=source, user=mia).update(role="admin")
    fork = forked(source, olga, mia)
    return Scene(olga, mia, source, fork, forked(fork, mia, mia))


def forked(chat: Chat, author: User, by: User) -> Chat:
    message = factories.message(chat, author)
    event = forking.fork_chat(
        chat_id=chat.pk, message_id=message.pk, forked_by=by, admit=lambda _size: None
    )
    return Chat.objects.get(pk=event.chat_id)


def share(scene: Scene, chat: Chat) -> str:
    return create_share_link(chat_id=chat.pk, made_by=scene.mia)[1]


def invite(scene: Scene, chat: Chat) -> str:
    return create_invite_link(chat_id=chat.pk, made_by=scene.mia)[1]


def shows(secret: str) -> bool:
    """Return whether a link still opens anything."""
    if secret.startswith("shr_"):
        return share_link_of(secret) is not None
    guest = User.objects.filter(username="guest").first() or factories.user("guest")
    return join_by_link(secret, guest) is not None


def deactivated(scene: Scene) -> None:
    scene.mia.is_active = False
    scene.mia.save()


def deactivated_by_a_field(scene: Scene) -> None:
    scene.mia.is_active = False
    scene.mia.save(update_fields=["is_active"])


def reactivated(scene: Scene) -> None:
    scene.mia.is_active = True
    scene.mia.save()


def removed(scene: Scene) -> None:
    remove_participant(
        chat_id=scene.source.pk, removed_by=scene.olga, participant_id=scene.member(scene.source)
    )


def left(scene: Scene) -> None:
    remove_participant(
        chat_id=scene.source.pk, removed_by=scene.mia, participant_id=scene.member(scene.source)
    )


def added_again(scene: Scene) -> None:
    add_participant(chat_id=scene.source.pk, added_by=scene.olga, user=scene.mia)
    set_role(scene, "admin")


def set_role(scene: Scene, role: str) -> None:
    change_role(
        chat_id=scene.source.pk,
        changed_by=scene.olga,
        participant_id=scene.member(scene.source),
        role=role,
    )


def demoted(scene: Scene) -> None:
    set_role(scene, "member")


def promoted(scene: Scene) -> None:
    set_role(scene, "admin")


BOTH = (share, invite)
CASES = [
    (make, place, lose, regain)
    for place in ("source", "fork", "fork_of_fork")
    for makes, lose, regain in (
        (BOTH, deactivated, reactivated),
        (BOTH, deactivated_by_a_field, reactivated),
        (BOTH, removed, added_again),
        (BOTH, left, added_again),
        # Members may invite.
        ((share,), demoted, promoted),
    )
    for make in makes
]


@pytest.mark.sampled(9)
@pytest.mark.parametrize(("make", "place", "lose", "regain"), CASES)
def test_a_link_does_not_come_back_with_its_maker(
    scene: Scene,
    make: Callable[[Scene, Chat], str],
    place: str,
    lose: Callable[[Scene], None],
    regain: Callable[[Scene], None],
) -> None:
    chat: Chat = getattr(scene, place)
    secret = make(scene, chat)
    # The link is not used in the meantime.
    lose(scene)
    regain(scene)

    assert not shows(secret)

    links: list[Any] = [*ShareLink.objects.all()]
    links += InviteLink.objects.all()
    (link,) = links
    assert (link.revoked_at is not None, link.revoked_by) == (True, None)
    assert ChatEvent.objects.filter(chat=chat, type="link.revoked").count() == 1
    assert shows(make(scene, chat)), "a new link works"


@pytest.mark.parametrize("make", BOTH)
def test_an_end_that_is_found_out_when_the_link_is_used_is_stored(
    scene: Scene, make: Callable[[Scene, Chat], str]
) -> None:
    secret = make(scene, scene.source)
    User.objects.filter(pk=scene.mia.pk).update(is_active=False)
    assert not shows(secret)
    User.objects.filter(pk=scene.mia.pk).update(is_active=True)

    assert not shows(secret)


def test_links_of_others_and_other_changes_of_an_account_end_nothing(scene: Scene) -> None:
    mine = share(scene, scene.source)
    theirs = create_share_link(chat_id=scene.source.pk, made_by=scene.olga)[1]
    other = factories.chat(scene.mia)
    elsewhere = share(scene, other)
    scene.mia.first_name = "Mia"
    scene.mia.save()
    assert shows(mine)

    removed(scene)

    assert (shows(mine), shows(theirs), shows(elsewhere)) == (False, True, True)
