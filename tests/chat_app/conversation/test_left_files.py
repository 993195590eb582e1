"""Taken files that a process left where they are, although their source no longer shows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pytest
from django.db import connection
from django.db.models import F
from django.test.utils import CaptureQueriesContext

from chat_app.conversation import deletion, taken_files
from chat_app.models import ContentUse, MessageDeletion
from tests import factories
from tests.chat_app.conversation.test_taken_files import chats_with, delete, role, shown

if TYPE_CHECKING:
    from chat_app.models import Chat, Content, Message

pytestmark = pytest.mark.django_db

SOURCES: Final = 5
CHATS: Final = 50
FILES: Final = 100
BATCH: Final = 1_000


def left_file(after: str) -> tuple[Message, Content]:
    """Return a message and its file, which another chat took; a process dies `after` that."""
    alice, bob = factories.user("alice"), factories.user("bob")
    source, file = factories.chat(alice, bob), factories.content(alice)
    original = shown(source, alice, file)
    role(source, bob, "admin")
    between = factories.chat(bob)
    shown(between, bob, file)
    if after == "the look of another chat":
        # It took the file while it was withdrawn there.
        ContentUse.objects.create(chat=factories.chat(bob), content=file, source=between)
        ContentUse.objects.filter(chat=between).delete()
    return original, file


def test_a_later_look_at_a_deletion_withdraws_its_files() -> None:
    original, file = left_file("the deletion")
    delete(original)
    MessageDeletion.objects.update(deleted_at=F("deleted_at") - deletion.COPIES_AFTER)
    assert chats_with(file) != set()
    assert deletion.delete_left_copies(10) == 1
    assert chats_with(file) == set()


@pytest.mark.parametrize("after", ["the deletion", "the look of another chat"])
def test_a_look_at_all_withdraws_what_is_left(after: str) -> None:
    original, file = left_file(after)
    looks = taken_files.LeftFiles()
    if after == "the deletion":
        assert looks.withdraw(10) == 0
        delete(original)
    assert looks.withdraw(10) == 1
    assert looks.withdraw(10) == 0
    assert ContentUse.objects.filter(content=file, source__isnull=False).count() == 0


def taken_by_many() -> tuple[list[Chat], list[Content]]:
    """Return chats that show the same files, which 5,000 uses in other chats were taken from."""
    alice = factories.user("alice")
    sources = [factories.chat(alice) for _ in range(SOURCES)]
    files = [
        factories.content(alice, b"%d" % number, mime_type="text/plain", filename="a.txt")
        for number in range(FILES)
    ]
    for source in sources:
        ContentUse.objects.bulk_create(
            ContentUse(chat=source, content=file, shown_by=1) for file in files
        )
    for number in range(CHATS):
        chat = factories.chat(alice)
        ContentUse.objects.bulk_create(
            ContentUse(chat=chat, content=file, shown_by=1, source=sources[number % SOURCES])
            for file in files
        )
    return sources, files


def test_a_look_is_bounded_and_all_looks_together_reach_everything() -> None:
    sources, files = taken_by_many()
    uses = ContentUse.objects.filter(source__isnull=False)
    looks, rounds = taken_files.LeftFiles(), uses.count() // BATCH
    with CaptureQueriesContext(connection) as statements:
        for _ in range(rounds):
            assert looks.withdraw(BATCH) == 0
        assert deletion.delete_left_copies(BATCH) == 0
    assert len(statements) == rounds + 1
    assert all(f"LIMIT {BATCH}" in statement["sql"] for statement in statements)

    # The last look finds nothing more, and the next begins again.
    assert looks.withdraw(BATCH) == 0
    for source in sources:
        ContentUse.objects.get(chat=source, content=files[-1]).delete()
    assert [looks.withdraw(BATCH) for _ in range(rounds)] == [CHATS, *[0] * (rounds - 1)]
    assert uses.count() == CHATS * (FILES - 1)


def test_each_source_has_its_turn() -> None:
    sources, files = taken_by_many()
    last = max(source.pk for source in sources)
    ContentUse.objects.get(chat=last, content=files[0]).delete()
    looks = taken_files.LeftFiles()
    withdrawn = [looks.withdraw(BATCH) for _ in range(CHATS * FILES // BATCH)]
    assert withdrawn == [*[0] * (SOURCES - 1), CHATS // SOURCES]
