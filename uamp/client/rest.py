"""Requests to the server's REST routes: retried if that is safe, refused with typed errors."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx2
import msgspec

from uamp.client.errors import ClientError, ConnectionLostError, error_of_problem
from uamp.client.records import Listed

_T = TypeVar("_T")

_ATTEMPTS = 4
_FIRST_PAUSE, _LONGEST_PAUSE = 0.25, 8.0
# The server carried out no part of a request that it answers with these.
_NOTHING_DONE = frozenset({429, 503})
_MAY_BE_DONE = frozenset({502, 504})
_SAFE = frozenset({"GET", "HEAD", "PUT", "DELETE"})


class Rest:
    """REST over one HTTP client.

    A request is made at most four times. It is retried if the server could not be reached or
    accepts no requests at the moment; after a lost response only if a repeat has no effect, because
    of its method or its Idempotency-Key. The pause is that of Retry-After, if present.
    """

    def __init__(self, http: httpx2.AsyncClient) -> None:
        self.http = http

    async def read(self, path: str, kind: type[_T], /, **query: Any) -> _T:
        """GET a path and return the response as ``kind``. Raises ClientError."""
        answer = await self.request("GET", path, params=_present(query))
        return msgspec.json.decode(answer.content, type=kind)

    async def write(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        *,
        repeatable: bool = False,
        kind: type[_T],
    ) -> _T:
        """Send a write, return the response as ``kind``; ``repeatable`` adds an Idempotency-Key."""
        headers = {"Idempotency-Key": uuid.uuid4().hex} if repeatable else {}
        answer = await self.request(method, path, json=body, headers=headers)
        return msgspec.json.decode(answer.content or b"null", type=kind)

    async def pages(
        self,
        path: str,
        kind: type[_T],
        *,
        limit: int | None = None,
        query: Mapping[str, Any] | None = None,
    ) -> AsyncIterator[_T]:
        """Yield the rows of a list, fetched page by page, at most ``limit`` of them."""
        cursor: str | None = None
        count = 0
        while limit is None or count < limit:
            size = 200 if limit is None else min(200, limit - count)
            page = await self.read(path, Listed, **(query or {}), limit=size, cursor=cursor)
            for row in page.data:
                count += 1
                yield msgspec.convert(row, kind)
            cursor = page.next_cursor
            if cursor is None or not page.has_more:
                return

    @asynccontextmanager
    async def stream(self, path: str, **options: Any) -> AsyncIterator[httpx2.Response]:
        """Open a successful response to a GET as a stream. Raises ClientError.

        If the connection breaks while the body is being read, ``httpx2.TransportError`` is raised.
        """
        async with self.http.stream("GET", path, **options) as answer:
            if not answer.is_success:
                await answer.aread()
                raise error_of_problem(answer.status_code, _problem(answer))
            yield answer

    async def request(self, method: str, path: str, **options: Any) -> httpx2.Response:
        """Make a request and return its successful response. Raises ClientError."""
        headers = options.get("headers") or {}
        repeatable = method in _SAFE or "Idempotency-Key" in headers
        for attempt in range(1, _ATTEMPTS + 1):
            pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1)) * _spread()
            try:
                answer = await self.http.request(method, path, **options)
            except httpx2.InvalidURL as error:
                raise ClientError(str(error), code="invalid_address") from None
            except httpx2.TransportError as error:
                unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
                if attempt == _ATTEMPTS or not (unsent or repeatable):
                    raise _unreachable(self.http, error) from error
            else:
                if answer.is_success:
                    return answer
                refusal = error_of_problem(answer.status_code, _problem(answer))
                may_retry = answer.status_code in _NOTHING_DONE or (
                    repeatable and answer.status_code in _MAY_BE_DONE
                )
                wait = refusal.retry_after or _retry_after(answer)
                if attempt == _ATTEMPTS or not may_retry or (wait or 0) > _LONGEST_PAUSE:
                    raise refusal
                pause = max(pause, wait or 0)
            await asyncio.sleep(pause)
        raise AssertionError("the last attempt returns or raises")


def _unreachable(http: httpx2.AsyncClient, error: Exception) -> ConnectionLostError:
    return ConnectionLostError(
        f"No answer from {http.base_url}: {str(error) or type(error).__name__}"
    )


def _present(query: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in query.items() if value is not None}


def _problem(answer: httpx2.Response) -> dict[str, Any]:
    try:
        value = msgspec.json.decode(answer.content)
    except msgspec.DecodeError:
        return {}
    return value if isinstance(value, dict) else {}


def _retry_after(answer: httpx2.Response) -> float | None:
    value = answer.headers.get("Retry-After", "")
    return float(value) if value.isdecimal() else None


def _spread() -> float:
    """Return a random factor that keeps many clients from retrying at once."""
    return random.uniform(0.5, 1.0)  # noqa: S311 a pause, not a secret
