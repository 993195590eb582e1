"""The fixtures of the tests on sockets, and a folder for the files of a test."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.live_server import alice, bob, demo, dial, impatience, mallory, web

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django.fixtures import Settings

__all__ = ["alice", "bob", "demo", "dial", "impatience", "mallory", "web"]


@pytest.fixture(autouse=True)
def media(settings: Settings, tmp_path: Path) -> None:
    settings.MEDIA_ROOT = tmp_path
