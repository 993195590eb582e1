"""Draw docs/images/apps.svg from the import contracts of importlinter.toml.

`python -m docs.picture` (part of `make docs`) writes the file. A test compares the committed file
with what `picture` returns, so the picture shows the contracts that `lint-imports` checks.

An app is a box. A line in the box is a layer: its modules may import those of the lines below.
Modules of one layer do not import each other. A filled name is a folder with a contract of its
own. Layers of single modules share a line; an angle stands between two layers.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
FILE: Final = ROOT / "docs" / "images" / "apps.svg"

# One line for each app; a test compares the names with the contracts.
PURPOSES: Final = {
    "uamp_project": "composition: settings, URLs, ASGI, Celery, the embedded server",
    "gateway_app": "foreign agent protocols, each a UAMP client",
    "federation_app": "signed envelopes between servers",
    "sessions_app": "UAMP sessions, the turn, the native transports",
    "chat_app": "chats: log, members, contents, REST, browser",
    "payments_app": "the ledger, tokens, x402, REST",
    "agents_app": "agents as rows, their runtime, tools and models",
    "signing_app": "keys of signatures and tokens, JWKS",
    "audit_app": "the audit, bases of admin pages",
    "uap": "agent protocol: steps, state, checkpoints",
    "upp": "provider protocol: models",
    "uamp": "UAMP 1.0 as data and pure functions",
    "telemetry": "ids of log lines, metrics, spans",
}

# All lengths are in pixels.
WIDTH: Final = 960
MARGIN: Final = 16
GAP: Final = 34
PADDING: Final = 12
HEADER: Final = 30
LINE: Final = 26
CHIP: Final = 20
LETTER: Final = 7.3
SEPARATOR: Final = "\N{SINGLE RIGHT-POINTING ANGLE QUOTATION MARK}"

STYLE: Final = """
  text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; }
  .title { font-size: 14px; font-weight: bold; } .purpose { font-family: system-ui, sans-serif; }
  .paper { fill: #ffffff; } .app { fill: #f6f8fa; stroke: #8c959f; }
  .folder { fill: #ddf4ff; stroke: #54aeff; } .arrow { stroke: #57606a; } .head { fill: #57606a; }
  .title, .name { fill: #1f2328; } .purpose, .between { fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    .paper { fill: #0d1117; } .app { fill: #161b22; stroke: #6e7681; }
    .folder { fill: #0c2d6b; stroke: #388bfd; } .arrow { stroke: #9198a1; } .head { fill: #9198a1; }
    .title, .name { fill: #e6edf3; } .purpose, .between { fill: #9198a1; }
  }
"""


@dataclass(frozen=True)
class App:
    """A top-level package: its layers from top to bottom, and which of its modules are folders."""

    name: str
    layers: tuple[tuple[str, ...], ...]
    folders: frozenset[str]


@dataclass(frozen=True)
class House:
    """The levels of apps from top to bottom, and the arrows between them (upper, lower)."""

    levels: tuple[tuple[App, ...], ...]
    arrows: tuple[tuple[str, str], ...]


@dataclass
class Box:
    """The place of an app in the picture; `lines` holds its names with their separators."""

    app: App
    x: float
    y: float
    width: float
    lines: list[list[str]] = field(default_factory=list)

    @property
    def height(self) -> float:
        """The whole box, with its header."""
        return HEADER + len(self.lines) * LINE + PADDING / 2

    @property
    def middle(self) -> float:
        """The x of its centre."""
        return self.x + self.width / 2


def _names(layer: str) -> tuple[str, ...]:
    return tuple(name.strip() for name in re.split(r"[|:]", layer))


def house(contracts_file: str) -> House:
    """Read the contracts in the text of importlinter.toml."""
    tool: dict[str, Any] = tomllib.loads(contracts_file)["tool"]["importlinter"]
    contracts: list[dict[str, Any]] = tool["contracts"]
    layered = [contract for contract in contracts if contract["type"] == "layers"]
    inside = {
        container: tuple(_names(layer) for layer in contract["layers"])
        for contract in layered
        for container in contract.get("containers", ())
    }
    levels = next(
        tuple(_names(layer) for layer in contract["layers"])
        for contract in layered
        if "containers" not in contract
    )
    folders = frozenset(inside)
    apps = tuple(
        tuple(
            App(
                name,
                inside[name],
                frozenset(m for layer in inside[name] for m in layer if f"{name}.{m}" in folders),
            )
            for name in level
        )
        for level in levels
    )
    return House(apps, _arrows(levels, _barred(contracts, levels)))


def _barred(
    contracts: list[dict[str, Any]], levels: tuple[tuple[str, ...], ...]
) -> set[tuple[str, str]]:
    """Return the pairs of apps that a contract besides the layers keeps apart."""
    names = {name for level in levels for name in level}
    barred: set[tuple[str, str]] = set()
    for contract in contracts:
        if contract["type"] == "forbidden":
            barred |= {
                (upper, lower)
                for upper in contract["source_modules"]
                for lower in contract["forbidden_modules"]
            }
        elif contract["type"] == "protected":
            allowed = set(contract["allowed_importers"])
            barred |= {
                (upper, lower)
                for lower in contract["protected_modules"]
                for upper in names - allowed
            }
    return barred


def _arrows(
    levels: tuple[tuple[str, ...], ...], barred: set[tuple[str, str]]
) -> tuple[tuple[str, str], ...]:
    """Return the imports between apps, without those that lead through another app."""
    level_of = {name: number for number, level in enumerate(levels) for name in level}
    names = list(level_of)
    may = {
        (upper, lower)
        for upper in names
        for lower in names
        if level_of[upper] < level_of[lower] and (upper, lower) not in barred
    }
    reached = set(may)
    for between in names:
        reached |= {
            (upper, lower)
            for upper in names
            for lower in names
            if (upper, between) in reached and (between, lower) in reached
        }
    return tuple(
        (upper, lower)
        for upper in names
        for lower in names
        if (upper, lower) in may
        and not any((upper, b) in reached and (b, lower) in reached for b in names)
    )


def _width_of(name: str, app: App) -> float:
    if name == SEPARATOR:
        return 18
    return len(name) * LETTER + (16 if name in app.folders else 8)


def _lines(app: App, width: float) -> list[list[str]]:
    """Put each layer on a line; layers of single modules join the line of those above them."""
    lines: list[list[str]] = []
    joins = False
    for layer in app.layers:
        plain = not app.folders.intersection(layer)
        if plain and joins:
            lines[-1].append(SEPARATOR)
        else:
            lines.append([])
        joins = plain
        for name in layer:
            taken = sum(_width_of(each, app) + 4 for each in lines[-1])
            if taken + _width_of(name, app) > width:
                lines.append([])
            lines[-1].append(name)
    return lines


def _boxes(drawn: House) -> list[list[Box]]:
    """Place the apps; an arrow that passes a level keeps its column of that level free."""
    level_of = {a.name: number for number, level in enumerate(drawn.levels) for a in level}
    rows: list[list[Box]] = []
    y: float = MARGIN
    for number, level in enumerate(drawn.levels):
        passing = [
            lower for upper, lower in drawn.arrows if level_of[upper] < number < level_of[lower]
        ]
        # Passing arrows end in the right column, so the apps of this level share the left one.
        whole = WIDTH - 2 * MARGIN
        usable = (whole - GAP) / 2 if passing else whole
        width = (usable - (len(level) - 1) * GAP) / len(level)
        row = [
            Box(app, MARGIN + place * (width + GAP), y, width, _lines(app, width - 2 * PADDING))
            for place, app in enumerate(level)
        ]
        rows.append(row)
        y += max(box.height for box in row) + GAP
    return rows


def _rect(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" {size} rx="5"/>'


def _text(kind: str, x: float, y: float, text: str, *, anchor: str = "start") -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text class="{kind}" {place}>{escape(text)}</text>'


def _draw_box(box: Box) -> list[str]:
    app, left = box.app, box.x + PADDING
    drawn = [
        _rect("app", box.x, box.y, box.width, box.height),
        _text("title", left, box.y + 20, app.name),
        _text("purpose", left + len(app.name) * 8.6 + 12, box.y + 20, PURPOSES[app.name]),
    ]
    for number, line in enumerate(box.lines):
        x, y = left, box.y + HEADER + number * LINE
        for name in line:
            width = _width_of(name, app)
            if name in app.folders:
                drawn.append(_rect("folder", x, y, width, CHIP))
            kind = "between" if name == SEPARATOR else "name"
            drawn.append(_text(kind, x + width / 2, y + 14, name, anchor="middle"))
            x += width + 4
    return drawn


def _draw_arrow(upper: Box, lower: Box) -> str:
    """Draw it straight down where the boxes overlap, at the centre of the narrower one."""
    x = (upper if upper.width < lower.width else lower).middle
    top, bottom = upper.y + upper.height, lower.y - 2
    return f'<path class="arrow" marker-end="url(#head)" d="M{x:.1f} {top:.1f}V{bottom:.1f}"/>'


def picture(contracts_file: str) -> str:
    """Return the SVG for the contracts in the text of importlinter.toml."""
    drawn = house(contracts_file)
    rows = _boxes(drawn)
    boxes = {box.app.name: box for row in rows for box in row}
    height = max(box.y + box.height for box in rows[-1]) + MARGIN
    size = f'viewBox="0 0 {WIDTH} {height:.1f}" width="{WIDTH}" height="{height:.1f}"'
    head = 'viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        "<title>The apps, their folders and modules in layers; imports point down</title>",
        f"<style>{STYLE}</style>",
        f'<marker id="head" {head}><path class="head" d="M0 0L8 4L0 8z"/></marker>',
        _rect("paper", 0, 0, WIDTH, height),
        *(_draw_arrow(boxes[upper], boxes[lower]) for upper, lower in drawn.arrows),
        *(part for box in boxes.values() for part in _draw_box(box)),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    FILE.write_text(
        picture((ROOT / "importlinter.toml").read_text(encoding="utf-8")), encoding="utf-8"
    )
