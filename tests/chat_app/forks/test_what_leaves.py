"""Taking messages out of a chat in a fork needs a right there; a deletion reaches each copy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.db.models import F
from django.utils import timezone

from chat_app.contents import reading_rights, references
from chat_app.contents.quota import ContentOwner
from chat_app.contents.reading_rights import ContentNotFound
from chat_app.conversation import deletion
from chat_app.conversation.deletion import delete_message
from chat_app.forks import forking
from chat_app.links.invite_links import create_invite_link, invitation
from chat_app.links.share_links import create_share_link, share_link_of
from chat_app.members.participants import add_participant
from chat_app.members.rights import NotAllowed
from chat_app.models import Chat, ChatEvent, Message, MessageDeletion, Participant
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from django.contrib.auth.models import User

    Commit = Callable[..., AbstractContextManager[object]]

pytestmark = pytest.mark.django_db


def fork(message: Message, by: User) -> Chat:
    """Fork the chat of a message from it, and return the new chat."""
    event = forking.fork_chat(
        chat_id=message.chat_id, message_id=message.pk, forked_by=by, admit=lambda _size: None
    )
    return Chat.objects.get(pk=event.chat_id)


def share(chat: Chat, by: User) -> str:
    return create_share_link(chat_id=chat.pk, made_by=by)[1]


def invite(chat: Chat, by: User) -> str:
    return create_invite_link(chat_id=chat.pk, made_by=by)[1]


def add(chat: Chat, by: User) -> object:
    return add_participant(chat_id=chat.pk, added_by=by, user=factories.user("carol"))


def role(chat: Chat, user: User, name: str) -> None:
    Participant.objects.filter(chat=chat, user=user).update(role=name)


def leave(chat: Chat, user: User) -> None:
    Participant.objects.filter(chat=chat, user=user).update(left_at=timezone.now())


def become_member(chat: Chat, user: User) -> None:
    role(chat, user, "member")


@pytest.fixture
def people() -> tuple[User, User]:
    return factories.user("alice"), factories.user("bob")


@pytest.fixture
def original(people: tuple[User, User]) -> Message:
    """Return a message of alice's in her chat with bob."""
    alice, bob = people
    return factories.message(factories.chat(alice, bob), alice, "between us")


@pytest.mark.parametrize(
    ("does", "in_source", "may"),
    [
        (share, "member", False),
        (share, "admin", True),
        (share, "owner", True),
        (share, "", False),
        (invite, "member", True),
        (invite, "", False),
        (add, "member", True),
        (add, "", False),
    ],
)
@pytest.mark.parametrize("generations", [1, 2])
def test_the_copy_of_a_chat_leaves_it_with_a_right_there(
    people: tuple[User, User],
    original: Message,
    does: Callable[[Chat, User], object],
    in_source: str,
    may: bool,  # noqa: FBT001 a case
    generations: int,
) -> None:
    bob = people[1]
    chat = fork(original, bob)
    if generations == 2:
        chat = fork(Message.objects.get(chat=chat), bob)
    if in_source:
        role(original.chat, bob, in_source)
    else:
        leave(original.chat, bob)

    if may:
        assert does(chat, bob)
    else:
        with pytest.raises(NotAllowed, match="messages of another chat"):
            does(chat, bob)


@pytest.mark.parametrize("loses", [leave, become_member])
def test_a_link_into_a_copy_ends_with_the_right_in_the_source(
    people: tuple[User, User], original: Message, loses: Callable[[Chat, User], None]
) -> None:
    bob = people[1]
    role(original.chat, bob, "admin")
    secret = share(fork(original, bob), bob)
    assert share_link_of(secret) is not None

    loses(original.chat, bob)

    assert share_link_of(secret) is None


def test_an_invitation_into_a_copy_ends_with_the_membership_of_the_source(
    people: tuple[User, User], original: Message
) -> None:
    bob, carol = people[1], factories.user("carol")
    secret = invite(fork(original, bob), bob)
    assert invitation(secret, carol) is not None

    leave(original.chat, bob)

    assert invitation(secret, carol) is None


def test_the_sole_author_of_a_deleted_chat_may_share_what_is_left_of_it(
    people: tuple[User, User], original: Message
) -> None:
    alice, bob = people
    newest = factories.message(original.chat, factories.agent(), "an answer")
    of_alice, of_bob = fork(newest, alice), fork(newest, bob)
    original.chat.delete()

    assert share(of_alice, alice)
    with pytest.raises(NotAllowed):
        share(of_bob, bob)


def test_a_chat_that_is_not_a_copy_needs_no_rights_elsewhere(people: tuple[User, User]) -> None:
    chat = factories.chat(*people)

    assert share(chat, people[0])
    assert add(chat, people[1])


def forked_twice(message: Message, by: User) -> list[Message]:
    """Fork the chat of a message, and that fork; return the copies."""
    first = Message.objects.get(copied_from=message.pk, chat=fork(message, by))
    return [first, Message.objects.get(copied_from=first.pk, chat=fork(first, by))]


def test_a_deletion_reaches_copies_of_copies_and_their_files(
    people: tuple[User, User], django_capture_on_commit_callbacks: Commit
) -> None:
    alice, bob = people
    source, content = factories.chat(alice, bob), factories.content(alice)
    item, content_id = references.item_of(content), str(content.pk)
    original = factories.message(source, alice, "look", content_items=(item,))
    reading_rights.use(source.pk, [content_id], shown=[content_id])
    copies = forked_twice(original, bob)
    leave(source, bob)
    bobs = ContentOwner(user_id=bob.pk)
    assert reading_rights.readable(content_id, owner=bobs).pk == content.pk

    with django_capture_on_commit_callbacks(execute=True):
        delete_message(chat_id=source.pk, message_id=original.pk, user_id=alice.pk)

    for copy in copies:
        copy.refresh_from_db()
        assert (copy.content, copy.content_items) == ("", [])
        # Who deleted the original is not the affair of the fork.
        assert MessageDeletion.objects.get(pk=copy.pk).deleted_by is None
        payload = ChatEvent.objects.get(chat=copy.chat, type="message.deleted").payload
        assert (payload["message_id"], payload["user_id"]) == (copy.pk, "")
    with pytest.raises(ContentNotFound):
        reading_rights.readable(content_id, owner=ContentOwner(user_id=bob.pk))


def test_a_deletion_in_a_copy_does_not_reach_the_source(
    people: tuple[User, User], original: Message, django_capture_on_commit_callbacks: Commit
) -> None:
    first, second = forked_twice(original, people[1])

    with django_capture_on_commit_callbacks(execute=True):
        delete_message(chat_id=first.chat_id, message_id=first.pk, user_id=people[1].pk)

    for message, content in ((original, "between us"), (first, ""), (second, "")):
        message.refresh_from_db()
        assert message.content == content


def age_deletions() -> None:
    MessageDeletion.objects.update(deleted_at=F("deleted_at") - deletion.COPIES_AFTER)


def test_copies_that_a_process_left_are_deleted_later(
    people: tuple[User, User], original: Message, django_capture_on_commit_callbacks: Commit
) -> None:
    copies = forked_twice(original, people[1])
    # The process ends after the commit.
    delete_message(chat_id=original.chat_id, message_id=original.pk, user_id=people[0].pk)
    assert deletion.delete_left_copies(10) == 0, "a fork may still be under way"
    age_deletions()

    with django_capture_on_commit_callbacks(execute=True):
        assert deletion.delete_left_copies(10) == 1

    assert [Message.objects.get(pk=copy.pk).content for copy in copies] == ["", ""]
    age_deletions()
    assert deletion.delete_left_copies(10) == len(copies), "each copy is a deletion as well"
    assert deletion.delete_left_copies(10) == 0
