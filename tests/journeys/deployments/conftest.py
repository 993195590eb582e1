"""The two products of this folder: one process on SQLite, two on PostgreSQL and Redis."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.journeys.cluster import running_cluster
from tests.journeys.deployments.chats import MAX_BYTES
from tests.journeys.product import running_product

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.journeys.product import Product

ENVIRONMENT = {
    "DJANGO_SETTINGS_MODULE": "tests.sessions_app.turn.team_settings",
    "UAMP_UPLOAD_BYTES": str(MAX_BYTES),
    # No process dies here: on a busy machine a short lease would end answers that go on.
    "UAMP_LEASE_SECONDS": "60",
}

# The first test of a product waits for its servers, which on a busy machine takes minutes.
TIMEOUT_SECONDS = 600


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Give the tests of this folder more time."""
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.timeout(TIMEOUT_SECONDS))


@pytest.fixture(
    scope="package",
    params=[
        "one process",
        pytest.param("two processes", marks=[pytest.mark.long, pytest.mark.redis]),
    ],
)
def deployment(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Run the product in one process, then in two, which the pages are opened on in turn."""
    folder = tmp_path_factory.mktemp("product")
    if request.param == "one process":
        with running_product(folder, has_workers=True, **ENVIRONMENT) as product:
            yield product
        return
    redis_url = request.getfixturevalue("redis_url")
    with running_cluster(redis_url, folder, **ENVIRONMENT) as cluster:
        yield cluster.product
