"""Deletions and lost rights reach a fork of a fork whose middle chat is gone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec
import pytest

from chat_app.conversation.deletion import delete_message, delete_messages_of
from chat_app.export.personal import message_lines
from chat_app.links.share_links import share_link_of
from chat_app.log.retention import delete_chats, empty_chats
from chat_app.members.rights import NotAllowed
from chat_app.models import Chat, ChatOrigin, Message
from tests import factories
from tests.chat_app.forks.test_what_leaves import fork, invite, leave, role, share

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User

    from tests.chat_app.forks.test_what_leaves import Commit

pytestmark = pytest.mark.django_db

GONE: Final[dict[str, Callable[[list[str]], object]]] = {
    "removed": delete_chats,
    "emptied": empty_chats,
}


@pytest.fixture(params=GONE)
def go(request: pytest.FixtureRequest) -> Callable[[list[Chat]], None]:
    """Return a function that deletes chats: with their rows, or without where money was paid."""

    def go(chats: list[Chat]) -> None:
        GONE[request.param]([chat.pk for chat in chats])

    return go


@pytest.fixture
def people() -> tuple[User, User]:
    return factories.user("alice"), factories.user("mallory")


def question(alice: User, mallory: User) -> Message:
    return factories.message(factories.chat(alice, mallory), alice, "between us")


def answer(alice: User, mallory: User) -> Message:
    return factories.message(factories.chat(alice, mallory), factories.agent(), "an answer")


def thread(alice: User, mallory: User) -> Message:
    """Return an agent's answer that begins a thread with a reply of the person who forks."""
    root = answer(alice, mallory)
    factories.message(
        root.chat,
        mallory,
        "mine",
        thread=root.pk,
    )
    return root


WORDS: Final = [question, answer, thread]


def forks_of(message: Message, by: User, generations: int) -> list[Chat]:
    """Return a fork of a message's chat, or of its thread, the fork of that, and so on."""
    forks = []
    last = Message.objects.filter(chat_id=message.chat_id).latest("seq")
    for _ in range(generations):
        forks.append(fork(last, by))
        last = Message.objects.filter(chat=forks[-1]).latest("seq")
    return forks


def texts(chat: Chat) -> list[str]:
    rows = Message.objects.filter(chat=chat, deleted_at__isnull=True)
    return list(rows.values_list("content", flat=True))


def by_its_owner(message: Message, alice: User) -> None:
    delete_message(chat_id=message.chat_id, message_id=message.pk, user_id=alice.pk)


def by_erasure(message: Message, alice: User) -> None:
    delete_messages_of(alice.pk, chat_id=message.chat_id)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("gone", [[0], [0, 1]])
@pytest.mark.parametrize(
    ("says", "deletes"),
    [
        (question, by_its_owner),
        (question, by_erasure),
        (answer, by_its_owner),
        (thread, by_its_owner),
    ],
)
@pytest.mark.parametrize("first", ["the middle", "the message"])
def test_a_deletion_reaches_what_was_copied_through_a_chat_that_is_gone(
    people: tuple[User, User],
    go: Callable[[list[Chat]], None],
    django_capture_on_commit_callbacks: Commit,
    says: Callable[[User, User], Message],
    deletes: Callable[[Message, User], None],
    gone: list[int],
    first: str,
) -> None:
    message = says(*people)
    text = message.content
    forks = forks_of(message, people[1], 3)
    between = [forks[place] for place in gone]
    left = [chat for chat in forks if chat not in between]
    assert all(text in texts(chat) for chat in left)
    steps = [partial(go, between), partial(deletes, message, people[0])]

    for step in steps if first == "the middle" else reversed(steps):
        with django_capture_on_commit_callbacks(execute=True):
            step()

    assert [text in texts(chat) for chat in left] == [False] * len(left)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("gone", [[0], [0, 1]])
@pytest.mark.parametrize("says", WORDS)
@pytest.mark.parametrize("does", [share, invite])
def test_what_leaves_it_needs_a_right_in_the_chats_that_are_left(
    people: tuple[User, User],
    go: Callable[[list[Chat]], None],
    does: Callable[[Chat, User], object],
    says: Callable[[User, User], Message],
    gone: list[int],
) -> None:
    mallory = people[1]
    message = says(*people)
    forks = forks_of(message, mallory, 3)
    if does is not share:
        leave(message.chat, mallory)
    go([forks[place] for place in gone])

    with pytest.raises(NotAllowed, match="messages of another chat"):
        does(forks[-1], mallory)

    Chat.objects.get(pk=message.chat_id).participants.filter(user=mallory).update(
        role="admin", left_at=None
    )
    assert does(forks[-1], mallory)


@pytest.mark.parametrize("says", WORDS)
def test_a_link_ends_with_the_right_in_the_chat_before_the_one_that_is_gone(
    people: tuple[User, User],
    go: Callable[[list[Chat]], None],
    says: Callable[[User, User], Message],
) -> None:
    mallory = people[1]
    message = says(*people)
    role(message.chat, mallory, "admin")
    middle, last = forks_of(message, mallory, 2)
    secret = share(last, mallory)
    go([middle])
    assert share_link_of(secret) is not None

    role(message.chat, mallory, "member")

    assert share_link_of(secret) is None


def test_words_of_others_in_a_chat_that_is_gone_are_not_shared(
    people: tuple[User, User], go: Callable[[list[Chat]], None]
) -> None:
    alice, mallory = people
    message = question(alice, mallory)
    role(message.chat, mallory, "admin")
    bob = factories.user("bob")
    middle = factories.chat(bob, mallory)
    origin = fork(message, mallory).origin
    # What bob wrote in his fork of the chat is not alice's to give away.
    message_of_bob = factories.message(middle, bob, "of the middle")
    ChatOrigin.objects.filter(pk=origin.pk).update(chat=middle)
    last = fork(message_of_bob, mallory)
    role(middle, mallory, "admin")
    assert share(last, mallory)
    go([middle])

    with pytest.raises(NotAllowed):
        share(last, mallory)


def test_a_fork_names_the_source_that_is_left(
    people: tuple[User, User], go: Callable[[list[Chat]], None]
) -> None:
    mallory = people[1]
    message = question(*people)
    Chat.objects.filter(pk=message.chat_id).update(title="root")
    middle, last = forks_of(message, mallory, 2)
    message_of_mallory = factories.message(middle, mallory, "of the middle")
    later = fork(message_of_mallory, mallory)
    go([middle])

    for chat in (last, later):
        origin = ChatOrigin.objects.get(pk=chat.pk)
        facts = (origin.source_id, origin.source_message, origin.source_title)
        assert facts == (message.chat_id, message.pk, "root")
    # Its copies of what the middle chat itself said are still copies.
    assert (
        Message.objects.get(chat=later, content="of the middle").copied_from
        == message_of_mallory.pk
    )
    lines = [msgspec.json.decode(line) for line in message_lines(mallory)]
    assert later.pk not in {line["chat_id"] for line in lines}

    go([message.chat])
    assert not ChatOrigin.objects.filter(source__isnull=False).exists()
