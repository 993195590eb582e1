"""Signs of a changed row of the tree or of a log."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.urls import reverse

from chat_app.log_tree import checking
from chat_app.log_tree.nodes import TreeChanged
from chat_app.log_tree.proofs import consistency_proof
from chat_app.models import (
    Chat,
    ChatEvent,
    LogCheckpoint,
    LogTree,
    Message,
    TreeCheckpoint,
    TreeNode,
)
from signing_app import owner_keys
from tests import factories
from tests.chat_app.log_tree.tree_changes import change_node, exported, keys, more, posted, text_of
from tests.uamp.transparency.test_tree import WITNESS, cosignature
from uamp.client.errors import ExportCutError
from uamp.client.exports import check_export
from uamp.transparency import notes, tree

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.test import Client

pytestmark = [pytest.mark.django_db]


def change_checkpoint() -> None:
    """Change the size in the stored checkpoint."""
    row = TreeCheckpoint.objects.get()
    TreeCheckpoint.objects.update(note=row.note.replace("\n5\n", "\n4\n"))


def change_head() -> None:
    """Change the time in a signed head."""
    row = LogCheckpoint.objects.get(leaf=1)
    LogCheckpoint.objects.filter(pk=row.pk).update(note=row.note.replace("time 1", "time 2"))


def exchange_heads() -> None:
    """Exchange the leaves of two heads."""
    for leaf, other in ((1, 9), (2, 1), (9, 2)):
        LogCheckpoint.objects.filter(leaf=leaf).update(leaf=other)


def withdraw_key() -> None:
    """Withdraw the key of the tree."""
    owner_keys.withdraw(next(key["kid"] for key in keys() if key["uamp_owner"] == notes.TREE))


@pytest.mark.sampled(6)
@pytest.mark.parametrize(
    ("change", "kind", "is_refused"),
    [
        (lambda: change_node(tree.node_position(0, 1)), "head_changed", False),
        (lambda: change_node(tree.node_position(0, 4)), "checkpoint_changed", True),
        (lambda: change_node(tree.node_position(1, 0)), "node_changed", False),
        (lambda: change_node(tree.node_position(2, 0)), "node_changed", True),
        (lambda: TreeNode.objects.filter(pk=3).delete(), "node_missing", False),
        (lambda: TreeNode.objects.filter(pk=7).delete(), "node_missing", True),
        (change_checkpoint, "checkpoint_changed", True),
        (lambda: TreeCheckpoint.objects.all().delete(), "checkpoint_missing", True),
        (lambda: LogTree.objects.update(size=4), "checkpoint_missing", True),
        (change_head, "head_changed", False),
        (exchange_heads, "head_changed", False),
        (withdraw_key, "checkpoint_changed", False),
    ],
)
def test_a_changed_row_shows(
    chats: list[Chat], ada: User, change: Callable[[], Any], kind: str, *, is_refused: bool
) -> None:
    """The tree does not grow on a changed root or last path either."""
    assert checking.check_tree().is_intact
    change()
    assert kind in {problem.kind for problem in checking.check_tree().problems}
    with pytest.raises(CommandError, match=r"tree of log heads was changed|logs of \d chats"):
        call_command("audit_log", verbosity=0)
    if is_refused:
        size = LogTree.objects.get().size
        with pytest.raises(TreeChanged):
            more(chats[0], ada)
        assert LogTree.objects.get().size == size


def test_a_tree_that_grows_during_the_check_is_intact(chats: list[Chat], ada: User) -> None:
    grown: list[str] = []

    def grow_after_first(execute: Callable[..., Any], sql: str, *rest: Any) -> Any:
        result = execute(sql, *rest)
        if not grown:
            grown.append(sql)
            more(chats[0], ada)
        return result

    with connection.execute_wrapper(grow_after_first):
        summary = checking.check_tree()
    assert (summary.problems, summary.leaves) == ((), 6)


def test_a_changed_leaf_shows_in_the_check_of_its_chat(chats: list[Chat]) -> None:
    call_command("audit_log", chats[1].pk)
    row = LogCheckpoint.objects.get(chat=chats[1])
    assert row.leaf is not None
    change_node(tree.node_position(0, row.leaf))
    with pytest.raises(CommandError, match="The logs of 1 chats were changed"):
        call_command("audit_log", chats[1].pk)


def test_a_retired_key_still_verifies_the_tree(chats: list[Chat], ada: User) -> None:
    owner_keys.rotate(notes.TREE)
    more(chats[0], ada)
    assert checking.check_tree().is_intact
    assert len({key["kid"] for key in keys() if key["uamp_owner"] == notes.TREE}) == 2


def snapshot() -> list[tuple[Any, list[Any]]]:
    """Return the rows of the logs and of the tree, as a backup has them."""
    models = (Chat, ChatEvent, Message, LogCheckpoint, TreeNode, TreeCheckpoint, LogTree)
    return [(model, list(model._default_manager.all())) for model in models]


def restore(backup: list[tuple[Any, list[Any]]]) -> None:
    """Put the rows of a backup in the place of those that came later."""
    for model, rows in reversed(backup):
        row_ids = [row.pk for row in rows]
        model._default_manager.exclude(pk__in=row_ids).delete()
    for model, rows in backup:
        fields = [field.name for field in model._meta.concrete_fields if not field.primary_key]
        model._default_manager.bulk_update(rows, fields)


def test_a_backup_of_yesterday_is_whole_but_not_the_tree_that_others_saw(
    chats: list[Chat], ada: User
) -> None:
    """Rows that were restored agree with each other; who kept a later head or root sees it."""
    yesterday = snapshot()
    more(chats[0], ada, "of today")
    more(chats[0], ada, "the last of today")
    seen = notes.read_note(TreeCheckpoint.objects.get(size=7).note).head
    exported_today = exported(chats[0])
    restore(yesterday)
    assert LogTree.objects.get().size == 5
    assert checking.check_tree().is_intact
    call_command("audit_log", verbosity=0)
    assert consistency_proof(5, 7) is None
    chat = Chat.objects.get(pk=chats[0].pk)
    for text in ("in its place", "another in its place", "and one more"):
        more(chat, ada, text)
        chat.refresh_from_db()
    path = consistency_proof(7, 8)
    now = {row.size: notes.read_note(row.note).head for row in TreeCheckpoint.objects.all()}
    assert path is not None
    continues = partial(tree.is_consistent, path, first=7, second=8, second_root=now[8].root)
    assert continues(first_root=now[7].root)
    assert not continues(first_root=seen.root)
    # The head that was exported before has another hash than the same place of the log today.
    (old,) = [json.loads(line) for line in exported_today if b'"type":"checkpoint"' in line]
    mixed = [
        json.dumps({**json.loads(line), "note": old["note"], "tree": None}).encode() + b"\n"
        if b'"type":"checkpoint"' in line
        else line
        for line in exported(chat)
    ]
    with pytest.raises(ExportCutError, match="checkpoint_changed"):
        check_export(mixed, keys())


def test_the_page_of_a_checkpoint_says_whether_the_tree_was_changed(
    client: Client, chats: list[Chat]
) -> None:
    client.force_login(factories.superuser())
    url = reverse("admin:chat_app_treecheckpoint_change", args=["5"])
    assert "Not changed. Cosigned by no witness." in client.get(url).content.decode()
    note = text_of(client, "checkpoint")
    posted(client, note + cosignature(note))
    assert f"Cosigned by {WITNESS.name}." in client.get(url).content.decode()
    change_node(tree.node_position(0, 4))
    assert "Changed: The checkpoint does not match the tree" in client.get(url).content.decode()
