"""Checkpoints submitted to witnesses: C2SP tlog-witness, with a witness written in JavaScript."""

from __future__ import annotations

import base64
import hashlib
import logging
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from django.test import Client
from django.utils import timezone

from agents_app.outbound.guard import Posted
from chat_app.log.checkpoints import checkpoint_of
from chat_app.log_tree import submission
from chat_app.log_tree.growth import grow, tree_name
from chat_app.models import LogCheckpoint, LogTree, TreeCheckpoint, TreeCosignature, TreeNode
from sessions_app.process.periodic import grow_tree
from signing_app import owner_keys
from tests import factories, services
from tests.programs import Program
from tests.uamp.signatures.node_crypto import verified_by_node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from django.contrib.auth.models import User
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

PROGRAMS = Path(__file__).parents[2] / "uamp" / "transparency"
NAME = "witness.example/js"
SEED = b"\3" * 32
PUBLIC = Ed25519PrivateKey.from_private_bytes(SEED).public_key().public_bytes_raw()


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


def add_leaf(ada: User) -> None:
    """Write a message in a new chat, and add the head of its log to the tree."""
    chat = factories.chat(ada)
    factories.message(chat, ada, "Hello")
    checkpoint_of(chat.pk)
    grow(timezone.now())


def verifier_key() -> str:
    """Return the key of the witness, computed as C2SP's signed-note has it."""
    key_id = hashlib.sha256(f"{NAME}\n\x04".encode() + PUBLIC).digest()[:4].hex()
    encoded = base64.b64encode(b"\x04" + PUBLIC).decode()
    return f"{NAME}+{key_id}+{encoded}"


@pytest.fixture
def witness(ada: User, settings: Settings, tmp_path: Path) -> Iterator[Program]:
    """Run a witness that knows the key of the tree, which has three leaves."""
    for _ in range(3):
        add_leaf(ada)
    node = services.node()
    if node is None:
        pytest.skip("no node: `make install` installs one")
    own_key = Client().get("/log-tree/keys").content.decode().strip()
    program = PROGRAMS / "witness.mjs"
    with Program(node, program, own_key, NAME, SEED.hex(), log=tmp_path / "witness") as running:
        running.wait_until(lambda: running.output.endswith("\n"))
        place = f"127.0.0.1:{running.output.strip()}"
        settings.UAMP_FETCH_ALLOW_HOSTS, settings.UAMP_FETCH_SECONDS = [place], 120
        settings.UAMP_WITNESSES = [f"{verifier_key()} http://{place}/"]
        yield running


def ask() -> list[int]:
    """Submit what is due as the periodic job does; return the statuses of the answers."""
    statuses = []
    for due in submission.submissions_due():
        current: submission.Submission | None = due
        while current is not None:
            answer = submission.submit(current)
            statuses.append(0 if answer is None else answer.status)
            current = submission.take_answer(current, answer, timezone.now())
    return statuses


def is_cosigned(size: int) -> bool:
    """Return whether node verifies the cosignature of the witness in the published checkpoint."""
    note = Client().get(f"/log-tree/checkpoint?size={size}").content.decode()
    x = base64.urlsafe_b64encode(PUBLIC).rstrip(b"=").decode()
    key = {"kty": "OKP", "crv": "Ed25519", "x": x}
    document = {"kind": "note", "note": note, "name": NAME, "key": key, "type": 4}
    (is_good,) = verified_by_node([document], PROGRAMS / "rfc9162.mjs")
    return bool(is_good)


def replace_tree(ada: User, leaves: int) -> None:
    """Make another tree, of other heads."""
    for model in (TreeCosignature, TreeCheckpoint, TreeNode, LogTree, LogCheckpoint):
        model._default_manager.all().delete()
    for _ in range(leaves):
        add_leaf(ada)


@pytest.mark.usefixtures("witness")
def test_a_witness_cosigns_each_checkpoint(ada: User) -> None:
    assert (ask(), is_cosigned(3)) == ([200], True)
    assert ask() == []
    for _ in range(4):
        add_leaf(ada)
    # From 3 to 7 leaves, with a proof that the witness verifies.
    assert (ask(), is_cosigned(7), is_cosigned(5)) == ([200], True, False)


@pytest.mark.usefixtures("witness")
def test_the_witness_says_which_size_it_cosigned_last(ada: User) -> None:
    """The server does not know, for instance after it was restored or the answer was lost."""
    assert ask() == [200]
    TreeCosignature.objects.all().delete()
    assert (ask(), is_cosigned(3)) == ([409, 200], True)
    add_leaf(ada)
    TreeCosignature.objects.all().delete()
    assert (ask(), is_cosigned(4)) == ([409, 200], True)


@pytest.mark.usefixtures("witness")
@pytest.mark.parametrize(("leaves", "statuses"), [(2, [409]), (3, [409, 409]), (4, [409, 422])])
def test_a_tree_that_does_not_continue_is_not_cosigned(
    ada: User, caplog: pytest.LogCaptureFixture, leaves: int, statuses: list[int]
) -> None:
    """A smaller tree, another one of the same size, and a larger one with other leaves."""
    assert ask() == [200]
    replace_tree(ada, leaves)
    with caplog.at_level(logging.ERROR):
        assert ask() == statuses
    assert not TreeCosignature.objects.exists()
    assert f"{NAME} refused the checkpoint" in caplog.text


def test_an_unreachable_witness_is_asked_again(ada: User, settings: Settings) -> None:
    settings.UAMP_FETCH_ALLOW_HOSTS = ["127.0.0.1:1"]
    settings.UAMP_WITNESSES = [f"{verifier_key()} http://127.0.0.1:1"]
    add_leaf(ada)
    assert ask() == [0]
    assert not TreeCosignature.objects.exists()
    assert len(submission.submissions_due()) == 1


@pytest.mark.sampled(3)
@pytest.mark.usefixtures("witness")
@pytest.mark.parametrize(
    "answer",
    [
        Posted(200),
        Posted(200, data=b"\xff"),
        Posted(200, data=b"\xe2\x80\x94 witness.example/js AAAAAAAA\n"),
        Posted(200, data=b"hello\n" * 40),
        Posted(409, data=b"3 leaves\n"),
        Posted(409, data=b"9" * 30 + b"\n"),
        Posted(409, data=b"4\n"),
        Posted(302),
        Posted(500, data=b"0\n"),
    ],
)
def test_another_answer_stores_nothing(answer: Posted, caplog: pytest.LogCaptureFixture) -> None:
    (due,) = submission.submissions_due()
    with caplog.at_level(logging.ERROR):
        assert submission.take_answer(due, answer, timezone.now()) is None
    assert not TreeCosignature.objects.exists()
    assert NAME in caplog.text


def test_witnesses_without_an_address_are_not_asked(ada: User, settings: Settings) -> None:
    settings.UAMP_WITNESSES = [f"{verifier_key()} https://witness.example"]
    assert submission.submissions_due() == []
    add_leaf(ada)
    (due,) = submission.submissions_due()
    assert due.url == "https://witness.example/add-checkpoint"
    assert due.body.startswith(f"old 0\n\n{tree_name()}\n1\n".encode())
    settings.UAMP_WITNESSES = [verifier_key()]
    assert submission.submissions_due() == []


@pytest.mark.usefixtures("database_threads", "witness")
@pytest.mark.django_db(transaction=True)
async def test_the_periodic_job_has_the_tree_cosigned() -> None:
    await grow_tree()
    assert await TreeCosignature.objects.acount() == 1
