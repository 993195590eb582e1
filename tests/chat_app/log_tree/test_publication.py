"""The tree that the public reads, and the witnesses that cosign it."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import pytest

from chat_app.log_tree import checking
from chat_app.log_tree.message_proofs import message_proof
from chat_app.models import Chat, TreeCosignature
from tests.chat_app.log_tree.tree_changes import keys, more, posted, text_of
from tests.uamp.signatures.node_crypto import verified_by_node
from tests.uamp.transparency.test_tree import PROGRAM, WITNESS, cosignature, jwk
from uamp.transparency import notes

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.contrib.auth.models import User
    from django.test import Client

pytestmark = [pytest.mark.django_db]


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


@pytest.mark.sampled(3)
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


@pytest.mark.sampled(4)
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
    consistency_body = json.loads(text_of(client, "consistency?from=5&to=7"))
    roots = [note.split("\n")[2] for note in (first, last)]
    consistency = {"kind": "consistency", **consistency_body, "roots": roots}
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
    tree_keys = [
        published_key for published_key in keys() if published_key["uamp_owner"] == notes.TREE
    ]
    assert [published_key["x"] for published_key in tree_keys] == [key]
