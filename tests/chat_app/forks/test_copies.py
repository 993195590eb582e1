"""The contents of a fork, its omissions, and the separation of a fork from its source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from chat_app.contents import reading_rights, references
from chat_app.contents.quota import ContentOwner
from chat_app.contents.reading_rights import ContentNotFound
from chat_app.conversation.deletion import delete_message
from chat_app.conversation.errors import MessageNotFound
from chat_app.conversation.revisions import edit_message, first_revision, texts_of
from chat_app.export.formats import FORMATS
from chat_app.export.pages import pages
from chat_app.forks import forking
from chat_app.forks.copies import history_until
from chat_app.forks.origins import origins_of
from chat_app.log import history
from chat_app.members.participants import remove_participant
from chat_app.models import Chat, ChatEvent, ChatOrigin, Content, ContentUse, Message, Participant
from chat_app.rest.overview import chats_data
from chat_app.search.search import search_messages
from payments_app.models import Entry, Hold, Transfer
from sessions_app.models import Response, ToolCall
from tests import factories
from tests.chat_app.forks.forked_chats import answer, fork, texts

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from agents_app.models import Agent

    Commit = Callable[..., AbstractContextManager[object]]

pytestmark = pytest.mark.django_db


def test_a_fork_begins_with_the_history_up_to_the_message() -> None:
    alice, bob, echo = factories.user("alice"), factories.user("bob"), factories.agent("echo")
    source = factories.chat(alice, bob, echo, title="Plans")
    first = factories.message(source, alice, "one")
    second = factories.message(source, echo, "two", response_id="resp_1")
    factories.message(source, bob, "three")
    source.refresh_from_db()
    before = source.last_seq
    chat = fork(second, bob)
    assert texts(chat) == ["one", "two"]
    copied = list(Message.objects.filter(chat=chat).order_by("seq"))
    originals = [Message.objects.get(pk=first.pk), Message.objects.get(pk=second.pk)]
    copied_fields = ("role", "name", "sender_user_id", "sender_agent_id", "created_at", "transport")
    for copy, original in zip(copied, originals, strict=True):
        assert [getattr(copy, name) for name in copied_fields] == [
            getattr(original, name) for name in copied_fields
        ]
        assert (copy.copied_from, copy.response_id) == (original.pk, "")
    # The source has not changed, and the log of the fork says where it comes from.
    source.refresh_from_db()
    assert source.last_seq == before
    assert (chat.title, chat.last_seq) == ("Plans", 3)
    log = list(ChatEvent.objects.filter(chat=chat).order_by("seq"))
    assert [(event.seq, event.type) for event in log] == [
        (1, "message.created"), (2, "message.created"), (3, "chat.forked")
    ]  # fmt: skip
    assert log[1].payload["message"]["id"] == copied[1].pk
    assert log[1].payload["message"]["copied_from"] == second.pk
    assert "response_id" not in log[1].payload["message"]
    assert log[2].payload["source"] == {
        "chat_id": source.pk, "message_id": second.pk, "title": "Plans"
    }  # fmt: skip
    assert log[2].payload["by"] == {"id": str(bob.pk), "name": "bob"}


def test_the_person_owns_the_fork_alone_with_the_agents_that_they_may_use() -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    echo = factories.agent("echo", trigger="never")
    second = factories.agent("second")
    private = factories.agent("private", is_public=False, owner=alice)
    disabled = factories.agent("disabled", is_enabled=False)
    gone = factories.agent("gone")
    source = factories.chat(alice, bob, echo, second, private, disabled, gone)
    leaving = Participant.objects.get(chat=source, agent=gone)
    remove_participant(chat_id=source.pk, removed_by=alice, participant_id=leaving.pk)
    chat = fork(factories.message(source, alice), bob)
    members = Participant.objects.filter(chat=chat).order_by("pk")
    assert [(str(row.user or row.agent), row.role) for row in members] == [
        ("bob", "owner"), ("echo", "member"), ("second", "member")
    ]  # fmt: skip
    # As the agents are by themselves, not as they were set in the source.
    assert [row.trigger for row in members if row.agent] == ["never", second.trigger]
    assert ChatOrigin.objects.get(chat=chat).agents_left_out == ["private", "disabled"]


def test_what_was_deleted_or_replaced_is_not_copied() -> None:
    alice, echo = factories.user("alice"), factories.agent("echo")
    source = factories.chat(alice, echo)
    factories.message(source, alice, "question")
    old = answer(source, echo, "first answer")
    secret = factories.message(source, alice, "a secret")
    reply = factories.message(source, alice, "a reply", reply_to=secret.pk)
    answer(source, echo, "second answer", old)
    last = factories.message(source, alice, "last", reply_to=old.pk)
    delete_message(chat_id=source.pk, message_id=secret.pk, user_id=alice.pk)
    chat = fork(last, alice)
    # In the order in which the chat shows them: a version stands in the place of the first.
    assert texts(chat) == ["question", "second answer", "a reply", "last"]
    assert "a secret" not in str(list(ChatEvent.objects.filter(chat=chat).values()))
    copies = {copy.content: copy for copy in Message.objects.filter(chat=chat)}
    assert copies["a reply"].reply_to is None
    assert copies["last"].reply_to == copies["second answer"].pk
    # A version that was made after the message stands in its place, too.
    assert texts(fork(reply, alice)) == ["question", "second answer", "a reply"]
    # The version that is named is the one that is copied.
    assert texts(fork(old, alice)) == ["question", "first answer"]
    with pytest.raises(MessageNotFound):
        fork(secret, alice)


def test_a_text_that_is_deleted_while_the_history_is_read_is_not_copied(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    alice = factories.user("alice")
    source = factories.chat(alice)
    secret = factories.message(source, alice, "a secret")
    last = factories.message(source, alice, "last")
    deleted: list[Any] = []

    def read_late(message: Message) -> Any:
        messages = history_until(message)
        if not deleted:
            deleted.append(
                delete_message(chat_id=source.pk, message_id=secret.pk, user_id=alice.pk)
            )
        return messages

    monkeypatch.setattr(forking, "history_until", read_late)
    assert texts(fork(last, alice)) == ["last"]
    assert Chat.objects.count() == 2


def test_replies_of_threads_are_copied_where_the_fork_is_made_in_the_thread() -> None:
    alice = factories.user("alice")
    source = factories.chat(alice)
    root = factories.message(source, alice, "root")
    factories.message(source, alice, "beside")
    reply = factories.message(source, alice, "reply", thread=root.pk)
    shown_reply = factories.message(source, alice, "shown", thread=root.pk, also_in_chat=True)
    factories.message(source, alice, "later", thread=root.pk)
    last = factories.message(source, alice, "last")
    chat = fork(last, alice)
    assert texts(chat) == ["root", "beside", "shown", "last"]
    assert not Message.objects.filter(chat=chat, thread__isnull=False).exists()
    assert texts(fork(shown_reply, alice)) == ["root", "beside", "shown"]
    assert texts(fork(reply, alice)) == ["root", "reply"]


def test_later_edits_do_not_cross_and_deletions_do(
    django_capture_on_commit_callbacks: Commit,
) -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    source = factories.chat(alice, bob)
    edited = factories.message(source, alice, "before")
    edit_message(
        chat_id=source.pk, message_id=edited.pk, user_id=alice.pk, content="as it was forked"
    )
    deleted = factories.message(source, bob, "deleted later")
    chat = fork(deleted, bob)
    edit_message(chat_id=source.pk, message_id=edited.pk, user_id=alice.pk, content="after")
    assert texts(chat) == ["as it was forked", "deleted later"]
    with django_capture_on_commit_callbacks(execute=True):
        delete_message(chat_id=source.pk, message_id=deleted.pk, user_id=bob.pk)
    assert texts(chat) == ["as it was forked", ""]
    copy = Message.objects.get(chat=chat, copied_from=edited.pk)
    assert texts_of([first_revision(copy)], chat.pk) == ["as it was forked"]
    assert "before" not in str(list(ChatEvent.objects.filter(chat=chat).values()))
    delete_message(chat_id=chat.pk, message_id=copy.pk, user_id=bob.pk)
    edited.refresh_from_db()
    assert edited.content == "after"
    # It survives its source.
    source.delete()
    assert texts(chat) == ["", ""]
    assert origins_of([chat.pk], bob.pk)[chat.pk]["chat_id"] is None


def test_contents_are_shared_with_the_rights_of_the_source() -> None:
    alice, bob, carol = (factories.user(name) for name in ("alice", "bob", "carol"))
    source = factories.chat(alice, bob)
    files = [
        factories.content(alice, b"%d" % number, mime_type="text/plain", filename="a.txt")
        for number in range(3)
    ]
    messages = [
        factories.message(
            source, alice, f"file {number}", content_items=(references.item_of(file),)
        )
        for number, file in enumerate(files)
    ]
    for file in files[:2]:
        reading_rights.use(source.pk, [str(file.pk)], shown=[str(file.pk)])
    chat = fork(messages[-1], bob)
    uses = ContentUse.objects.filter(chat=chat)
    # The last one is named by a message, but was never for the members.
    assert set(uses.values_list("content_id", "shown_by")) == {(file.pk, 1) for file in files[:2]}
    delete_message(chat_id=source.pk, message_id=messages[0].pk, user_id=alice.pk)
    remove_participant(
        chat_id=source.pk,
        removed_by=alice,
        participant_id=Participant.objects.get(chat=source, user=bob).pk,
    )
    reader, stranger = (ContentOwner(user_id=who.pk) for who in (bob, carol))
    assert reading_rights.readable(str(files[0].pk), owner=reader) == files[0]
    for content, who in ((files[2], reader), (files[0], stranger)):
        with pytest.raises(ContentNotFound):
            reading_rights.readable(str(content.pk), owner=who)
    # Deleted in the fork as well, no one but its owner reads it.
    copy = Message.objects.get(chat=chat, copied_from=messages[0].pk)
    delete_message(chat_id=chat.pk, message_id=copy.pk, user_id=bob.pk)
    with pytest.raises(ContentNotFound):
        reading_rights.readable(str(files[0].pk), owner=reader)
    assert Content.objects.count() == len(files)


def test_no_money_moves_and_nothing_looks_like_paid_work() -> None:
    alice, echo = factories.user("alice"), factories.agent("echo")
    source = factories.chat(alice, echo)
    factories.message(source, alice, "question")
    done = factories.response(echo, source, status="completed")
    factories.tool_call(done)
    last = factories.message(source, echo, "answer", response_id=done.pk)
    tables = (Transfer, Entry, Hold, Response, ToolCall)
    before = [list(table.objects.order_by("pk").values()) for table in tables]
    chat = fork(last, alice)
    assert [list(table.objects.order_by("pk").values()) for table in tables] == before
    assert set(ChatEvent.objects.filter(chat=chat).values_list("response_id", flat=True)) == {""}


def test_a_fork_can_be_forked() -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    source = factories.chat(alice, bob, title="First")
    original = factories.message(source, alice, "one")
    child = fork(original, bob, title="Second")
    child_message = factories.message(child, bob, "two")
    chat = fork(child_message, bob, title="Third")
    assert texts(chat) == ["one", "two"]
    copies = Message.objects.filter(chat=chat).order_by("seq")
    middle = Message.objects.get(chat=child, copied_from=original.pk)
    assert [copy.copied_from for copy in copies] == [middle.pk, child_message.pk]
    origin = ChatOrigin.objects.get(chat=chat)
    assert (origin.source_id, origin.source_title) == (child.pk, "Second")
    # The marker of the fork is no message: places have no gaps all the same.
    assert [copy.seq for copy in copies] == [1, 2]


def test_agents_see_the_history_as_in_the_source() -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    echo, other = factories.agent("echo"), factories.agent("other")
    source = factories.chat(alice, bob, echo, other)
    picture = factories.content(alice)
    reading_rights.use(source.pk, [str(picture.pk)], shown=[str(picture.pk)])
    first = factories.message(source, alice, "look", content_items=(references.item_of(picture),))
    factories.message(source, echo, "a picture")
    factories.message(source, other, "indeed")
    last = factories.message(source, bob, "which one?", reply_to=first.pk)

    def views_of(chat: Chat, agent: Agent) -> list[Any]:
        messages = history.history(chat.pk, limit=100)
        return [
            msgspec.to_builtins(message.view_for(agent.pk, shared=True)) for message in messages
        ]

    expected = {agent.pk: views_of(source, agent) for agent in (echo, other)}
    chat = fork(last, bob)
    assert {agent.pk: views_of(chat, agent) for agent in (echo, other)} == expected
    assert reading_rights.in_chat(str(picture.pk), chat.pk) == picture
    assert "> alice: look" in expected[echo.pk][-1]["content"]


def test_the_history_is_read_and_found_like_any_other() -> None:
    alice, bob = factories.user("alice"), factories.user("bob")
    source = factories.chat(alice, bob, title="Plans")
    message = factories.message(source, alice, "a marmot in the mountains")
    chat = fork(message, bob)
    assert [hit.content for hit in search_messages(chat.pk, "marmot", limit=5)] == texts(chat)
    (page,) = pages(chat, bob.pk, receipts=lambda *_: {})
    assert page[0]["copied_from"] == message.pk
    (fork_data,) = chats_data([chat], bob.pk)
    assert (fork_data["unread"], fork_data["role"]) == (0, "owner")
    assert fork_data["forked_from"]["readable"]
    assert fork_data["forked_from"]["title"] == "Plans"
    (source_data,) = chats_data([source], bob.pk)
    assert source_data["forked_from"] is None
    Participant.objects.filter(chat=source, user=bob).delete()
    assert not origins_of([chat.pk], bob.pk)[chat.pk]["readable"]


def test_an_export_says_that_the_chat_is_a_fork() -> None:
    alice = factories.user("alice")
    source = factories.chat(alice, title="Plans *2026*")
    messages = [factories.message(source, alice, text) for text in ("one", "two")]
    first, both = fork(messages[0], alice), fork(messages[1], alice)

    def exported(chat: Chat, kind: str) -> bytes:
        write, *_ = FORMATS[kind]
        return b"".join(write(chat, pages(chat, alice.pk, receipts=lambda *_: {})))

    notice = b"A fork of Plans \\*2026\\*: "
    assert notice + b"the first message is a copy." in exported(first, "markdown")
    assert notice + b"the first 2 messages are copies." in exported(both, "markdown")
    origin = msgspec.json.decode(exported(both, "json"))["chat"]["forked_from"]
    assert (origin["title"], origin["messages"]) == ("Plans *2026*", 2)
    assert origin["message_id"] == messages[1].pk
    for kind in FORMATS:
        assert b"fork" not in exported(source, kind)
