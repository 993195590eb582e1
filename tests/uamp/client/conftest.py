"""Fixtures of the client's tests: the server, its demo agents and people, the wheel."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.live_server import alice, bob, demo, impatience, mallory
from tests.uamp.client.installed import Installed
from tests.wheels import build_wheels, environment
from uamp.logs import spool

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["alice", "bob", "demo", "impatience", "mallory"]

PROJECT = "packaging/uamp"


@pytest.fixture(scope="session")
def client_python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment in which the client alone is installed."""
    directory = tmp_path_factory.mktemp("client")
    wheel = build_wheels(directory, [PROJECT])[PROJECT]
    return environment(directory, [wheel], extra="client")


@pytest.fixture
def installed(client_python: Path, tmp_path: Path) -> Installed:
    """Give the installed client, with nothing saved."""
    assert "UAMP_KEY" not in os.environ
    return Installed(client_python, tmp_path)


@pytest.fixture(params=["memory", "file"])
def spooled(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep what a check compares at the end in memory, as it does for a short chat, or in files."""
    if request.param == "file":
        monkeypatch.setattr(spool, "BYTES_IN_MEMORY", 0)
