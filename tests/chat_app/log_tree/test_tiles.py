"""The tree as tiles (C2SP tlog-tiles): what is served, and that another program reads it."""

from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest
from django.test import Client
from django.utils import timezone

from chat_app.log_tree.growth import grow
from chat_app.models import LogCheckpoint, LogTree, TreeNode
from signing_app import owner_keys
from tests import factories
from tests.uamp.signatures.node_crypto import verified_by_node
from tests.uamp.transparency.test_tree import PROGRAM
from uamp.transparency import tree

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.django_db]

SIZE = 603
# All tiles of a tree of this size.
TILES = ("0/000", "0/001", "0/002.p/91", "1/000.p/2")


@pytest.fixture
def client() -> Iterator[Client]:
    """Return a client of a server with a tree of SIZE leaves."""
    owner_keys.forget()
    chat = factories.chat(factories.user())
    LogCheckpoint.objects.bulk_create(
        LogCheckpoint(chat=chat, seq=number, note=f"head {number}") for number in range(SIZE)
    )
    while grow(timezone.now()):
        pass
    assert LogTree.objects.get().size == SIZE
    yield Client()
    owner_keys.forget()


def tile(client: Client, path: str) -> bytes:
    """Return the hashes of a tile."""
    answer = client.get(f"/log-tree/tile/{path}")
    assert answer.status_code == 200
    assert answer["Content-Type"] == "application/octet-stream"
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert "immutable" in answer["Cache-Control"]
    return bytes(answer.content)


def test_another_program_computes_the_signed_root_from_the_tiles(client: Client) -> None:
    tiles = {path: tile(client, path) for path in TILES}
    assert [len(hashes) // 32 for hashes in tiles.values()] == [256, 256, 91, 2]
    assert tiles["0/000"][:32] == tree.leaf_hash(b"head 0")
    encoded = {path: base64.b64encode(hashes).decode() for path, hashes in tiles.items()}
    note = client.get("/log-tree/checkpoint").content.decode()
    full_log = {"kind": "tiles", "note": note, "tiles": encoded}
    wrong = {"1/000.p/2": encoded["1/000.p/2"][::-1]}
    moved = {"0/000": encoded["0/001"], "0/001": encoded["0/000"]}
    others = [{**full_log, "tiles": {**encoded, **change}} for change in (wrong, moved)]
    assert verified_by_node([full_log, *others], PROGRAM) == [True, False, False]


def test_a_partial_tile_is_a_prefix_of_the_full_tile(client: Client) -> None:
    """Clients that saw a smaller tree still find its last tile."""
    full_tile = tile(client, "0/000")
    for width in (1, 91, 255):
        assert tile(client, f"0/000.p/{width}") == full_tile[: 32 * width]
    assert hashlib.sha256(full_tile).digest() != hashlib.sha256(tile(client, "0/001")).digest()


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    "path",
    [
        "0/002",
        "0/002.p/92",
        "0/003.p/1",
        "1/000",
        "1/000.p/3",
        "2/000.p/1",
        "63/000.p/1",
        "64/000",
        "00/000",
        "0/0",
        "0/0000",
        "0/x000/000",
        "0/000/x000",
        "0/x000/x000/x000/x000/x000/x000/000",
        "0/x999/x999/x999/x999/x999/999",
        "0/000.p/0",
        "0/000.p/01",
        "0/000.p/256",
        "0/000.p/",
        "0/000/",
        "-1/000",
        "0/-01",
        "0/\N{ARABIC-INDIC DIGIT ZERO}00",
        "entries/000",
        "entries/002.p/91",
    ],
)
def test_no_other_tile_is_there(client: Client, path: str) -> None:
    answer = client.get(f"/log-tree/tile/{path}")
    assert answer.status_code == 404
    assert "immutable" not in answer.get("Cache-Control", "")


def test_a_tile_with_a_hash_that_is_gone_is_not_served(client: Client) -> None:
    TreeNode.objects.filter(pk=tree.node_position(0, 300)).delete()
    assert client.get("/log-tree/tile/0/001").status_code == 404
    assert tile(client, "0/000")
