"""The plot: a bar for each aim, with the measured value relative to its limit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from xml.sax.saxutils import escape

from benchmarks.report.table import formatted, rows_of, verdict_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from benchmarks.report.table import Aim, AimRow

WIDTH: Final = 900
LABELS: Final = 360
LINE: Final = 24
TOP: Final = 40
# The axis ends at four times the limit; longer bars are cut off but keep their figure.
MAX_RATIO: Final = 4.0
SCALE: Final = (WIDTH - LABELS - 150) / MAX_RATIO
STYLE: Final = (
    "text{font:13px system-ui,sans-serif;fill:#222}.met{fill:#3a7d44}"
    ".not-met{fill:#b3541e}.undecided{fill:#8a8f98}"
    ".spread{stroke:#222;stroke-width:1}.limit{stroke:#222;stroke-dasharray:4 3}"
    ".page{fill:#fff}"
)


def share(aim: Aim, value: float) -> float:
    """Return a figure relative to its limit: at most 1 meets the aim."""
    parts = aim.limit / value if aim.at_least and value > 0 else value / aim.limit
    return min(MAX_RATIO, max(0.0, parts))


def draw(results: Mapping[str, Mapping[str, Any]]) -> str:
    """Return the plot as SVG."""
    rows = rows_of(results)
    height = TOP + LINE * len(rows) + 16
    limit = LABELS + SCALE
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>What was measured, in parts of each aim</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="page" width="{WIDTH}" height="{height}"/>',
        f'<text x="{limit:.0f}" y="18" text-anchor="middle">aim</text>',
        f'<line class="limit" x1="{limit:.0f}" x2="{limit:.0f}" y1="24" y2="{height - 8}"/>',
    ]
    for place, row in enumerate(rows):
        parts += _bar(row, TOP + LINE * place)
    return "\n".join([*parts, "</svg>", ""])


def _bar(row: AimRow, top: int) -> list[str]:
    aim = row.aim
    width = SCALE * share(aim, row.median)
    low, high = sorted((share(aim, row.low), share(aim, row.high)))
    unit = "" if aim.unit == "x" else f" {aim.unit}"
    kind = verdict_of(row).replace(" ", "-")
    middle = top + LINE // 2 - 2
    end = LABELS + SCALE * max(low, high, width / SCALE) + 8
    label = f'<text x="{LABELS - 8}" y="{middle + 5}" text-anchor="end">{escape(aim.what)}</text>'
    bar = f'<rect class="{kind}" x="{LABELS}" y="{top + 2}" width="{width:.1f}" height="16"/>'
    ends = f'x1="{LABELS + SCALE * low:.1f}" x2="{LABELS + SCALE * high:.1f}"'
    line = f'<line class="spread" {ends} y1="{middle}" y2="{middle}"/>'
    figure = f'<text x="{end:.0f}" y="{middle + 5}">{formatted(row.median)}{unit}</text>'
    return [label, bar, line, figure]
