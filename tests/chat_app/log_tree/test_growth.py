"""The tree of log heads grows by batches, and each head is added once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection
from django.utils import timezone

from chat_app.log.checkpoints import checkpoint_of
from chat_app.log_tree import checking
from chat_app.log_tree.growth import grow
from chat_app.models import Chat, LogCheckpoint, LogTree, TreeCheckpoint, TreeNode
from tests import factories
from tests.chat_app.log_tree.tree_changes import more
from tests.threads import thread_pool
from uamp.transparency import tree

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = [pytest.mark.django_db]


def test_heads_become_leaves_in_their_order(chats: list[Chat], ada: User) -> None:
    rows = list(LogCheckpoint.objects.order_by("leaf"))
    assert [row.leaf for row in rows] == list(range(len(chats)))
    assert LogTree.objects.get().size == TreeCheckpoint.objects.get().size == len(chats)
    before = list(TreeNode.objects.order_by("pk").values_list("pk", "hash"))
    assert grow(timezone.now()) == 0
    more(chats[0], ada)
    assert TreeNode.objects.filter(pk__in=[pk for pk, _ in before]).count() == len(before)
    places = TreeNode.objects.order_by("pk").values_list("pk", flat=True)
    assert list(places) == list(range(tree.nodes_before(6)))
    assert [row.size for row in TreeCheckpoint.objects.order_by("size")] == [5, 6]


def test_a_batch_costs_the_same_queries_whatever_the_size(
    chats: list[Chat], ada: User, django_assert_max_num_queries: Any
) -> None:
    """Growth reads the last checkpoint and one path of the tree."""
    for _ in range(4):
        more(chats[0], ada)
    factories.message(chats[1], ada, "another")
    checkpoint_of(chats[1].pk)
    with django_assert_max_num_queries(16):
        assert grow(timezone.now()) == 1


@pytest.mark.django_db(transaction=True)
def test_processes_that_grow_the_tree_at_once_add_each_head_once(ada: User) -> None:
    for number in range(6):
        chat = factories.chat(ada, title=f"At once {number}")
        factories.message(chat, ada, "a")
        checkpoint_of(chat.pk)
    start = threading.Barrier(3)

    def work() -> None:
        start.wait(120)
        try:
            grow(timezone.now())
        finally:
            connection.close()

    with thread_pool(3) as pool:
        for job in [pool.submit(work) for _ in range(3)]:
            job.result(240)
    leaves = LogCheckpoint.objects.order_by("leaf").values_list("leaf", flat=True)
    assert list(leaves) == list(range(6))
    assert checking.check_tree().is_intact


def test_a_deleted_chat_leaves_the_tree_whole(chats: list[Chat], ada: User) -> None:
    chats[2].delete()
    more(chats[0], ada)
    check = checking.check_tree()
    assert (check.is_intact, check.leaves, check.orphans) == (True, 6, 1)
