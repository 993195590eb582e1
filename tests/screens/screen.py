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
class Window:
    """A window: its name, and its size in CSS pixels."""

    name: str
    width: int
    height: int


DESKTOP: Final = Window("desktop", 1280, 800)
PHONE: Final = Window("phone", 375, 760)
WINDOWS: Final = (DESKTOP, PHONE)
# Longer than any transition of the pages.
SETTLING_MS: Final = 500
SCHEMES: Final[tuple[Literal["light", "dark"], ...]] = ("light", "dark")


@dataclass(frozen=True)
class Screen:
    """A page in one state: its name, and what leads to it from a new browser context."""

    name: str
    reach: Reach


async def show_in(page: Page, scheme: Literal["light", "dark"]) -> None:
    """Give the page a colour scheme, and let it settle."""
    await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
    # Colours change over --fast, and a frame later in what inherits them.
    await page.wait_for_timeout(SETTLING_MS)
