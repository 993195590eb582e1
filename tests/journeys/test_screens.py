"""Every screen, on a light desktop or a dark phone, passes axe without findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.journeys.product import running_product
from tests.screens import chats, messages, pages, people
from tests.screens.findings import findings
from tests.screens.screen import VARIANTS, Screen, Variant
from tests.screens.stage import Stage

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from playwright.async_api import Browser

pytestmark = [
    pytest.mark.browser,
    pytest.mark.any_database,
    pytest.mark.asyncio(loop_scope="session"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="session", name="stage")
async def prepared_stage(
    chromium: Browser, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Stage]:
    """Run a product with a chat that has one of everything."""
    folder = tmp_path_factory.mktemp("screens")
    with running_product(folder, has_workers=True) as product:
        stage = Stage(product, chromium, folder)
        await stage.prepare()
        yield stage


EVERYTHING = (*chats.SCREENS, *messages.SCREENS, *people.SCREENS, *pages.SCREENS)
SCREENS = [screen for screen in EVERYTHING if screen.is_sampled]
# `make screens` checks each in all four variants; here, every other one is on a light desktop, the
# rest on a dark phone.
LOOKS = [
    (screen, VARIANTS[0] if number % 2 == 0 else VARIANTS[3])
    for number, screen in enumerate(SCREENS)
]


# `make test` checks every eleventh of them.
SHORT = 11


@pytest.mark.parametrize(
    ("screen", "variant"),
    [
        pytest.param(
            screen,
            look,
            id=f"{screen.name}-{look.name}",
            marks=[pytest.mark.long] if number % SHORT else [],
        )
        for number, (screen, look) in enumerate(LOOKS)
    ],
)
async def test_axe_finds_nothing(stage: Stage, screen: Screen, variant: Variant) -> None:
    stage.variant = variant
    page = await screen.reach(stage)
    try:
        assert await findings(page) == []
    finally:
        await page.context.close()
