"""The reference implementation: its daemon, and clients that ask it, unchanged through a server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.interop.conftest import Run

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)


def test_its_daemon_answers_its_clients(run_client: Run) -> None:
    seen = run_client("webagents", "webagents_clients.py")

    assert seen == {"nli": "hello there ", "proxy": "and again "}
