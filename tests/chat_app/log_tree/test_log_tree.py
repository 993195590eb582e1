"""The tree of log heads: its growth, what shows when a row is changed, its witnesses and proofs."""

from __future__ import annotations

import base64
import json
import threading
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat_app.conversation.deletion import delete_message
from chat_app.conversation.revisions import edit_message
from chat_app.export.formats import ndjson
from chat_app.export.log_lines import log_lines
from chat_app.export.pages import pages_for_staff
from chat_app.log.checkpoints import LogChanged, checkpoint_of, sign_heads
from chat_app.log_tree import checking
from chat_app.log_tree.growth import grow
from chat_app.log_tree.message_proofs import NotProvable, message_proof
from chat_app.log_tree.nodes import TreeChanged
from chat_app.log_tree.proofs import consistency_proof
from chat_app.models import (
    Chat,
    ChatEvent,
    LogCheckpoint,
    LogTree,
    Message,
    TreeCheckpoint,
    TreeCosignature,
    TreeNode,
)
from signing_app import owner_keys
from signing_app.published import all_keys
from tests import factories
from tests.threads import thread_pool
from tests.uamp.signatures.node_crypto import verified_by_node
from tests.uamp.transparency.test_tree import PROGRAM, WITNESS, cosignature, jwk
from uamp.client.errors import ExportCutError
from uamp.client.exports import check_export, check_message_proof
from uamp.command_line.program import program
from uamp.transparency import notes, tree

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from django.contrib.auth.models import User
    from pytest_django import Settings

pytestmark = [pytest.mark.django_db]


@pytest.fixture(autouse=True)
def fresh_keys() -> Iterator[None]:
    """Forget the keys of other tests, whose rows are gone."""
    owner_keys.forget()
    yield
    owner_keys.forget()


@pytest.fixture
def ada() -> User:
    """Return the person who writes."""
    return factories.user()


@pytest.fixture
def chats(ada: User) -> list[Chat]:
    """Return chats whose heads are in the tree."""
    made = [factories.chat(ada, title=f"Plans {n}") for n in range(5)]
    for number, chat in enumerate(made):
        factories.message(chat, ada, f"number {number}")
    sign_heads(timezone.now())
    grow(timezone.now())
    return made


def keys() -> list[dict[str, Any]]:
    """Return the published keys."""
    return all_keys()["keys"]


def more(chat: Chat, ada: User, text: str = "more") -> Message:
    """Write a message, sign the head of its chat and add it to the tree."""
    message = factories.message(chat, ada, text)
    checkpoint_of(chat.pk)
    grow(timezone.now())
    return message


# --- Growth ---


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
    found = checking.check_tree()
    assert (found.is_intact, found.leaves, found.orphans) == (True, 6, 1)


# --- What shows ---


def change_node(position: int) -> None:
    """Change a stored hash."""
    TreeNode.objects.filter(pk=position).update(hash=b"\1" * 32)


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
        kept = [row.pk for row in rows]
        model._default_manager.exclude(pk__in=kept).delete()
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


# --- Witnesses, and what the public reads ---


@pytest.fixture
def client(settings: Settings) -> Client:
    """Return a client of a server that knows the witness."""
    encoded = base64.b64encode(b"\x04" + WITNESS.public_key).decode()
    settings.UAMP_WITNESSES = [f"{WITNESS.name}+{WITNESS.key_id.hex()}+{encoded}"]
    return Client()


def posted(client: Client, note: str) -> tuple[int, str]:
    """Return the status and the text of the answer to a cosigned note."""
    answer = client.post("/log-tree/cosignatures", note, content_type="text/plain")
    return answer.status_code, answer.content.decode()


def text_of(client: Client, path: str) -> str:
    """Return a public text."""
    answer = client.get(f"/log-tree/{path}")
    assert (answer.status_code, answer["Access-Control-Allow-Origin"]) == (200, "*")
    return answer.content.decode()


def test_a_witness_cosigns_the_checkpoint(client: Client, chats: list[Chat], ada: User) -> None:
    note = text_of(client, "checkpoint")
    cosigned = note + cosignature(note)
    assert posted(client, cosigned) == (200, cosigned)
    # Its first cosignature counts.
    assert posted(client, note + cosignature(note, 1_700_000_000)) == (200, cosigned)
    assert text_of(client, "checkpoint") == cosigned
    assert checking.check_tree().cosigned == 1
    more(chats[0], ada)
    assert text_of(client, "checkpoint?size=5") == cosigned
    # A proof rests on the newest cosigned checkpoint.
    assert text_of(client, "proof?index=3").endswith(cosigned)
    assert "\n6\n" in text_of(client, "proof?index=5")
    TreeCosignature.objects.update(line=cosignature(text_of(client, "checkpoint")))
    kinds = [problem.kind for problem in checking.check_tree().problems]
    assert kinds == ["cosignature_changed"]


@pytest.mark.parametrize(
    ("change", "status"),
    [
        (lambda note: note, 403),
        (lambda note: note + cosignature(note).replace(WITNESS.name, "stranger"), 403),
        (lambda note: note + cosignature(note.replace("\n5\n", "\n4\n")), 403),
        (lambda note: note + cosignature(note, 4_000_000_000), 400),
        (lambda note: note[:-1], 400),
        (lambda note: note * 100, 400),
        (lambda note: note[:0], 400),
        (lambda note: note.replace("\n5\n", "\n4\n"), 404),
        (lambda note: note.replace("localhost", "otherhost"), 404),
    ],
)
def test_no_other_line_is_published(
    client: Client, chats: list[Chat], change: Callable[[str], str], status: int
) -> None:
    note = text_of(client, "checkpoint")
    assert posted(client, change(note))[0] == status
    assert text_of(client, "checkpoint") == note


@pytest.mark.parametrize(
    "path",
    [
        "checkpoint?size=4",
        "checkpoint?size=x",
        "checkpoint?size=9999999999999999999",
        "consistency",
        "consistency?from=0&to=5",
        "consistency?from=5&to=4",
        "consistency?from=1&to=6",
        "proof?index=5",
        "proof?index=-1",
        "proof?index=1&size=4",
    ],
)
def test_what_the_tree_does_not_have_is_not_found(
    client: Client, chats: list[Chat], path: str
) -> None:
    assert client.get(f"/log-tree/{path}").status_code == 404


def test_node_verifies_what_the_server_publishes(
    client: Client, chats: list[Chat], ada: User
) -> None:
    """Checkpoints, cosignatures, consistency, and one message without the others."""
    first = text_of(client, "checkpoint")
    message = more(chats[0], ada, "the one")
    more(chats[0], ada, "another")
    last = text_of(client, "checkpoint")
    assert posted(client, last + cosignature(last))[0] == 200
    said = json.loads(text_of(client, "consistency?from=5&to=7"))
    roots = [note.split("\n")[2] for note in (first, last)]
    consistency = {"kind": "consistency", **said, "roots": roots}
    proof = message_proof(message)
    assert "another" not in json.dumps(proof)
    witness = {"name": WITNESS.name, "key": jwk(WITNESS.public_key)}
    proven = {"kind": "message", "proof": proof, "keys": proof["keys"], "witness": witness}
    event = proof["entries"][0]["event"]
    other = {**event, "message": {**event["message"], "content": "the other"}}
    changed = {**proof, "entries": [{**proof["entries"][0], "event": other}]}
    wrong = [{**consistency, "roots": roots[::-1]}, {**proven, "proof": changed}]
    assert verified_by_node([consistency, proven, *wrong], PROGRAM) == [True, True, False, False]
    (line,) = text_of(client, "keys").splitlines()
    name, _, encoded = line.split("+", 2)
    assert name == last.split("\n")[0]
    key = base64.urlsafe_b64encode(base64.b64decode(encoded)[1:]).rstrip(b"=").decode()
    own = [one for one in keys() if one["uamp_owner"] == notes.TREE]
    assert [one["x"] for one in own] == [key]


# --- Exports, and one message alone ---


def exported(chat: Chat) -> list[bytes]:
    """Return the lines of the export of a chat with its log."""
    pieces = ndjson(chat, pages_for_staff(chat), log_lines(chat.pk, None))
    return b"".join(pieces).splitlines(keepends=True)


def test_an_export_proves_that_its_head_is_in_the_tree(
    client: Client, chats: list[Chat], ada: User
) -> None:
    factories.message(chats[3], ada, "not in the tree yet")
    chats[3].refresh_from_db()
    lines = exported(chats[3])
    note = text_of(client, "checkpoint")
    posted(client, note + cosignature(note))
    found = check_export(exported(chats[3]), keys(), [WITNESS]).log
    assert found is not None
    assert found.is_proven
    assert found.tree is not None
    assert (found.tree.tree.size, found.tree.index) == (6, 5)
    assert list(found.tree.cosigned) == [WITNESS.name]
    others = [key for key in keys() if key["uamp_owner"] != notes.TREE]
    unsigned = check_export(lines, others).log
    assert unsigned is not None
    assert (unsigned.is_signed, unsigned.is_proven) == (True, False)
    for old, new in ((b"index 5", b"index 4"), (b"\\n6\\n", b"\\n7\\n")):
        with pytest.raises(ExportCutError, match="tree of log heads"):
            check_export([line.replace(old, new) for line in lines], keys())


def test_one_message_is_proved_without_the_others(
    client: Client, chats: list[Chat], ada: User, tmp_path: Path
) -> None:
    chat = chats[0]
    before = factories.message(chat, ada, "before it")
    message = factories.message(chat, ada, "first words")
    edit_message(chat_id=chat.pk, message_id=message.pk, user_id=ada.pk, content="last words")
    message.refresh_from_db()
    client.force_login(ada)
    answer = client.get(f"/api/v1/messages/{message.pk}/proof")
    assert answer.status_code == 200
    assert b"before it" not in answer.content
    found = check_message_proof(answer.content, keys())
    assert (found.content, found.is_edited, found.is_proven) == ("last words", True, True)
    assert not check_message_proof(answer.content).is_proven
    file, key_file = tmp_path / "proof.json", tmp_path / "keys.json"
    file.write_bytes(answer.content)
    key_file.write_text(json.dumps(all_keys()))
    run = CliRunner().invoke
    said = run(program, ["verify", str(file), "--keys", str(key_file)])
    assert (said.exit_code, "> last words" in said.output) == (0, True)
    assert "in the tree localhost:8000/log-tree." in said.output
    witness = f"{WITNESS.name}+{WITNESS.key_id.hex()}+"
    witness += base64.b64encode(b"\x04" + WITNESS.public_key).decode()
    said = run(program, ["verify", str(file), "--keys", str(key_file), "--witness", witness])
    assert (said.exit_code, "did not cosign" in said.output) == (8, True)
    assert run(program, ["verify", str(file), "--witness", "w"]).exit_code == 2
    client.force_login(factories.user("eve"))
    assert client.get(f"/api/v1/messages/{before.pk}/proof").status_code == 404


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("last words", "lost words"),
        ("first words", "other words"),
        ('"seq": 2', '"seq": 3'),
        ('"message.edited"', '"message.created"'),
        ('"previous": "', '"previous": "0'),
        ('"following": [', '"following": ["00", '),
        ("chats/chat_", "chats/chat-"),
        ("index ", "index 1"),
        ('"role": "user"', '"role": "assistant"'),
        ('"message_id": "', '"message_id": "x'),
        ('{"proof"', '{"a": 1, "a": 2, "proof"'),
        ('"at": ', '"at": 9999999999999999999999'),
        ('"seq": 2', '"seq": 1e400'),
    ],
)
def test_a_changed_proof_of_a_message_proves_nothing(
    chats: list[Chat], ada: User, old: str, new: str
) -> None:
    chat = chats[0]
    message = factories.message(chat, ada, "first words")
    edit_message(chat_id=chat.pk, message_id=message.pk, user_id=ada.pk, content="last words")
    message.refresh_from_db()
    text = json.dumps({"proof": message_proof(message)})
    assert check_message_proof(text.encode(), keys()).is_proven
    assert old in text
    with pytest.raises(ExportCutError):
        check_message_proof(text.replace(old, new).encode(), keys())


def test_what_the_log_does_not_have_is_not_proved(chats: list[Chat], ada: User) -> None:
    chat = chats[0]
    message = factories.message(chat, ada, "to be deleted")
    delete_message(chat_id=chat.pk, message_id=message.pk, user_id=ada.pk)
    message.refresh_from_db()
    with pytest.raises(NotProvable):
        message_proof(message)
    kept = factories.message(chat, ada, "kept")
    message_proof(kept)
    ChatEvent.objects.filter(chat=chat, seq=kept.seq).update(payload={"message": {"id": kept.pk}})
    with pytest.raises(LogChanged):
        message_proof(kept)


# --- The admin ---


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
    assert "Changed: The checkpoint is not that of the tree" in client.get(url).content.decode()
