"""Files that a person takes into another chat, and their fate there (ADR 56)."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from uuid import uuid4

import pytest
from django.db import connection

from chat_app.contents import reading_rights, references
from chat_app.contents.quota import ContentOwner
from chat_app.contents.reading_rights import ContentNotFound
from chat_app.conversation import deletion, mirrors, taken_files
from chat_app.conversation.deletion import delete_message
from chat_app.forks import forking
from chat_app.log import retention
from chat_app.log.entries import NewMessage
from chat_app.members.avatars import InvalidAvatar
from chat_app.members.chats import ChatChange, update_chat
from chat_app.members.origin_rights import take, takeable
from chat_app.models import Chat, Content, ContentUse, Message, Participant
from tests import factories

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from django.contrib.auth.models import User

    Commit = Callable[..., AbstractContextManager[object]]

pytestmark = pytest.mark.django_db


@pytest.fixture
def alice() -> User:
    return factories.user("alice")


@pytest.fixture
def bob() -> User:
    return factories.user("bob")


@pytest.fixture
def source(alice: User, bob: User) -> Chat:
    """Return alice's chat, of which bob is a member."""
    return factories.chat(alice, bob)


@pytest.fixture
def file(alice: User) -> Content:
    return factories.content(alice)


@pytest.fixture
def original(source: Chat, alice: User, file: Content) -> Message:
    """Return alice's message with her file."""
    return shown(source, alice, file)


def shown(chat: Chat, by: User, content: Content) -> Message:
    """Let a person show a file in a chat, as a turn does; return the message."""
    content_id = str(content.pk)
    items = (references.item_of(content),)
    message = factories.message(chat, by, "look", content_items=items)
    take(chat.pk, [content_id], taken_by=by.pk, shown=[content_id])
    return message


def role(chat: Chat, user: User, name: str) -> None:
    Participant.objects.filter(chat=chat, user=user).update(role=name)


def fork(message: Message, by: User) -> Chat:
    event = forking.fork_chat(
        chat_id=message.chat_id, message_id=message.pk, forked_by=by, admit=lambda _size: None
    )
    return Chat.objects.get(pk=event.chat_id)


def may_take(
    content: Content, by: User, chat: Chat | None = None, chats: frozenset[str] | None = None
) -> bool:
    """Return whether a person may show a file in a chat, in a new one by default."""
    taker = ContentOwner(user_id=by.pk, chats=chats)
    chat_id = "" if chat is None else chat.pk
    try:
        return takeable(str(content.pk), taker=taker, chat_id=chat_id) == content
    except ContentNotFound:
        return False


def delete(message: Message) -> None:
    delete_message(chat_id=message.chat_id, message_id=message.pk, user_id=message.sender_user_id)


def chats_with(content: Content) -> set[str]:
    return set(ContentUse.objects.filter(content=content).values_list("chat_id", flat=True))


# --- Who may take a file ---


@pytest.mark.parametrize(
    ("in_source", "may"), [("member", False), ("admin", True), ("owner", True)]
)
def test_a_file_of_others_leaves_a_chat_with_the_right_to_share_it(
    original: Message, file: Content, bob: User, in_source: str, *, may: bool
) -> None:
    role(original.chat, bob, in_source)
    assert may_take(file, bob) == may
    assert may_take(file, bob, factories.chat(bob)) == may
    assert may_take(file, bob, original.chat), "the chat shows it already"


def test_a_file_of_ones_own_goes_everywhere(original: Message, file: Content, alice: User) -> None:
    role(original.chat, alice, "member")
    assert may_take(file, alice, factories.chat(alice))


def test_a_fork_gives_no_right_to_take_a_file(original: Message, file: Content, bob: User) -> None:
    copy = fork(original, bob)
    assert may_take(file, bob, copy)
    assert not may_take(file, bob, factories.chat(bob))
    role(original.chat, bob, "admin")
    assert may_take(file, bob, factories.chat(bob))


@pytest.mark.parametrize(
    "change", [{"home": "did:web:b.example"}, {"deleted_at": "2026-01-01T00:00:00Z"}]
)
def test_no_file_is_taken_out_of_a_mirror_or_a_deleted_chat(
    original: Message, file: Content, bob: User, change: dict[str, str]
) -> None:
    role(original.chat, bob, "owner")
    Chat.objects.filter(pk=original.chat_id).update(**change)
    assert not may_take(file, bob, factories.chat(bob))


def test_a_key_takes_files_out_of_its_own_chats_only(
    original: Message, file: Content, bob: User
) -> None:
    role(original.chat, bob, "owner")
    here = factories.chat(bob)
    assert not may_take(file, bob, here, chats=frozenset({here.pk}))
    assert may_take(file, bob, here, chats=frozenset({here.pk, original.chat_id}))


def test_a_handle_names_the_persons_own_file_first(
    original: Message, file: Content, bob: User
) -> None:
    handle = uuid4()
    own = factories.content(bob, factories.png(3, 3))
    Content.objects.filter(pk__in=(file.pk, own.pk)).update(handle=handle)
    taker = ContentOwner(user_id=bob.pk)
    assert takeable(str(handle), taker=taker, chat_id=original.chat_id) == own


@pytest.mark.parametrize(("in_source", "may"), [("member", False), ("admin", True)])
def test_a_picture_of_others_becomes_the_picture_of_another_chat_with_that_right(
    original: Message, file: Content, bob: User, in_source: str, *, may: bool
) -> None:
    role(original.chat, bob, in_source)
    chat = factories.chat(bob)
    change = ChatChange(avatar=f"content:{file.pk}")
    if may:
        update_chat(chat_id=chat.pk, changed_by=bob, change=change)
        assert ContentUse.objects.get(chat=chat).source == original.chat
    else:
        missing = ChatChange(avatar=f"content:{uuid4()}")
        messages = set()
        for refused in (change, missing):
            with pytest.raises(InvalidAvatar) as raised:
                update_chat(chat_id=chat.pk, changed_by=bob, change=refused)
            messages.add(str(raised.value))
        assert len(messages) == 1, "whether there is such a file stays unknown"
        assert not ContentUse.objects.filter(chat=chat).exists()


def test_a_chat_shows_a_file_to_its_members_only(
    original: Message, file: Content, alice: User, bob: User
) -> None:
    elsewhere = factories.chat(alice)
    shown(elsewhere, alice, file)
    for chat, may in ((original.chat, True), (elsewhere, False)):
        with contextlib.nullcontext() if may else pytest.raises(ContentNotFound):
            reading_rights.own_or_shown(
                str(file.pk), owner=ContentOwner(user_id=bob.pk), chat_id=chat.pk
            )


# --- Deletions reach what was taken ---


def test_a_deletion_reaches_chats_that_took_the_file_and_their_forks(
    original: Message,
    file: Content,
    alice: User,
    bob: User,
    django_capture_on_commit_callbacks: Commit,
) -> None:
    role(original.chat, bob, "admin")
    chat, further = factories.chat(bob), factories.chat(bob)
    taken = shown(chat, bob, file)
    role(original.chat, bob, "member")
    shown(further, bob, file)
    copy = fork(taken, bob)
    sources = dict(ContentUse.objects.values_list("chat_id", "source_id"))
    assert sources == {
        original.chat_id: None,
        chat.pk: original.chat_id,
        further.pk: chat.pk,
        copy.pk: original.chat_id,
    }

    with django_capture_on_commit_callbacks(execute=True):
        delete(original)

    assert chats_with(file) == set()
    assert may_take(file, alice), "it is still its owner's"
    with pytest.raises(ContentNotFound):
        reading_rights.readable(str(file.pk), owner=ContentOwner(user_id=bob.pk))


def test_a_deletion_reaches_a_mirror_that_took_the_file(
    original: Message, file: Content, bob: User, django_capture_on_commit_callbacks: Commit
) -> None:
    role(original.chat, bob, "admin")
    mirror_id = mirrors.make_mirror(home="b.example", title="Theirs", member=bob)
    new = NewMessage(
        id="msg_of_bob",
        role="user",
        at=datetime.now(UTC),
        name=bob.username,
        content="look",
        content_items=(references.item_of(file),),
        sender_user_id=bob.pk,
    )
    mirrors.add_message(mirror_id, new)
    assert chats_with(file) == {original.chat_id, mirror_id}

    with django_capture_on_commit_callbacks(execute=True):
        delete(original)

    assert chats_with(file) == set()


def test_what_an_agent_made_goes_from_the_disk_with_its_last_chat(
    original: Message, file: Content, bob: User, django_capture_on_commit_callbacks: Commit
) -> None:
    Content.objects.update(owner=None, owner_key=f"chat:{original.chat_id}")
    role(original.chat, bob, "admin")
    shown(factories.chat(bob), bob, Content.objects.get())

    with django_capture_on_commit_callbacks(execute=True):
        delete(original)

    assert not Content.objects.filter(pk=file.pk).exists()


def test_a_file_that_another_message_of_the_source_shows_stays(
    original: Message,
    file: Content,
    alice: User,
    bob: User,
    django_capture_on_commit_callbacks: Commit,
) -> None:
    role(original.chat, bob, "admin")
    chat = factories.chat(bob)
    shown(chat, bob, file)
    shown(original.chat, alice, file)
    with django_capture_on_commit_callbacks(execute=True):
        delete(original)
    assert chats_with(file) == {original.chat_id, chat.pk}


def test_a_file_that_its_owner_shows_stays(
    original: Message,
    file: Content,
    alice: User,
    bob: User,
    django_capture_on_commit_callbacks: Commit,
) -> None:
    role(original.chat, bob, "admin")
    chat = factories.chat(bob, alice)
    shown(chat, bob, file)
    shown(chat, alice, file)
    with django_capture_on_commit_callbacks(execute=True):
        delete(original)
    assert chats_with(file) == {chat.pk}


def test_a_deletion_where_a_file_was_taken_to_does_not_reach_its_source(
    original: Message, file: Content, bob: User, django_capture_on_commit_callbacks: Commit
) -> None:
    role(original.chat, bob, "admin")
    taken = shown(factories.chat(bob), bob, file)
    with django_capture_on_commit_callbacks(execute=True):
        delete(taken)
    assert chats_with(file) == {original.chat_id}


@pytest.mark.parametrize("gone", [retention.delete_chats, retention.empty_chats])
def test_the_chain_outlives_a_chat_in_it(
    original: Message,
    file: Content,
    bob: User,
    gone: Callable[[list[str]], object],
    django_capture_on_commit_callbacks: Commit,
) -> None:
    role(original.chat, bob, "admin")
    between, last = factories.chat(bob), factories.chat(bob)
    shown(between, bob, file)
    role(original.chat, bob, "member")
    shown(last, bob, file)
    gone([between.pk])
    assert ContentUse.objects.get(chat=last).source == original.chat
    with django_capture_on_commit_callbacks(execute=True):
        delete(original)
    assert chats_with(file) == set()


@pytest.mark.parametrize("is_deleted", [True, False])
def test_a_file_outlives_the_chat_it_was_taken_from_unless_it_was_withdrawn_there(
    original: Message, file: Content, bob: User, *, is_deleted: bool
) -> None:
    source, chat = original.chat_id, factories.chat(bob)
    role(original.chat, bob, "admin")
    shown(chat, bob, file)
    if is_deleted:
        # The process ends after the commit.
        delete(original)
    deletion.finish_copies([source])
    taken_files.finish_taken([source])
    retention.delete_chats([source])
    assert chats_with(file) == (set() if is_deleted else {chat.pk})


def test_a_file_stays_whose_source_the_release_before_deletes(
    original: Message, file: Content, alice: User
) -> None:
    """Its processes do not know the column `source`, which then names a chat that is gone."""
    taker = factories.chat(alice)
    shown(taker, alice, file)
    ContentUse.objects.filter(chat=taker).update(source_id="chat_gone")
    connection.check_constraints()
    assert taken_files.LeftFiles().withdraw(100) == 0
    assert chats_with(file) == {original.chat_id, taker.pk}
