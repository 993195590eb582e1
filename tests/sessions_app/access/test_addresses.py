"""Rate limits by address: visitors, proxies, networks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from sessions_app.access import rates
from sessions_app.access.rate_counters import CounterStorage
from tests.client import new_event
from tests.sessions_app.access.counted_requests import WINDOW_SECONDS
from tests.sessions_app.transports.http_requests import post

if TYPE_CHECKING:
    import httpx
    from pytest_django import Settings

    from tests.client import UampClient
    from tests.live_server import Dial


def test_visitors_of_one_address_open_few_sessions(
    dial: Dial, web: httpx.Client, settings: Settings
) -> None:
    limit = settings.UAMP_ANONYMOUS_SESSIONS_PER_MINUTE
    # One after another, on sockets, over SSE and in batches.
    created = 0
    client: UampClient = dial()
    for number in range(limit // 3):
        if number % 10 == 9:
            client.close()
            client = dial()
        client.send("session.create", uamp_version="1.0", session={}, agent="echo")
        created += client.until("session.created", "session.error")[-1]["type"] == "session.created"
        created += post(web, "session.create", session={}, agent="echo").is_success
        batch = [new_event("session.create", uamp_version="1.0", session={}, agent="echo")]
        reported = web.post("/uamp", json=batch).json()
        created += any(frame["type"] == "session.created" for frame in reported)
    assert created == limit
    over_http = post(web, "session.create", session={}, agent="echo")
    client.send("session.create", uamp_version="1.0", session={}, agent="echo")
    reported = client.until("session.error")

    assert (over_http.status_code, over_http.json()["code"]) == (429, "rate_limited")
    assert int(over_http.headers["RateLimit-Limit"]) == limit
    assert reported[-1]["error"]["code"] == "rate_limited"
    assert reported[-1]["error"]["details"]["retry_after"] >= 1
    assert "rate_limit" in {frame["type"] for frame in reported}


def statuses_from(web: httpx.Client, *addresses: str) -> list[int]:
    """Return the answers to requests that say they come from these addresses."""
    reported: list[dict[str, Any]] = [{"X-Forwarded-For": address} for address in addresses]
    return [web.get("/capabilities", headers=headers).status_code for headers in reported]


def test_a_forwarded_address_counts_only_from_a_known_proxy(
    web: httpx.Client, settings: Settings
) -> None:
    settings.UAMP_DISCOVERY_PER_MINUTE = 1
    assert statuses_from(web, "203.0.113.1", "203.0.113.2") == [200, 429]

    settings.UAMP_TRUSTED_PROXIES = ["127.0.0.0/8", "10.0.0.1"]
    # The client may write what it likes before the address that the proxies saw.
    assert statuses_from(
        web, "203.0.113.1", "203.0.113.2", "198.51.100.1, 203.0.113.2, 10.0.0.1"
    ) == [200, 200, 429]
    # What is no address ends the search: the proxy itself is counted, which was before.
    assert statuses_from(web, "nonsense") == [429]


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("192.0.2.7", "address:192.0.2.7"),
        ("::ffff:192.0.2.7", "address:192.0.2.7"),
        ("2001:db8:1:2:3:4:5:6", "address:2001:db8:1:2::"),
        ("fe80::1%eth0", "address:fe80::"),
        ("", "address:"),
    ],
)
def test_a_network_of_ipv6_is_one_address(address: str, name: str) -> None:
    assert rates.visitors(address) == name


def test_the_counters_of_many_addresses_are_bounded() -> None:
    counters = CounterStorage(size=100)
    for number in range(1000):
        assert counters.acquire_sliding_window_entry(f"address:{number}", 1, WINDOW_SECONDS)
        counters.acquire_sliding_window_entry("the one who asks all the time", 10, WINDOW_SECONDS)

    assert len(counters) == 100
    # The one that is used is not the one that is dropped.
    assert not counters.acquire_sliding_window_entry("the one who asks all the time", 10, 60)
