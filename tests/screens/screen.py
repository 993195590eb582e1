"""A screen, and the sizes and colours in which each one is looked at."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from playwright.async_api import Page

    from tests.screens.stage import Stage

Reach: TypeAlias = Callable[["Stage"], Awaitable["Page"]]


@dataclass(frozen=True)
class Variant:
    """A window's size in CSS pixels, and the colour scheme of the system."""

    name: str
    width: int
    height: int
    scheme: Literal["light", "dark"]


VARIANTS: Final = (
    Variant("desktop-light", 1280, 800, "light"),
    Variant("desktop-dark", 1280, 800, "dark"),
    Variant("phone-light", 375, 760, "light"),
    Variant("phone-dark", 375, 760, "dark"),
)


@dataclass(frozen=True)
class Screen:
    """A page in one state: its name, and what leads to it from a new browser context.

    Each variant is reached anew: a page opens other things where it is narrow, and Chromium now and
    then keeps inherited colours when a scheme changes. The tests look at those that are sampled,
    `make screens` at all.
    """

    name: str
    reach: Reach
    is_sampled: bool = True
