"""Exports and single messages with the proof that their head is in the tree."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat_app.conversation.deletion import delete_message
from chat_app.conversation.revisions import edit_message
from chat_app.log.checkpoints import LogChanged
from chat_app.log_tree.message_proofs import NotProvable, message_proof
from chat_app.models import Chat, ChatEvent
from signing_app.published import all_keys
from tests import factories
from tests.chat_app.log_tree.tree_changes import exported, grown, keys, posted, text_of
from tests.uamp.transparency.test_tree import WITNESS, cosignature
from uamp.client.errors import ExportCutError
from uamp.client.exports import check_export, check_message_proof
from uamp.command_line.program import program
from uamp.transparency import notes

if TYPE_CHECKING:
    from pathlib import Path

    from django.contrib.auth.models import User
    from django.test import Client
    from pytest_django import Settings

pytestmark = [pytest.mark.django_db]


def test_an_export_proves_that_its_head_is_in_the_tree(
    client: Client, chats: list[Chat], ada: User
) -> None:
    factories.message(chats[3], ada, "not in the tree yet")
    chats[3].refresh_from_db()
    lines = exported(chats[3])
    note = text_of(client, "checkpoint")
    posted(client, note + cosignature(note))
    log_proof = check_export(exported(chats[3]), keys(), [WITNESS]).log
    assert log_proof is not None
    assert log_proof.is_proven
    assert log_proof.tree is not None
    assert (log_proof.tree.tree.size, log_proof.tree.index) == (6, 5)
    assert list(log_proof.tree.cosigned) == [WITNESS.name]
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
    message_check = check_message_proof(answer.content, keys())
    assert (message_check.content, message_check.is_edited, message_check.is_proven) == (
        "last words",
        True,
        True,
    )
    assert not check_message_proof(answer.content).is_proven
    file, key_file = tmp_path / "proof.json", tmp_path / "keys.json"
    file.write_bytes(answer.content)
    key_file.write_text(json.dumps(all_keys()))
    run = CliRunner().invoke
    result = run(program, ["verify", str(file), "--keys", str(key_file)])
    assert (result.exit_code, "> last words" in result.output) == (0, True)
    assert "in the tree localhost:8000/log-tree." in result.output
    witness = f"{WITNESS.name}+{WITNESS.key_id.hex()}+"
    witness += base64.b64encode(b"\x04" + WITNESS.public_key).decode()
    result = run(program, ["verify", str(file), "--keys", str(key_file), "--witness", witness])
    assert (result.exit_code, "did not cosign" in result.output) == (8, True)
    assert run(program, ["verify", str(file), "--witness", "w"]).exit_code == 2
    client.force_login(factories.user("eve"))
    assert client.get(f"/api/v1/messages/{before.pk}/proof").status_code == 404


@pytest.mark.sampled(5)
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
    kept_message = factories.message(chat, ada, "kept")
    message_proof(kept_message)
    ChatEvent.objects.filter(chat=chat, seq=kept_message.seq).update(
        payload={"message": {"id": kept_message.pk}}
    )
    with pytest.raises(LogChanged):
        message_proof(kept_message)


def test_a_message_is_proved_if_a_signed_head_is_near(
    client: Client, chats: list[Chat], ada: User
) -> None:
    near, far = (factories.message(chat, ada, "kept") for chat in chats[:2])
    grown(chats[0], 1000)
    grown(chats[1], 1001)
    client.force_login(ada)
    with CaptureQueriesContext(connection) as queries:
        answer = client.get(f"/api/v1/messages/{near.pk}/proof")
    assert answer.status_code == 200
    assert len(answer.json()["proof"]["entries"][0]["following"]) == 1000
    assert check_message_proof(answer.content, keys()).is_proven
    pages = [query["sql"] for query in queries if "LIMIT 100" in query["sql"]]
    assert len(pages) == 10
    assert not any("chain_hash" in sql for sql in pages)
    assert client.get(f"/api/v1/messages/{far.pk}/proof").status_code == 404


def test_proofs_have_a_rate_of_their_own(
    client: Client, chats: list[Chat], ada: User, settings: Settings
) -> None:
    message = factories.message(chats[0], ada, "kept")
    client.force_login(ada)
    settings.UAMP_PROOFS_PER_MINUTE = 1
    path = f"/api/v1/messages/{message.pk}"
    assert [client.get(f"{path}/proof").status_code for _ in range(2)] == [200, 429]
    assert client.get(path).status_code == 200
