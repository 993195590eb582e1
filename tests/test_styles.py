"""Style sheets suit both writing directions: they use start and end, not left and right."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SHEETS = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("static", "chat_app/static")
    for path in (ROOT / folder).rglob("*.css")
    if not {"dist", "vendor"} & set(path.parts)
)
DECLARATION = re.compile(r"(?<![\w-])([a-z-]+):\s*([^;{}]+)")
ONE_SIDE = re.compile(r"(?:^|-)(?:left|right)(?:$|-)")
# All four sides in one value: the second is the right side, the fourth the left.
FOUR_SIDES = {"border-color", "border-style", "border-width", "inset", "margin", "padding"}
# These look the same in both directions: centred elements, and the hook of a check mark.
SAME_FROM_BOTH = {
    ("left", "50%"),
    ("left", "3.5px"),
    ("border-width", "0 2px 2px 0"),
}


def parts_of(value: str) -> list[str]:
    """Return the parts of a value; a function with its parentheses is one part."""
    while (folded := re.sub(r"\([^()]*\)", "", value)) != value:
        value = folded
    return value.replace("!important", "").split()


def one_sided(sheet: str) -> list[str]:
    """Return the declarations in a style sheet that name the left or right side."""
    rules = re.sub(r"/\*.*?\*/", "", sheet, flags=re.DOTALL)
    one_sided_rules = []
    for name, value in DECLARATION.findall(rules):
        parts = parts_of(value)
        sides = len(parts) == 4 and name in FOUR_SIDES and parts[1] != parts[3]
        aligned = name in {"clear", "float", "text-align"} and value.strip() in {"left", "right"}
        if (ONE_SIDE.search(name) or sides or aligned) and (
            name,
            value.strip(),
        ) not in SAME_FROM_BOTH:
            one_sided_rules.append(f"{name}: {value.strip()}")
    return one_sided_rules


def test_the_scan_finds_what_names_a_side() -> None:
    sheet = """
        a { margin-left: 2px; padding: 1px 2px 1px 3px; text-align: right; left: 0 }
        a:hover { inset: 0 auto 0 0; border-top-right-radius: 1px }
        b { margin: 1px 2px; padding: 0 calc(1px + (2px)) 0 2px; text-align: end; left: 50% }
    """

    assert one_sided(sheet) == [
        "margin-left: 2px",
        "padding: 1px 2px 1px 3px",
        "text-align: right",
        "left: 0",
        "inset: 0 auto 0 0",
        "border-top-right-radius: 1px",
        "padding: 0 calc(1px + (2px)) 0 2px",
    ]


@pytest.mark.parametrize("name", SHEETS)
def test_a_style_sheet_names_start_and_end(name: str) -> None:
    assert one_sided((ROOT / name).read_text(encoding="utf-8")) == []
