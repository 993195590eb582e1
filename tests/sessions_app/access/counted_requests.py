"""Windows, headers and a request for tests of rate limits."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

WINDOW_SECONDS = 60
DAY_SECONDS = 24 * 3600
HEADERS = {"RateLimit-Limit", "RateLimit-Remaining", "RateLimit-Reset", "X-RateLimit-Remaining"}


def read(web: httpx.Client, who: Person) -> httpx.Response:
    return web.get("/api/v1/me", headers=who.headers)
