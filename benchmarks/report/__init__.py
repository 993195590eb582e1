"""`python -m benchmarks report`: write the table and the plot of docs/benchmarks.md.

`--results FILE` (docs/benchmarks.json by default) is the file of figures that the commands wrote.
The table replaces the text between two markers of the page; the plot is docs/images/benchmarks.svg.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from benchmarks.report.plot import draw
from benchmarks.report.table import render
from benchmarks.servers import ROOT

if TYPE_CHECKING:
    from collections.abc import Sequence

RESULTS: Final = ROOT / "docs/benchmarks.json"
PAGE: Final = ROOT / "docs/benchmarks.md"
PLOT: Final = ROOT / "docs/images/benchmarks.svg"
BEGIN: Final = "<!-- written by `python -m benchmarks report` -->"
END: Final = "<!-- as far as here -->"


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the table and the plot."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks report", description=__doc__)
    parser.add_argument("--results", metavar="FILE", type=Path, default=RESULTS)
    options = parser.parse_args(arguments)
    results = json.loads(options.results.read_text())
    PAGE.write_text(with_table(PAGE.read_text(), render(results)))
    PLOT.write_text(draw(results))


def with_table(page: str, table: str) -> str:
    """Return the page with a new table; raises ValueError if it has no markers."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has no marks for the table")
    return f"{head}{begin}\n{table}\n{end}{tail}"


__all__ = ["main", "with_table"]
