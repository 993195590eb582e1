"""Rate limits for people, and for the visitors from an address, on every transport.

One table of limits (KINDS) and one limiter serve the sockets, the HTTP transports and REST. The
limiter is the `limits` library's sliding window counter. With Redis, all processes count together;
otherwise each process counts on its own.

`pacing` limits how fast a socket is read, without refusing anything.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import math
import time
import weakref
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import redis
from django.conf import settings
from limits import RateLimitItemPerDay, RateLimitItemPerMinute
from limits.strategies import SlidingWindowCounterRateLimiter
from redis.backoff import NoBackoff
from redis.retry import Retry

from agents_app.workers.connections import ReleasingThreads
from sessions_app.access.rate_counters import CounterStorage, ReadWindow, SharedCounters

if TYPE_CHECKING:
    from collections.abc import Mapping, MutableMapping, Sequence

logger = logging.getLogger(__name__)

REDIS_SECONDS: Final = 0.5
# The most requests counted in one round trip to Redis.
MAX_BATCH: Final = 64
# How long this process counts alone after Redis has failed.
LOCAL_COUNT_SECONDS: Final = 5.0
IPV6_PREFIX: Final = 64
# Every request waits for them, so they are not the loop's, which also resolve names of hosts.
_threads: Final = ReleasingThreads(2, thread_name_prefix="rates")
# Name prefixes of those without an identity: an address, or a visitor as stored in rows.
_VISITORS: Final = ("address:", "anonymous:")
# The key in an ASGI scope for the quota to put in response headers (`note`).
SCOPE_KEY: Final = "uamp.quota"


@dataclass(frozen=True, slots=True)
class RateKind:
    """A kind of request: the settings with its limits, and their window."""

    person: str
    visitors: str
    unit: str = "a minute"

    @property
    def seconds(self) -> int:
        """The length of the window in seconds."""
        return _WINDOWS[self.unit].GRANULARITY.seconds


_Item: TypeAlias = RateLimitItemPerMinute | RateLimitItemPerDay
_WINDOWS: Final[Mapping[str, type[_Item]]] = {
    "a minute": RateLimitItemPerMinute,
    "a day": RateLimitItemPerDay,
}


def _same(name: str) -> RateKind:
    return RateKind(name, name)


KINDS: Final[Mapping[str, RateKind]] = {
    # Every HTTP request and handshake from an address, before authentication.
    "requests": _same("UAMP_REQUESTS_PER_MINUTE"),
    # Documents that are the same for everyone, per address, for people and visitors alike.
    "documents": _same("UAMP_DOCUMENTS_PER_MINUTE"),
    "reads": _same("UAMP_READS_PER_MINUTE"),
    "writes": _same("UAMP_WRITES_PER_MINUTE"),
    "uploads": _same("UAMP_UPLOADS_PER_MINUTE"),
    # Profile pictures; decoding one takes up to a second of CPU time.
    "pictures": _same("UAMP_PICTURES_PER_MINUTE"),
    # Texts rendered to HTML, and previews that have to be drawn; each may take a process.
    "renders": _same("UAMP_RENDERS_PER_MINUTE"),
    "searches": _same("UAMP_SEARCHES_PER_MINUTE"),
    "exports": _same("UAMP_EXPORTS_PER_MINUTE"),
    # Each reads up to 1,000 entries of a log, or twice as many for an edited message.
    "proofs": _same("UAMP_PROOFS_PER_MINUTE"),
    # Each reads everything that a person wrote and stored.
    "personal exports": RateKind(
        "UAMP_PERSONAL_EXPORTS_PER_DAY", "UAMP_PERSONAL_EXPORTS_PER_DAY", "a day"
    ),
    # Links to confirm an address or to choose a new password, by who requests them and by address.
    "mails": RateKind("UAMP_MAILS_PER_DAY", "UAMP_MAILS_PER_DAY", "a day"),
    # The same links of one requester to one address: a requester alone cannot use up its emails.
    "mails to one": RateKind("UAMP_MAILS_TO_ONE_PER_DAY", "UAMP_MAILS_TO_ONE_PER_DAY", "a day"),
    # Each may make a worker fetch web pages.
    "link cards": _same("UAMP_LINK_CARDS_PER_MINUTE"),
    "transcripts": _same("UAMP_TRANSCRIPTS_PER_MINUTE"),
    # Sound sent to the transcription server, by who stored it; each second counts as a request.
    "seconds of recordings": RateKind(
        "UAMP_TRANSCRIPT_SECONDS_PER_DAY", "UAMP_TRANSCRIPT_SECONDS_PER_DAY", "a day"
    ),
    # Each copies the history of a chat.
    "forks": _same("UAMP_FORKS_PER_MINUTE"),
    # Pages and files of shared chats, per address, for people and visitors alike.
    "shared pages": _same("UAMP_SHARED_PAGES_PER_MINUTE"),
    "shared files": _same("UAMP_SHARED_FILES_PER_MINUTE"),
    # Passwords per address and per account; checking one takes a large part of a CPU second.
    "sign-ins": _same("UAMP_SIGN_INS_PER_MINUTE"),
    "discovery": _same("UAMP_DISCOVERY_PER_MINUTE"),
    "events": RateKind("UAMP_HTTP_EVENTS_PER_MINUTE", "UAMP_ANONYMOUS_HTTP_EVENTS_PER_MINUTE"),
    "sessions": RateKind("UAMP_SESSIONS_PER_MINUTE", "UAMP_ANONYMOUS_SESSIONS_PER_MINUTE"),
    "payments": RateKind("UAMP_PAYMENTS_PER_MINUTE", "UAMP_ANONYMOUS_PAYMENTS_PER_MINUTE"),
    "responses": RateKind("UAMP_RESPONSES_PER_MINUTE", "UAMP_ANONYMOUS_RESPONSES_PER_MINUTE"),
    # Each `voice.*` event goes to all members of a chat.
    "call events": RateKind("UAMP_CALL_EVENTS_PER_MINUTE", "UAMP_ANONYMOUS_CALL_EVENTS_PER_MINUTE"),
    "calls": _same("UAMP_CALLS_PER_MINUTE"),
    # A peer's signed envelopes; each costs a verification and a row.
    "envelopes": _same("UAMP_ENVELOPES_PER_MINUTE"),
    # Session descriptions and candidates, each for one participant of a call.
    "call signals": _same("UAMP_CALL_SIGNALS_PER_MINUTE"),
    # Speech to agents in calls; each is an answer.
    "call speeches": _same("UAMP_CALL_SPEECHES_PER_MINUTE"),
    # Deliveries of response states to addresses chosen by clients.
    "webhooks": RateKind("UAMP_WEBHOOKS_PER_MINUTE", "UAMP_ANONYMOUS_WEBHOOKS_PER_MINUTE"),
    # Text stored in rows; each byte counts as a request.
    "bytes of text": RateKind(
        "UAMP_TEXT_BYTES_PER_DAY", "UAMP_ANONYMOUS_TEXT_BYTES_PER_DAY", "a day"
    ),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """The state of a limit after a request; times are in Unix seconds."""

    kind: str
    limit: int
    remaining: int
    reset_at: float
    allowed: bool
    # Whether the limit is below the cost of the request, which can then never be allowed.
    exceeds_limit: bool = False

    @property
    def retry_after(self) -> int:
        """Seconds until the next request may be allowed, at least 1."""
        return max(1, math.ceil(self.reset_at - time.time()))

    @property
    def lasts(self) -> bool:
        """Whether it may take hours until a request like the refused one is allowed, or forever."""
        return self.exceeds_limit or KINDS[self.kind].unit == "a day"

    def headers(self) -> list[tuple[str, str]]:
        """Return the rate limit headers for clients.

        Those of draft-ietf-httpapi-ratelimit-headers-06, with a reset in seconds, and the older X-
        names, with a reset in Unix time.
        """
        seconds = str(max(0, math.ceil(self.reset_at - time.time())))
        return [
            ("RateLimit-Policy", f"{self.limit};w={KINDS[self.kind].seconds}"),
            ("RateLimit-Limit", str(self.limit)),
            ("RateLimit-Remaining", str(self.remaining)),
            ("RateLimit-Reset", seconds),
            ("X-RateLimit-Limit", str(self.limit)),
            ("X-RateLimit-Remaining", str(self.remaining)),
            ("X-RateLimit-Reset", str(math.ceil(self.reset_at))),
        ]


def person(user_id: object) -> str:
    """Return the name that limits count a person under."""
    return f"user:{user_id}"


def visitors(address: str) -> str:
    """Return the name that limits count the visitors from an address under.

    An IPv6 /64 network counts as one address, since its owner can use all 2^64 of them.
    """
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return f"address:{address}"
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped is not None:
            return f"address:{parsed.ipv4_mapped}"
        network = ipaddress.ip_network((parsed, IPV6_PREFIX), strict=False)
        return f"address:{network.network_address}"
    return f"address:{parsed}"


def note(scope: MutableMapping[str, Any], quota: Quota) -> None:
    """Set the quota for a scope's response headers; the one with the least left wins."""
    current: Quota | None = scope.get(SCOPE_KEY)
    if current is None or not quota.allowed or quota.remaining < current.remaining:
        scope[SCOPE_KEY] = quota


class _CountedRequest(NamedTuple):
    kind: str
    name: str
    cost: int


@dataclass(slots=True)
class _Waiting:
    """Requests of one event loop that Redis has yet to count; used only on that loop."""

    requests: list[tuple[_CountedRequest, asyncio.Future[Quota]]] = field(default_factory=list)
    counting: asyncio.Task[None] | None = None


class RateLimiter:
    """The limits of KINDS, counted in Redis if `redis_url` is set, else in this process.

    While Redis is down, this process counts alone, so requests neither fail nor go unlimited.
    Threads call `hit`; tasks of any event loop call `take`. One task per loop counts the waiting
    requests in a thread.
    """

    def __init__(self, redis_url: str = "", *, prefix: str = "uamp") -> None:
        self.counters = CounterStorage()
        self._alone = SlidingWindowCounterRateLimiter(self.counters)
        self._shared: SharedCounters | None = None
        self._alone_until = 0.0
        self._waiting: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Waiting] = (
            weakref.WeakKeyDictionary()
        )
        if redis_url:
            pool = redis.ConnectionPool.from_url(
                redis_url,
                socket_timeout=REDIS_SECONDS,
                socket_connect_timeout=REDIS_SECONDS,
                retry=Retry(NoBackoff(), 0),
            )
            self._shared = SharedCounters(
                redis_url, connection_pool=pool, key_prefix=f"{prefix}.rates"
            )

    def hit(self, kind: str, name: str, *, cost: int = 1) -> Quota:
        """Count `cost` requests of a kind for a name from `person` or `visitors`.

        May wait up to REDIS_SECONDS for Redis, so do not call it on an event loop.
        """
        return self.hit_each(kind, {name: cost})[0]

    def hit_each(self, kind: str, costs: Mapping[str, int]) -> list[Quota]:
        """Count like `hit` for several names with their costs, in one round trip."""
        return self._count([_CountedRequest(kind, name, cost) for name, cost in costs.items()])

    async def take(self, kind: str, name: str, *, cost: int = 1) -> Quota:
        """Count like `hit`, but without blocking the event loop."""
        if self._shared is None or time.monotonic() < self._alone_until:
            return _hit(self._alone, _CountedRequest(kind, name, cost))
        # Requests that arrive during a round trip share the next one.
        loop = asyncio.get_running_loop()
        waiting = self._waiting.setdefault(loop, _Waiting())
        counted: asyncio.Future[Quota] = loop.create_future()
        waiting.requests.append((_CountedRequest(kind, name, cost), counted))
        if waiting.counting is None:
            waiting.counting = loop.create_task(self._count_waiting(waiting), name="rates")
        return await counted

    async def _count_waiting(self, waiting: _Waiting) -> None:
        try:
            while waiting.requests:
                batch = waiting.requests[:MAX_BATCH]
                del waiting.requests[:MAX_BATCH]
                try:
                    quotas = await _threads.run(self._count, [request for request, _ in batch])
                except Exception as error:  # noqa: BLE001 it is raised for the callers
                    for _, counted in batch:
                        if not counted.done():
                            counted.set_exception(error)
                    continue
                for (_, counted), quota in zip(batch, quotas, strict=True):
                    if not counted.done():
                        counted.set_result(quota)
        finally:
            waiting.counting = None

    def _count(self, requests: Sequence[_CountedRequest]) -> list[Quota]:
        """Count requests in order, in Redis if it responds."""
        if self._shared is not None and time.monotonic() >= self._alone_until:
            try:
                return _hit_shared(self._shared, requests)
            except redis.RedisError:
                self._alone_until = time.monotonic() + LOCAL_COUNT_SECONDS
                logger.warning(
                    "Redis is unavailable; counting rate limits in this process only", exc_info=True
                )
        return [_hit(self._alone, request) for request in requests]


def _hit(limiter: SlidingWindowCounterRateLimiter, request: _CountedRequest) -> Quota:
    item = _item(_limit(request), KINDS[request.kind].unit)
    allowed = limiter.hit(item, request.kind, request.name, cost=request.cost)
    return _quota(limiter, request, item, allowed=allowed)


def _hit_shared(counters: SharedCounters, requests: Sequence[_CountedRequest]) -> list[Quota]:
    items = [_item(_limit(request), KINDS[request.kind].unit) for request in requests]
    answers = counters.acquire_all(
        [
            (item.key_for(request.kind, request.name), item.amount, item.get_expiry(), request.cost)
            for request, item in zip(requests, items, strict=True)
        ]
    )
    read = ReadWindow()
    limiter = SlidingWindowCounterRateLimiter(read)
    quotas = []
    for request, item, (allowed, window) in zip(requests, items, answers, strict=True):
        read.window = window
        quotas.append(_quota(limiter, request, item, allowed=allowed))
    return quotas


def _limit(request: _CountedRequest) -> int:
    limits = KINDS[request.kind]
    is_visitors = request.name.startswith(_VISITORS)
    return int(getattr(settings, limits.visitors if is_visitors else limits.person))


def _quota(
    limiter: SlidingWindowCounterRateLimiter,
    request: _CountedRequest,
    item: _Item,
    *,
    allowed: bool,
) -> Quota:
    reset_at, remaining = limiter.get_window_stats(item, request.kind, request.name)
    exceeds_limit = item.amount < max(request.cost, 1)
    if exceeds_limit:
        # The window may be empty.
        reset_at = time.time() + item.get_expiry()
    return Quota(
        kind=request.kind,
        limit=item.amount,
        remaining=remaining,
        reset_at=reset_at,
        allowed=allowed,
        exceeds_limit=exceeds_limit,
    )


@lru_cache(maxsize=64)
def _item(amount: int, unit: str) -> _Item:
    return _WINDOWS[unit](amount, namespace="")


@lru_cache(maxsize=1)
def limiter() -> RateLimiter:
    """Return the limiter of this process."""
    return RateLimiter(settings.REDIS_URL, prefix=settings.REDIS_PREFIX)


def forget() -> None:
    """Reset this process's counters (between tests)."""
    limiter().counters.reset()
