"""The reference implementation: its daemon, and clients that ask it, unchanged through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.interop.conftest import Run

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)


def test_its_daemon_answers_its_clients(run_client: Run) -> None:
    seen = run_client("webagents", "webagents_clients.py")

    assert seen == {"nli": "hello there ", "proxy": "and again "}


def test_its_verifier_takes_our_answers(run_client: Run, settings: Settings) -> None:
    settings.UAMP_SIGNATURE_ALGORITHM = "RS256"

    assert run_client("webagents", "webagents_signature.py") == {
        "good": True,
        "with its request": True,
        "with another request": "request_hash mismatch",
        "another text": "response_hash mismatch",
        "another key": "Signature verification failed",
    }
