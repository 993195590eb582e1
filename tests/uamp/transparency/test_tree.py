"""The tree of RFC 9162 and the notes of C2SP, compared with another implementation of each."""

from __future__ import annotations

import base64
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.uamp.signatures.node_crypto import verified_by_node
from uamp.logs.checkpoint import BadCheckpoint, LogHead, UnknownCheckpointKey
from uamp.transparency import notes, tree
from uamp.transparency.notes import TreeHead, Witness
from uamp.transparency.proofs import check_proof, proof_text, read_proof

if TYPE_CHECKING:
    from collections.abc import Callable

PROGRAM = Path(__file__).with_name("rfc9162.mjs")
BROWSER = Path(__file__).with_name("browser.mjs")
SIZE = 21
HEADS = [
    LogHead(server="chat.example", chat_id=f"chat_{n}", seq=n, chain_hash=bytes([n]) * 32, at=n)
    for n in range(SIZE)
]
LEAVES = [tree.leaf_hash(head.text.encode()) for head in HEADS]
KEY = Ed25519PrivateKey.from_private_bytes(b"\1" * 32)
PUBLIC = KEY.public_key().public_bytes_raw()
WITNESS_KEY = Ed25519PrivateKey.from_private_bytes(b"\2" * 32)
WITNESS = Witness(name="witness.example/w1", public_key=WITNESS_KEY.public_key().public_bytes_raw())


def jwk(public: bytes = PUBLIC, **members: Any) -> dict[str, Any]:
    """Return a key as JSON Web Key."""
    x = base64.urlsafe_b64encode(public).rstrip(b"=").decode()
    return {"kty": "OKP", "crv": "Ed25519", "x": x, "uamp_owner": "tree", **members}


def root(start: int, end: int) -> bytes:
    """Return the hash of a subtree by the definition of RFC 9162 §2.1.1."""
    if end - start == 1:
        return LEAVES[start]
    middle = start + 2 ** ((end - start - 1).bit_length() - 1)
    both = b"\1" + root(start, middle) + root(middle, end)
    return hashlib.sha256(both).digest()


def note(size: int = SIZE) -> str:
    """Return the signed checkpoint of a size."""
    head = TreeHead(origin="chat.example/log-tree", size=size, root=root(0, size))
    return notes.sign_head(head, public_key=PUBLIC, sign=KEY.sign)


def proof(index: int, size: int = SIZE) -> str:
    """Return the proof of a leaf."""
    path = [root(*span) for span in tree.inclusion_path(index, size)]
    return proof_text(index, path, note(size))


def cosignature(text: str, at: int = 1_780_000_000) -> str:
    """Return the line of the witness for a note, as C2SP's tlog-cosignature has it."""
    body = text.partition("\n\n")[0] + "\n"
    signature = WITNESS_KEY.sign(f"cosignature/v1\ntime {at}\n{body}".encode())
    key_id = hashlib.sha256(f"{WITNESS.name}\n\x04".encode() + WITNESS.public_key).digest()[:4]
    encoded = base64.b64encode(key_id + at.to_bytes(8, "big") + signature).decode()
    return f"\N{EM DASH} {WITNESS.name} {encoded}\n"


# --- The tree ---


def test_nodes_are_stored_in_the_order_in_which_they_are_completed() -> None:
    places: list[int] = []
    for leaf in range(SIZE):
        assert tree.nodes_before(leaf) == len(places)
        levels = range(tree.completed_by(leaf) + 1)
        places += [tree.node_position(level, leaf >> level) for level in levels]
    assert places == list(range(len(places)))


def test_every_proof_holds_for_its_leaf_alone() -> None:
    for size in range(1, SIZE + 1):
        tree_root = root(0, size)
        for index in range(size):
            path = [root(*span) for span in tree.inclusion_path(index, size)]
            places = [
                place
                for place in range(size)
                if tree.is_included(LEAVES[index], path, index=place, size=size, root=tree_root)
            ]
            assert places == [index]
            others = [[*path, tree_root], path[1:]] if path else [[tree_root]]
            for other in others:
                assert not tree.is_included(
                    LEAVES[index], other, index=index, size=size, root=tree_root
                )


def test_every_tree_is_the_beginning_of_every_later_one() -> None:
    for second in range(1, SIZE + 1):
        for first in range(1, second + 1):
            path = [root(*span) for span in tree.consistency_path(first, second)]
            roots = {"first_root": root(0, first), "second_root": root(0, second)}
            assert tree.is_consistent(path, first=first, second=second, **roots)
            other = {**roots, "first_root": b"\0" * 32}
            assert not tree.is_consistent(path, first=first, second=second, **other)
            assert not path or not tree.is_consistent(
                path[:-1], first=first, second=second, **roots
            )
            longer = [*path, root(0, first)]
            assert not tree.is_consistent(longer, first=first, second=second, **roots)
    empty = {"first_root": tree.EMPTY_ROOT, "second_root": root(0, SIZE)}
    assert tree.is_consistent([], first=0, second=SIZE, **empty)
    assert not tree.is_consistent([], first=SIZE, second=0, **empty)
    some = {"first_root": root(0, 3), "second_root": root(0, 5)}
    assert not tree.is_consistent([], first=3, second=5, **some)


def test_a_tree_that_grows_has_the_roots_of_the_definition() -> None:
    assert tree.joined([]) == tree.EMPTY_ROOT
    for size, nodes in enumerate(tree.roots(iter(LEAVES)), start=1):
        assert tree.joined(nodes) == root(0, size)
        places = tree.complete_nodes(tree.LeafRange(0, size))
        spans = [(index << level, (index + 1) << level) for level, index in places]
        assert nodes == [root(*span) for span in spans]


def test_node_verifies_the_proofs_and_the_notes() -> None:
    """By the recursive definitions, in another language."""
    good: list[dict[str, Any]] = [
        {"kind": "inclusion", "text": HEADS[index].text, "proof": proof(index)}
        for index in range(SIZE)
    ]
    moved = proof(3).replace("index 3", "index 2")
    bad = [{**good[3], "text": HEADS[4].text}, {**good[3], "proof": moved}]
    for first in range(1, SIZE):
        path = [root(*span) for span in tree.consistency_path(first, SIZE)]
        hashes, roots = base64_of(path), base64_of([root(0, first), root(0, SIZE)])
        good.append(
            {"kind": "consistency", "from": first, "to": SIZE, "hashes": hashes, "roots": roots}
        )
        bad.append({**good[-1], "roots": [roots[1], roots[1]]})
    both = note() + cosignature(note())
    server_note = {
        "kind": "note",
        "note": both,
        "name": "chat.example/log-tree",
        "key": jwk(),
        "type": 1,
    }
    other = {**server_note, "name": WITNESS.name, "key": jwk(WITNESS.public_key), "type": 4}
    good += [server_note, other]
    bad += [{**note, "note": both.replace(f"\n{SIZE}\n", "\n7\n")} for note in (server_note, other)]
    bad += [{**server_note, "key": other["key"]}, {**other, "key": server_note["key"]}]
    assert verified_by_node([*good, *bad], PROGRAM) == [True] * len(good) + [False] * len(bad)


def test_the_modules_of_the_pages_verify_the_same_proofs_and_notes() -> None:
    """Of every leaf and every pair of sizes."""
    good: list[dict[str, Any]] = []
    bad: list[dict[str, Any]] = []
    for size in range(1, SIZE + 1):
        for index in range(size):
            included = {"kind": "inclusion", "server": "chat.example", "proof": proof(index, size)}
            good.append({**included, "text": HEADS[index].text})
            bad.append({**included, "text": HEADS[(index + 1) % SIZE].text})
        for first in range(1, size + 1):
            path = [root(*span) for span in tree.consistency_path(first, size)]
            roots = base64_of([root(0, first), root(0, size)])
            document = {"kind": "consistency", "from": first, "to": size, "roots": roots}
            good.append({**document, "hashes": base64_of(path)})
            longer = {**document, "hashes": base64_of([*path, root(0, first)])}
            other = {**good[-1], "roots": base64_of([b"\0" * 32, root(0, size)])}
            bad += [longer, other, {**good[-1], "from": size + 1}]
    cosigned = note() + cosignature(note())
    good += [{"kind": "note", "note": text, "key": jwk()} for text in (note(), note(1), cosigned)]
    bad += [{**good[-1], "key": key} for key in (jwk(b"\2" * 32), jwk(uamp_owner="log"))]
    bad += [{**good[-1], "note": cosigned.replace(f"\n{SIZE}\n", "\n7\n")}]
    results = verified_by_node([*good, *bad], BROWSER)
    assert results == [True] * len(good) + [False] * len(bad)


# --- Notes ---


def test_a_checkpoint_is_verified_by_the_key_of_the_tree_alone() -> None:
    signed = notes.read_note(note())
    assert signed.text == note()
    assert signed.head.size == SIZE
    notes.check_signature(signed, [jwk(b"\2" * 32), jwk()])
    notes.check_signature(signed, [{**jwk(), "kid": "a"}])
    for key in (jwk(uamp_owner="log"), jwk(uamp_owner="server"), jwk(WITNESS.public_key)):
        with pytest.raises(UnknownCheckpointKey):
            notes.check_signature(signed, [key])
    other = notes.read_note(note().replace(f"\n{SIZE}\n", "\n7\n"))
    with pytest.raises(BadCheckpoint, match="does not match this checkpoint"):
        notes.check_signature(other, [jwk()])


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:0],
        lambda text: text[:-1],
        lambda text: text[:-2] + "\n",
        lambda text: text + "\n",
        lambda text: text.replace("\n\n", "\nextra\n\n"),
        lambda text: text.replace(f"\n{SIZE}\n", f"\n0{SIZE}\n"),
        lambda text: text.replace(f"\n{SIZE}\n", f"\n-{SIZE}\n"),
        lambda text: text.replace("chat.example", "chat example"),
        lambda text: text.replace("\N{EM DASH}", "-"),
        lambda text: text + text.split("\n\n")[1] * 40,
        lambda text: text + "x" * notes.NOTE_CHARS_MAX,
    ],
)
def test_a_malformed_note_is_not_a_checkpoint(change: Callable[[str], str]) -> None:
    with pytest.raises(BadCheckpoint):
        notes.read_note(change(note()))


def test_a_cosignature_is_that_of_its_witness_and_of_this_checkpoint() -> None:
    cosigned = notes.read_note(note() + cosignature(note()))
    cosignatures = notes.cosignatures(cosigned, [WITNESS])
    assert {name: notes.cosigned_at(line) for name, line in cosignatures.items()} == {
        WITNESS.name: 1_780_000_000
    }
    stranger = Witness(name="other.example", public_key=WITNESS.public_key)
    assert notes.cosignatures(cosigned, [stranger]) == {}
    for line in (
        cosignature(note(7)),
        cosignature(note()).replace(WITNESS.name, "witness.example/w2"),
        cosignature(note(), at=1 << 63),
        f"\N{EM DASH} {WITNESS.name} {base64.b64encode(WITNESS.key_id + bytes(60)).decode()}\n",
    ):
        assert notes.cosignatures(notes.read_note(note() + line), [WITNESS]) == {}


def test_the_verifier_key_of_a_witness_is_read() -> None:
    encoded = base64.b64encode(b"\x04" + WITNESS.public_key).decode()
    text = f"{WITNESS.name}+{WITNESS.key_id.hex()}+{encoded}"
    assert Witness.parse(text) == WITNESS
    # The key of a log has another type.
    of_log = notes.verifier_key(WITNESS.name, WITNESS.public_key)
    for bad in ("", of_log, text[:-1], text.replace("+", "-"), f"x{text}"):
        with pytest.raises(ValueError, match=r"."):
            Witness.parse(bad)


# --- Proofs ---


def test_a_log_head_is_in_the_tree_of_its_server() -> None:
    both = proof(5) + cosignature(note())
    result = check_proof(both, HEADS[5], [jwk()], [WITNESS])
    assert (result.tree.size, result.index, result.is_signed) == (SIZE, 5, True)
    assert result.cosigned == {WITNESS.name: 1_780_000_000}
    assert check_proof(proof(5), HEADS[5]).is_signed is None
    assert check_proof(proof(0, 1), HEADS[0], [jwk()]).is_signed


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:0],
        lambda text: text.replace("@v1", "@v2"),
        lambda text: text.replace("index 5", "index 05"),
        lambda text: text.replace("index 5", "index 4"),
        lambda text: text.replace("index 5", f"index {SIZE}"),
        lambda text: text.replace("index 5\n", "index 5\nAAAA\n"),
        lambda text: text.replace("\n\n", f"\n{base64.b64encode(bytes(32)).decode()}\n\n", 1),
        lambda text: text.replace("index 5\n", "index 5\n" + "A" * 43 + "=\n", 1),
        lambda text: text.replace("chat.example/log-tree", "chat.example/tree"),
        lambda text: text.replace(f"\n{SIZE}\n", "\n20\n"),
    ],
)
def test_a_changed_proof_proves_nothing(change: Callable[[str], str]) -> None:
    with pytest.raises(BadCheckpoint):
        check_proof(change(proof(5)), HEADS[5], [jwk()])


def test_a_proof_is_of_one_head_and_one_server() -> None:
    with pytest.raises(BadCheckpoint, match="does not contain this head"):
        check_proof(proof(5), HEADS[6], [jwk()])
    other = LogHead(server="other.example", chat_id="chat_5", seq=5, chain_hash=b"\5" * 32, at=5)
    with pytest.raises(BadCheckpoint, match="another server"):
        check_proof(proof(5), other, [jwk()])
    assert read_proof(proof(5)).index == 5


def base64_of(hashes: list[bytes]) -> list[str]:
    """Return hashes in base64."""
    return [base64.b64encode(digest).decode() for digest in hashes]
