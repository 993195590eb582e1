"""The server tools of the runs, and agents that follow a script."""

from collections.abc import Callable

import pytest
from pytest_django import Settings

from agents_app.providers import scripts
from agents_app.selectors import AgentSpec
from tests.agents_app.runtime.runs.scripted_runs import Play


@pytest.fixture(autouse=True)
def _server_tools(settings: Settings) -> None:
    here = "tests.agents_app.runtime.runs.run_tools"
    settings.UAMP_SERVER_TOOLS = [
        "agents_app.tools.csv_report.csv_report",
        f"{here}.SHORT",
        f"{here}.NOSY",
        f"{here}.odd",
    ]


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[[Play], AgentSpec]:
    """Return a function that makes an agent of a script."""

    def agent(script: Play) -> AgentSpec:
        monkeypatch.setitem(scripts.SCRIPTS, "played", lambda _spec, request: script(request))
        return AgentSpec(id="a", name="bot", options={"script": "played"})

    return agent
