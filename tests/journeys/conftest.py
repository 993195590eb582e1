"""The fixtures of tests on sockets, and the browser of the journeys."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.journeys.cluster import running_cluster
from tests.journeys.product import Product, running_browser
from tests.live_server import alice, bob, demo, dial, impatience, mallory, web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser

__all__ = ["alice", "bob", "demo", "dial", "impatience", "mallory", "web"]

# A module's first test waits for its servers, which takes minutes on a busy machine.
TIMEOUT_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests in this folder more time, unless they set their own timeout."""
    for item in items:
        is_here = item.path.parent == Path(__file__).parent
        if is_here and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(
    scope="module",
    params=[
        "one process",
        pytest.param("two processes", marks=[pytest.mark.long, pytest.mark.redis]),
    ],
)
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Run the module's `product`, then two servers and a worker on PostgreSQL and Redis.

    With two servers, successive pages are opened on alternating ones. A module with settings for
    its product names them in `ENVIRONMENT`.
    """
    if request.param == "one process":
        yield request.getfixturevalue("product")
        return
    # On a busy machine, a server renews its leases late, which must not end healthy answers.
    environment = {"UAMP_LEASE_SECONDS": "8", **getattr(request.module, "ENVIRONMENT", {})}
    redis_url = request.getfixturevalue("redis_url")
    with running_cluster(redis_url, tmp_path_factory.mktemp("cluster"), **environment) as cluster:
        yield cluster.product


@pytest_asyncio.fixture(scope="session", loop_scope="session", name="chromium")
async def shared_chromium(chromium: str) -> AsyncIterator[Browser]:
    """Run one browser for all journeys of a worker; their tests share its event loop."""
    async with running_browser(chromium) as running:
        yield running
