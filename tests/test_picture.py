"""docs/images/apps.svg matches the current import contracts."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from docs.picture import FILE, PURPOSES, house, picture

OWN_CONTRACTS = (Path(__file__).parent.parent / "importlinter.toml").read_text(encoding="utf-8")

CONTRACTS = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["shop", "stock | cashdesk", "goods", "paper | ink"]

[[tool.importlinter.contracts]]
type = "protected"
protected_modules = ["ink"]
allowed_importers = ["goods"]

[[tool.importlinter.contracts]]
type = "forbidden"
source_modules = ["goods"]
forbidden_modules = ["paper"]
"""


def layers_of(app: str, *layers: str) -> str:
    quoted = ", ".join(f'"{layer}"' for layer in layers)
    return (
        f"\n[[tool.importlinter.contracts]]\ntype = 'layers'\n"
        f"containers = ['{app}']\nlayers = [{quoted}]\n"
    )


SHOP = CONTRACTS + "".join(
    layers_of(app, "doors | shelves", "rows")
    for app in ("shop", "stock", "cashdesk", "goods", "paper", "ink", "shop.shelves")
)


def test_the_committed_picture_is_drawn_from_the_contracts_of_today() -> None:
    assert FILE.read_text(encoding="utf-8") == picture(OWN_CONTRACTS), "run `make docs`"


def test_each_app_has_its_purpose() -> None:
    assert {app.name for level in house(OWN_CONTRACTS).levels for app in level} == set(PURPOSES)


def test_arrows_leave_out_barred_imports_and_those_that_lead_through_another_app() -> None:
    assert set(house(SHOP).arrows) == {
        ("shop", "stock"),
        ("shop", "cashdesk"),
        ("stock", "goods"),
        ("cashdesk", "goods"),
        ("stock", "paper"),
        ("cashdesk", "paper"),
        ("goods", "ink"),
    }


def test_a_module_with_a_contract_of_its_own_is_a_folder() -> None:
    (shop,), *_ = house(SHOP).levels

    assert shop.layers == (("doors", "shelves"), ("rows",))
    assert shop.folders == {"shelves"}


@pytest.mark.parametrize("app", sorted(PURPOSES))
def test_every_module_of_an_app_is_in_the_picture(app: str) -> None:
    texts = [element.text for element in ET.fromstring(picture(OWN_CONTRACTS)).iter()]  # noqa: S314 our own file
    (layered_app,) = [a for level in house(OWN_CONTRACTS).levels for a in level if a.name == app]

    assert app in texts
    assert {module for layer in layered_app.layers for module in layer} <= set(texts)


def test_nothing_is_drawn_outside_the_picture() -> None:
    root = ET.fromstring(picture(OWN_CONTRACTS))  # noqa: S314 our own file
    width, height = float(root.attrib["width"]), float(root.attrib["height"])

    for box in root.iter("{http://www.w3.org/2000/svg}rect"):
        x, y = float(box.get("x", 0)), float(box.get("y", 0))
        assert x + float(box.attrib["width"]) <= width
        assert y + float(box.attrib["height"]) <= height


def test_colours_are_defined_for_a_light_and_a_dark_page() -> None:
    light, dark = picture(OWN_CONTRACTS).split("prefers-color-scheme: dark")
    coloured = re.compile(r"\.(paper|app|arrow|head|folder|name|title|purpose|between)\b")

    assert set(coloured.findall(light)) == set(coloured.findall(dark))
