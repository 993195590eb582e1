"""The contact sheet: one page with the pictures of every screen, beside each other by variant."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

from tests.screens.screen import VARIANTS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

STYLE = """
:root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif }
body { margin: 24px; display: grid; gap: 32px }
section { display: grid; gap: 8px }
h2 { margin: 0; font-size: 16px }
.row { display: flex; gap: 12px; align-items: flex-start; overflow-x: auto }
img { border: 1px solid #8886; border-radius: 6px; display: block; height: 380px }
ul { margin: 0; color: #c4341d }
"""


def write_sheet(folder: Path, found: Mapping[str, Sequence[str]]) -> Path:
    """Write `index.html` beside the pictures and return its path.

    `found` has the screens' names in their order, each with the lines that `findings` gave.
    """
    rows = []
    for name, lines in found.items():
        pictures = "".join(
            f'<img src="{name}.{variant.name}.png" alt="{name}, {variant.name}" loading="lazy">'
            for variant in VARIANTS
        )
        complaints = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
        rows.append(
            f'<section id="{name}"><h2>{name}</h2>'
            + (f"<ul>{complaints}</ul>" if complaints else "")
            + f'<div class="row">{pictures}</div></section>'
        )
    page = folder / "index.html"
    page.write_text(
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>Screens</title>'
        f"<style>{STYLE}</style><h1>{len(found)} screens</h1>{''.join(rows)}</html>"
    )
    return page
