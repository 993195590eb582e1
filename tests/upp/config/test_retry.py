"""Retries of failed requests."""

import pickle
import threading

import pytest

from tests.threads import join_threads
from upp import (
    ErrorCode,
    ExponentialBackoff,
    LinearBackoff,
    NoRetry,
    RetryAfterStrategy,
    RetryStrategy,
    TokenBucket,
    UPPError,
)
from upp.config.retry import retrying


def error(
    code: ErrorCode = ErrorCode.RATE_LIMITED, *, retry_after: float | None = None
) -> UPPError:
    return UPPError("no", code=code, retry_after=retry_after)


def delays(strategy: RetryStrategy, failure: UPPError, attempts: int = 5) -> list[float | None]:
    return [strategy.on_retry(failure, attempt) for attempt in range(1, attempts + 1)]


def test_a_wait_doubles_up_to_its_cap() -> None:
    strategy = ExponentialBackoff(max_attempts=4, base_delay=1, max_delay=5, jitter=False)
    assert delays(strategy, error()) == [1, 2, 4, 5, None]


def test_a_wait_has_its_cap_however_often_it_doubles() -> None:
    strategy = ExponentialBackoff(max_attempts=10_000, jitter=False)
    assert strategy.on_retry(UPPError("x", code=ErrorCode.TIMEOUT), 9_999) == 30.0


def test_jitter_spreads_a_wait_around_itself() -> None:
    draws = iter([0.0, 0.5, 0.99])
    strategy = ExponentialBackoff(base_delay=2, draw=lambda: next(draws))
    assert delays(strategy, error(), 3) == [1.0, 4.0, pytest.approx(11.92)]


def test_a_linear_wait_grows_by_its_delay() -> None:
    assert delays(LinearBackoff(delay=0.1), error(), 4) == [
        0.1,
        0.2,
        pytest.approx(0.3),
        None,
    ]


def test_nothing_is_retried_without_a_reason() -> None:
    assert delays(NoRetry(), error(), 2) == [None, None]


@pytest.mark.parametrize("code", list(ErrorCode))
def test_only_what_may_pass_is_retried(code: ErrorCode) -> None:
    passing = {"RATE_LIMITED", "NETWORK_ERROR", "TIMEOUT", "PROVIDER_ERROR"}
    retried = ExponentialBackoff().on_retry(error(code), 1) is not None
    assert retried is (code.value in passing)
    for strategy in (RetryAfterStrategy(), TokenBucket()):
        assert (strategy.on_retry(error(code), 1) is not None) is (code == "RATE_LIMITED")


def test_a_wait_that_the_server_asks_for_is_kept_or_given_up() -> None:
    strategy = LinearBackoff(delay=1, max_delay=10)
    assert strategy.on_retry(error(retry_after=7), 1) == 7
    assert strategy.on_retry(error(retry_after=0.5), 2) == 2
    assert strategy.on_retry(error(retry_after=11), 1) is None


def test_retry_after_is_waited_for_and_else_the_fallback() -> None:
    strategy = RetryAfterStrategy(max_attempts=1, fallback_delay=3)
    assert strategy.on_retry(error(retry_after=0), 1) == 0
    assert strategy.on_retry(error(), 1) == 3
    assert strategy.on_retry(error(), 2) is None


def test_a_bucket_lets_its_tokens_go_and_then_one_at_a_time() -> None:
    now = [100.0]
    bucket = TokenBucket(capacity=2, refill_rate=4, clock=lambda: now[0])
    assert [bucket.before_request() for _ in range(4)] == [0, 0, 0.25, 0.5]
    now[0] += 0.5
    assert bucket.before_request() == 0.25
    now[0] += 1000
    assert [bucket.before_request() for _ in range(3)] == [0, 0, 0.25]
    assert bucket.on_retry(error(), 3) == 0.5
    assert bucket.on_retry(error(), 4) is None


def test_requests_of_many_threads_take_a_token_each() -> None:
    bucket = TokenBucket(capacity=0, refill_rate=1, clock=lambda: 0.0)
    waits: list[float] = []
    threads = [
        threading.Thread(target=lambda: waits.extend(bucket.before_request() for _ in range(200)))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    join_threads(threads)
    assert sorted(waits) == [float(n) for n in range(1, 801)]


class Counting(RetryStrategy):
    """Retries at once, `times` times, and counts what it is asked."""

    def __init__(self, times: int) -> None:
        self.times = times
        self.calls: list[str] = []

    def before_request(self) -> float:
        """Count."""
        self.calls.append("before")
        return 0.0

    def on_retry(self, error: UPPError, attempt: int) -> float | None:
        """Count, and retry at once."""
        self.calls.append(f"retry {attempt} {error.code}")
        return 0.0 if attempt <= self.times else None

    def reset(self) -> None:
        """Count."""
        self.calls.append("reset")


class Attempts:
    """Attempts that each follow a plan: texts, which are events, and errors."""

    def __init__(self, *plans: list[str | UPPError]) -> None:
        self.left = list(plans)
        self.seen: list[str] = []

    async def run(self, strategy: RetryStrategy) -> list[str]:
        """Return the events, and last the code of the error that was raised, if one was."""
        try:
            await retrying(self._attempt, strategy, lambda: bool(self.seen))
        except UPPError as caught:
            return [*self.seen, caught.code]
        return self.seen

    async def _attempt(self) -> None:
        for step in self.left.pop(0):
            if isinstance(step, UPPError):
                raise step
            self.seen.append(step)


async def test_an_attempt_that_fails_before_its_first_event_is_retried() -> None:
    attempts = Attempts([error()], [error(ErrorCode.TIMEOUT)], ["a", "b"])
    strategy = Counting(2)
    assert await attempts.run(strategy) == ["a", "b"]
    assert strategy.calls == [
        "before",
        "retry 1 RATE_LIMITED",
        "before",
        "retry 2 TIMEOUT",
        "before",
        "reset",
    ]


async def test_an_answer_that_began_is_never_asked_for_again() -> None:
    attempts = Attempts(["a", error()], ["never"])
    strategy = Counting(2)
    assert await attempts.run(strategy) == ["a", "RATE_LIMITED"]
    assert (strategy.calls, len(attempts.left)) == (["before"], 1)


async def test_the_last_attempts_error_is_raised() -> None:
    attempts = Attempts([error()], [error(ErrorCode.NETWORK_ERROR)])
    assert await attempts.run(Counting(1)) == ["NETWORK_ERROR"]


async def test_the_last_error_has_those_of_the_attempts_before_it() -> None:
    first, second, last = error(), error(ErrorCode.TIMEOUT), error(ErrorCode.NETWORK_ERROR)
    plans = iter([first, second, last])

    async def attempt() -> None:
        raise next(plans)

    with pytest.raises(UPPError) as caught:
        await retrying(attempt, Counting(2), lambda: False)
    assert caught.value is last
    assert last.earlier == (first, second)
    assert pickle.loads(pickle.dumps(last)).earlier[1].code == ErrorCode.TIMEOUT  # noqa: S301 our own


async def test_the_strategy_itself_never_retries() -> None:
    attempts = Attempts([error()], ["never"])
    assert await attempts.run(RetryStrategy()) == ["RATE_LIMITED"]
    assert RetryStrategy().before_request() == 0
    assert len(attempts.left) == 1


async def test_a_request_waits_as_long_as_its_strategy_wants() -> None:
    class Waiting(Counting):
        def before_request(self) -> float:
            super().before_request()
            return 0.001

    strategy = Waiting(0)
    assert await Attempts(["a"]).run(strategy) == ["a"]
    assert strategy.calls == ["before", "reset"]
