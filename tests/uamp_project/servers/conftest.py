"""Servers that end with their test."""

from collections.abc import Callable, Iterator

import pytest

from tests.uamp_project.servers.served import Served


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    running: list[Served] = []

    def start(*, stall: float = 30, drain: float = 0, server: str = "daphne") -> Served:
        running.append(Served(stall, drain, server))
        return running[-1]

    yield start
    for served in running:
        served.end()
