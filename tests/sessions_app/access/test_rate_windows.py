"""Windows of rate limits, and counting in Redis."""

from __future__ import annotations

import asyncio
import socket
import uuid
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import redis

from sessions_app.access import rate_counters, rates
from sessions_app.access.rate_counters import CounterStorage
from tests.sessions_app.access.counted_requests import WINDOW_SECONDS

if TYPE_CHECKING:
    from pytest_django import Settings


def test_a_window_weighs_the_one_before(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [600.0]
    monkeypatch.setattr(rate_counters, "time", SimpleNamespace(monotonic=lambda: now[0]))
    counters = CounterStorage()

    def is_allowed() -> bool:
        return counters.acquire_sliding_window_entry("k", 4, WINDOW_SECONDS)

    assert [is_allowed() for _ in range(5)] == [True] * 4 + [False]
    now[0] = 600 + 90  # half of the window before still counts
    assert [is_allowed() for _ in range(3)] == [True, True, False]
    now[0] = 600 + 300
    assert [is_allowed() for _ in range(5)] == [True] * 4 + [False]


@pytest.mark.redis
def test_processes_with_one_redis_count_together(redis_url: str, settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 3
    prefix = f"uamp-test-{uuid.uuid4().hex}"
    first, second = (rates.RateLimiter(redis_url, prefix=prefix) for _ in range(2))
    allowed = [
        limiter.hit("responses", "user:1").allowed for limiter in (first, second, first, second)
    ]

    assert allowed == [True, True, True, False]
    assert len(first.counters) == len(second.counters) == 0


@pytest.mark.redis
async def test_requests_that_come_at_once_are_counted_together_and_in_order(
    redis_url: str, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 3
    limiter = rates.RateLimiter(redis_url, prefix=f"uamp-test-{uuid.uuid4().hex}")
    with redis.Redis.from_url(redis_url) as client:
        # As after a restart of Redis.
        client.script_flush()
    takes = [limiter.take("responses", f"user:{number % 2}") for number in range(100)]
    quotas = await asyncio.gather(*takes)

    assert [quota.allowed for quota in quotas] == [True] * 6 + [False] * 94
    assert [quota.remaining for quota in quotas[:7]] == [2, 2, 1, 1, 0, 0, 0]
    assert all(0 < quota.retry_after <= 2 * WINDOW_SECONDS for quota in quotas)
    assert len(limiter.counters) == 0


async def test_a_request_that_was_given_up_leaves_the_others_counted(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 10
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        limiter = rates.RateLimiter(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        first, second = (
            asyncio.ensure_future(limiter.take("responses", "user:1")) for _ in range(2)
        )
        await asyncio.sleep(0)
        first.cancel()
        assert (await second).allowed


async def test_a_limit_that_is_not_a_number_fails_each_request(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = "many"
    limiter = rates.RateLimiter("redis://127.0.0.1:1")
    for _ in range(2):
        with pytest.raises(ValueError, match="many"):
            await asyncio.wait_for(limiter.take("responses", "user:1"), 10)


def test_without_its_redis_a_process_counts_alone(settings: Settings) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 1
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        limiter = rates.RateLimiter(f"redis://127.0.0.1:{closed.getsockname()[1]}")
        assert [limiter.hit("responses", "user:1").allowed for _ in range(2)] == [True, False]


async def test_a_redis_that_hangs_does_not_hold_up_the_loop() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        limiter = rates.RateLimiter(f"redis://127.0.0.1:{silent.getsockname()[1]}")
        taking = asyncio.ensure_future(limiter.take("responses", "user:1"))
        turns = 0
        while not taking.done():
            await asyncio.sleep(0.01)
            turns += 1

    assert taking.result().allowed
    assert turns >= 10  # REDIS_SECONDS went by, and the loop went on
