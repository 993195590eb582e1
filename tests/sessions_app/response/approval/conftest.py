"""Tools that need approval, and the file that one writes to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.sessions_app.response.approval.questions import TOOLS

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(autouse=True)
def _tools(request: pytest.FixtureRequest) -> None:
    if "dial" in request.fixturenames:
        settings = request.getfixturevalue("settings")
        settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
        settings.UAMP_SWEEP_SECONDS = 0.2


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Give the file in which the tool leaves a line when it runs."""
    return tmp_path / "journal"
