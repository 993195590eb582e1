"""Every screen, light and dark, on a desktop and on a phone: axe finds nothing on any of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.journeys.product import running_product
from tests.screens import chats, pages
from tests.screens.findings import findings
from tests.screens.screen import SCHEMES, WINDOWS, Screen, Window, show_in
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
    with running_product(folder) as product:
        stage = Stage(product, chromium, folder)
        await stage.prepare()
        yield stage


@pytest.mark.parametrize("window", WINDOWS, ids=lambda window: window.name)
@pytest.mark.parametrize("screen", [*chats.SCREENS, *pages.SCREENS], ids=lambda screen: screen.name)
async def test_axe_finds_nothing(stage: Stage, screen: Screen, window: Window) -> None:
    stage.window = window
    page = await screen.reach(stage)
    try:
        for scheme in SCHEMES:
            await show_in(page, scheme)
            assert (scheme, await findings(page)) == (scheme, [])
    finally:
        await page.context.close()
