"""Guarded requests to addresses named by a model, a page, a message or an agent's row.

Connections are made only to IP addresses that `agents_app.outbound.rules` has checked, and each
name is looked up once per connection, so that it cannot change in between. Each redirect is a new
request under the same rules. For every refused or failed request, callers learn only that the
address cannot be reached; the reason goes to the log.
"""

import logging
import re
import ssl
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import httpcore
import httpx

from agents_app.outbound.look_ups import look_up
from agents_app.outbound.pinned import Deadline, PinnedBackend
from agents_app.outbound.rules import Policy, Target, Unreachable, check_addresses, check_url

__all__ = ["REDIRECTS", "Fetched", "Posted", "TooLarge", "Unreachable", "fetch", "post"]

logger = logging.getLogger(__name__)

REDIRECTS = 3
_REDIRECT_STATUS = frozenset({301, 302, 303, 307, 308})
_CREDENTIALS = frozenset(
    {"authorization", "cookie", "proxy-authorization", "x-api-key", "x-goog-api-key"}
)
_SECONDS = re.compile(rb"[0-9]{1,6}")
HTTP_ERRORS = (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException)


class TooLarge(Exception):
    """The body is larger than the policy's `max_bytes`."""

    def __init__(self, limit: int) -> None:
        super().__init__(f"The answer has more than {limit} bytes.")


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """The final response; `media_type` is in lower case and has no parameters."""

    url: str
    status: int
    media_type: str
    charset: str | None
    data: bytes


Resolve = Callable[[str, int, float], Sequence[str]]


def fetch(
    url: str,
    policy: Policy,
    *,
    headers: Mapping[str, str] | None = None,
    on_host: Callable[[str], object] = lambda _host: None,
    on_bytes: Callable[[int, int | None], object] = lambda _received, _total: None,
    tls: ssl.SSLContext | None = None,
    resolve: Resolve | None = None,
) -> Fetched:
    """Get a URL and follow its redirects; raises Unreachable and TooLarge.

    Everything together takes at most `policy.seconds`. `on_host` receives each host before it is
    looked up, and `on_bytes` how many bytes of the final body have arrived and how many there are,
    if known; an exception in either ends the request. `headers` with credentials are sent only to
    the first host and port.
    """
    fetching = _Fetch(
        policy=policy,
        headers={name.lower(): value for name, value in (headers or {}).items()},
        on_host=on_host,
        on_bytes=on_bytes,
        tls=tls or httpx.create_ssl_context(),
        resolve=resolve or look_up,
        deadline=Deadline(policy.seconds),
    )
    try:
        return fetching.run(url)
    except Unreachable as error:
        logger.warning("an address was not fetched: %s", error.reason)
        raise


class Posted(NamedTuple):
    """The status of a response, the seconds of its Retry-After or None, and its body if read."""

    status: int
    retry_after: int | None = None
    data: bytes = b""


def post(
    url: str,
    policy: Policy,
    *,
    body: bytes,
    headers: Mapping[str, str],
    reads_answer: bool = False,
    tls: ssl.SSLContext | None = None,
    resolve: Resolve | None = None,
) -> Posted:
    """Post a body to a URL and return the response's status and when to retry; raises Unreachable.

    Redirects are not followed. The response's body is read only with `reads_answer`; TooLarge is
    raised if it has more than `policy.max_bytes`. Everything together takes at most
    `policy.seconds`.
    """
    sending = _Fetch(
        policy=policy,
        headers={name.lower(): value for name, value in headers.items()},
        on_host=lambda _host: None,
        on_bytes=lambda _received, _total: None,
        tls=tls or httpx.create_ssl_context(),
        resolve=resolve or look_up,
        deadline=Deadline(policy.seconds),
    )
    try:
        return sending.post(url, body, reads_answer=reads_answer)
    except Unreachable as error:
        logger.warning("nothing was posted to an address: %s", error.reason)
        raise


def url_of(target: Target) -> httpcore.URL:
    """Return the URL of a target as httpcore takes it."""
    return httpcore.URL(
        scheme=target.url.raw_scheme,
        host=target.url.raw_host,
        port=target.port,
        target=target.url.raw_path,
    )


def sent_headers(
    target: Target, headers: Mapping[str, str], body: bytes | None
) -> list[tuple[str, str]]:
    """Return the headers of a request; `headers` have names in lower case."""
    sent = {
        "accept": "*/*",
        **headers,
        "host": target.url.netloc.decode("ascii"),
        "accept-encoding": "gzip",
    }
    if body is not None:
        sent["content-length"] = str(len(body))
    return list(sent.items())


def posted_in(response: httpcore.Response) -> Posted:
    """Return the status and the Retry-After of a response."""
    after = _headers(response).get("retry-after", b"")
    return Posted(response.status, int(after) if _SECONDS.fullmatch(after) else None)


@dataclass(kw_only=True)
class _Fetch:
    """One fetch, from the first address to the last, or one POST.

    Runs on the thread that calls `run`, except for name look-ups (`look_up`).
    """

    policy: Policy
    headers: dict[str, str]
    on_host: Callable[[str], object]
    on_bytes: Callable[[int, int | None], object]
    tls: ssl.SSLContext
    resolve: Resolve
    deadline: Deadline

    def run(self, url: str) -> Fetched:
        """Follow redirects and return the final response."""
        place = None
        for _ in range(REDIRECTS + 1):
            target = check_url(url, self.policy)
            if place not in {None, target.place}:
                self.headers = {n: v for n, v in self.headers.items() if n not in _CREDENTIALS}
            place = target.place
            self.on_host(target.host)
            addresses = self.resolve(target.host, target.port, self.deadline.left())
            answer = self._ask(target, check_addresses(target, addresses))
            if isinstance(answer, Fetched):
                return answer
            url = _joined(target.url, answer)
        raise Unreachable(f"{place}: more than {REDIRECTS} redirects")

    def post(self, url: str, body: bytes, *, reads_answer: bool) -> Posted:
        """Post a body and return the response's status and Retry-After, and its body if wanted."""
        target = check_url(url, self.policy)
        addresses = self.resolve(target.host, target.port, self.deadline.left())
        try:
            with self._sent("POST", target, check_addresses(target, addresses), body) as response:
                data = self._body(response, _headers(response)) if reads_answer else b""
                return posted_in(response)._replace(data=data)
        except (*HTTP_ERRORS, zlib.error) as error:
            raise Unreachable(f"{target.place}: {type(error).__name__} {error}") from error

    @contextmanager
    def _sent(
        self, method: str, target: Target, addresses: Sequence[str], body: bytes | None = None
    ) -> Iterator[httpcore.Response]:
        """Send one request to one of the addresses and yield its response."""
        sent = {**self.headers, "connection": "close"}
        backend = PinnedBackend(lambda: addresses, self.deadline)
        with (
            httpcore.ConnectionPool(ssl_context=self.tls, network_backend=backend) as pool,
            pool.stream(
                method, url_of(target), headers=sent_headers(target, sent, body), content=body
            ) as response,
        ):
            yield response

    def _ask(self, target: Target, addresses: Sequence[str]) -> Fetched | bytes:
        """Return the response of one address, or its Location if it redirects."""
        try:
            with self._sent("GET", target, addresses) as response:
                got = _headers(response)
                if response.status in _REDIRECT_STATUS and "location" in got:
                    return got["location"]
                data = self._body(response, got)
        except (*HTTP_ERRORS, zlib.error) as error:
            raise Unreachable(f"{target.place}: {type(error).__name__} {error}") from error
        media_type, charset = _content_type(got.get("content-type", b""))
        return Fetched(
            url=str(target.url),
            status=response.status,
            media_type=media_type,
            charset=charset,
            data=data,
        )

    def _body(self, response: httpcore.Response, headers: Mapping[str, bytes]) -> bytes:
        limit = self.policy.max_bytes
        length = headers.get("content-length", b"")
        # Python refuses to parse thousands of digits; 18 exceed any limit.
        total = int(length[:18]) if length.isdigit() else None
        if total is not None and total > limit:
            raise TooLarge(limit)
        coding = headers.get("content-encoding", b"identity").strip().lower()
        if coding not in {b"identity", b"gzip", b"x-gzip"}:
            raise Unreachable(f"the content encoding is {coding!r}")
        unzip = None if coding == b"identity" else zlib.decompressobj(wbits=31)
        data = bytearray()
        received = 0
        for chunk in response.iter_stream():
            received += len(chunk)
            # One byte past the limit proves that there is more, even for highly compressed data.
            data += unzip.decompress(chunk, limit - len(data) + 1) if unzip else chunk
            if max(received, len(data)) > limit:
                raise TooLarge(limit)
            self.on_bytes(received, total)
        return bytes(data)


def _joined(base: httpx.URL, location: bytes) -> str:
    try:
        # A Location may have a fragment, which is not part of the request.
        return str(base.join(location.decode("utf-8", "replace")).copy_with(fragment=None))
    except (httpx.InvalidURL, ValueError) as error:
        raise Unreachable(f"a redirect leads to an invalid URL: {error}") from error


def _headers(response: httpcore.Response) -> dict[str, bytes]:
    return {name.decode("latin-1").lower(): value for name, value in response.headers}


def _content_type(header: bytes) -> tuple[str, str | None]:
    media_type, _, parameters = header.decode("latin-1").partition(";")
    charset = None
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'") or None
    return media_type.strip().lower(), charset
