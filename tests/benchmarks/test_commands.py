"""Each command of the benchmarks starts; those that are cheap run once, as small as they can."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from benchmarks import report
from benchmarks.__main__ import AIMS, COMMANDS, main
from benchmarks.report.plot import draw
from benchmarks.report.table import render

if TYPE_CHECKING:
    from pathlib import Path

SMALL: Final = ["--rounds", "1", "--seconds", "0.2", "--database", "sqlite"]
CHEAP: Final = {
    "turns": ["--sockets", "1"],
    "model": ["--streams", "1"],
    "completions": ["--streams", "1"],
    "paid": ["--sockets", "1"],
    "envelopes": ["--connections", "1"],
    "held_streams": ["--streams", "3"],
    "fanout": ["--members", "2"],
    "posting": ["--connections", "1"],
    "joins": ["--people", "3", "--seconds", "0.5"],
    "memory": ["--turns", "20", "--sockets", "2"],
    "slow_reader": ["--megabytes", "1"],
    "history": ["--messages", "10", "20"],
    "growth": ["--messages", "10", "20", "--rows", "100", "200"],
    "idle": ["--sessions", "2"],
    "admin_lists": ["--rows", "2000"],
    "verify": ["--messages", "10", "20"],
    "media": ["--bytes", "8000000"],
}


@pytest.mark.parametrize("command", [*COMMANDS, "report"])
def test_a_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])

    assert ended.value.code == 0
    assert f"python -m benchmarks {command}" in capsys.readouterr().out


def test_the_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    main(["--help"])
    listed = capsys.readouterr().out

    assert all(f"  {name} " in listed for name in COMMANDS)


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("command", list(CHEAP))
def test_a_small_run_ends_with_figures(command: str, tmp_path: Path) -> None:
    results_file = tmp_path / "results.json"

    main([command, *SMALL, *CHEAP[command], "--results", str(results_file)])

    assert json.loads(results_file.read_text())[command]["figures"]


def test_every_command_with_an_aim_is_run_or_needs_more_than_sqlite() -> None:
    assert set(AIMS) - set(CHEAP) == {"workers"}


def test_the_page_and_the_plot_are_of_the_results() -> None:
    results = json.loads(report.RESULTS.read_text())
    page = report.PAGE.read_text()

    assert report.with_table(page, render(results)) == page
    assert report.PLOT.read_text() == draw(results)
