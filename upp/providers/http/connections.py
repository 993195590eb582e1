"""The HTTP connections to model servers: aiohttp, with one session per event loop.

The number of connections is limited and TLS is verified. Redirects are not followed, cookies are
not stored, and nothing is resent: retrying is up to the caller. Proxies from the environment
(HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY) are used unless the caller makes the connections.
"""

import asyncio
import base64
import functools
import os
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import certifi
from aiohttp.abc import AbstractStreamWriter

CONNECT_SECONDS = 5.0
MAX_CONNECTIONS = 2000
KEEP_SECONDS = 5.0
"""How long an idle connection is kept."""
PIECE_BYTES = 64 * 1024
MESSAGE_BYTES = 4 * 1024 * 1024
"""The most bytes of one WebSocket message."""
CLOSE_SECONDS = 1.0
"""How long to wait for a WebSocket to close."""

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"(?:[!-~](?:[\t -~]*[!-~])?)?")

MakeConnector = Callable[[], aiohttp.BaseConnector]
"""Makes the connector of the running event loop."""


class HeaderError(Exception):
    """A request header contains characters that are not allowed in headers."""


class Sessions:
    """The sessions of one provider, one per event loop and connector factory.

    Tasks of any event loop, in any thread, may call `session`; each gets that of its own loop.
    """

    def __init__(self) -> None:
        self._sessions: dict[
            tuple[asyncio.AbstractEventLoop, MakeConnector | None], HttpSession
        ] = {}

    def session(self, make: MakeConnector | None = None) -> "HttpSession":
        """Return the running loop's session with a connector made by `make`."""
        key = (asyncio.get_running_loop(), make)
        if key not in self._sessions:
            # A session references its loop, which would otherwise never be freed.
            for stale in [stale for stale in list(self._sessions) if stale[0].is_closed()]:
                _abandon(stale[0], self._sessions.pop(stale))
            connector = connector_with() if make is None else make()
            self._sessions[key] = HttpSession(connector, uses_proxies=make is None)
        return self._sessions[key]

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        loop = asyncio.get_running_loop()
        for key in [key for key in list(self._sessions) if key[0] is loop]:
            await self._sessions.pop(key).aclose()

    def __del__(self) -> None:
        for (loop, _), session in self._sessions.items():
            _abandon(loop, session)


def connector_with(**options: Any) -> aiohttp.TCPConnector:
    """Return an aiohttp connector with the limits of this module; `options` are aiohttp's."""
    return aiohttp.TCPConnector(
        **{
            "limit": MAX_CONNECTIONS,
            "keepalive_timeout": KEEP_SECONDS,
            "ssl": _tls(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
            **options,
        }
    )


def certified() -> ssl.SSLContext:
    """Return the TLS settings for servers with publicly trusted certificates."""
    return _tls(None, None)


@functools.lru_cache(maxsize=4)
def _tls(file: str | None, directory: str | None) -> ssl.SSLContext:
    if file or directory:
        return ssl.create_default_context(cafile=file or None, capath=directory or None)
    return ssl.create_default_context(cafile=certifi.where())


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read a response until its end or until there are more than `limit` bytes."""
    body = b""
    while len(body) <= limit and (piece := await response.content.readany()):
        body += piece
    return body


class HttpSession:
    """Requests of one event loop; only its tasks may use it."""

    def __init__(self, connector: aiohttp.BaseConnector, *, uses_proxies: bool) -> None:
        self.client = aiohttp.ClientSession(
            connector=connector, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        self._uses_proxies = uses_proxies
        self._proxies: dict[tuple[str, str], str | None] = {}
        self._sockets: aiohttp.ClientSession | None = None

    async def post(
        self, url: str, *, headers: Mapping[str, str], body: bytes, silent: float
    ) -> aiohttp.ClientResponse:
        """Send a request and return the response, with its body unread and unreleased.

        The server may be silent for `silent` seconds at a time. Raises HeaderError, TimeoutError,
        aiohttp.ClientError.
        """
        data = body if len(body) <= PIECE_BYTES else _LongBody(body, silent)
        return await self._request("POST", url, headers, silent, data=data)

    async def get(
        self, url: str, *, headers: Mapping[str, str], silent: float
    ) -> aiohttp.ClientResponse:
        """Get a URL; like `post`, but without a body."""
        return await self._request("GET", url, headers, silent)

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], silent: float, **body: Any
    ) -> aiohttp.ClientResponse:
        address = _split(url)
        return await self.client.request(
            method,
            _without_user(address),
            headers=_checked_headers(headers, address),
            allow_redirects=False,
            proxy=self._proxy(address),
            timeout=aiohttp.ClientTimeout(
                total=None,
                # The total and the per-address limit: an address that does not answer leaves time
                # for another one.
                connect=min(silent, 2 * CONNECT_SECONDS),
                sock_connect=min(silent, CONNECT_SECONDS),
                sock_read=silent,
            ),
            **body,
        )

    async def dial(
        self,
        url: str,
        *,
        headers: Mapping[str, str],
        silent: float,
        protocols: Iterable[str] = (),
    ) -> aiohttp.ClientWebSocketResponse:
        """Open a WebSocket at an http or https URL; messages have at most MESSAGE_BYTES.

        `protocols` are the subprotocols to offer.

        Raises HeaderError, TimeoutError, aiohttp.ClientError; WSServerHandshakeError if the server
        does not upgrade the connection, including redirects.
        """
        address = _split(url)
        if self._sockets is None:
            # aiohttp follows redirects of a handshake unless a trace rejects them.
            redirects = aiohttp.TraceConfig()
            redirects.on_request_redirect.append(_refuse_redirect)
            self._sockets = aiohttp.ClientSession(
                connector=self.client.connector,
                connector_owner=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                trust_env=False,
                trace_configs=[redirects],
            )
        async with asyncio.timeout(min(silent, 4 * CONNECT_SECONDS)):
            return await self._sockets.ws_connect(
                _without_user(address),
                headers=_checked_headers(headers, address),
                proxy=self._proxy(address),
                max_msg_size=MESSAGE_BYTES,
                protocols=protocols,
                timeout=aiohttp.ClientWSTimeout(ws_receive=silent, ws_close=CLOSE_SECONDS),
            )

    async def aclose(self) -> None:
        """Close the connections."""
        if self._sockets is not None:
            await self._sockets.close()
        await self.client.close()

    def detach(self) -> None:
        """Leave the connections to the caller, who has to close them."""
        self.client.detach()
        if self._sockets is not None:
            self._sockets.detach()

    def _proxy(self, address: SplitResult) -> str | None:
        if not self._uses_proxies:
            return None
        place = (address.scheme, address.netloc.rpartition("@")[2])
        if place not in self._proxies:
            self._proxies[place] = _proxy_for(*place)
        return self._proxies[place]


def _proxy_for(scheme: str, netloc: str) -> str | None:
    """Return the proxy from the environment for a host, with its credentials."""
    proxies = getproxies()
    url = proxies.get(scheme) or proxies.get("all")
    if not url or proxy_bypass(netloc):
        return None
    return _split(url if "://" in url else f"http://{url}").geturl()


def _split(url: str) -> SplitResult:
    """Split a URL; raises aiohttp.InvalidURL."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        raise aiohttp.InvalidURL("")
    return parts


def _without_user(address: SplitResult) -> str:
    return address._replace(netloc=address.netloc.rpartition("@")[2]).geturl()


def _checked_headers(headers: Mapping[str, str], address: SplitResult) -> dict[str, str]:
    """Return a request's headers with the credentials in its URL; raises HeaderError."""
    checked = dict(headers)
    if address.username is not None:
        checked = {
            name: value for name, value in checked.items() if name.lower() != "authorization"
        }
        checked["Authorization"] = _basic(address)
    for name, value in checked.items():
        if not (_HEADER_NAME.fullmatch(name) and _HEADER_VALUE.fullmatch(value)):
            raise HeaderError
    return checked


async def _refuse_redirect(
    _session: aiohttp.ClientSession, _context: object, redirect: aiohttp.TraceRequestRedirectParams
) -> None:
    response = redirect.response
    raise aiohttp.WSServerHandshakeError(
        response.request_info, (), status=response.status, headers=response.headers
    )


def _basic(address: SplitResult) -> str:
    pair = f"{unquote(address.username or '')}:{unquote(address.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


class _LongBody(aiohttp.Payload):
    """A body sent in pieces, each with its own time limit."""

    def __init__(self, body: bytes, silent: float) -> None:
        super().__init__(body)
        self._size = len(body)
        self._silent = silent

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """See aiohttp.Payload."""
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Write the whole body; raises TimeoutError, which aiohttp passes to the reader."""
        for at in range(0, len(self._value), PIECE_BYTES):
            async with asyncio.timeout(self._silent):
                await writer.write(self._value[at : at + PIECE_BYTES])
                await writer.drain()


def _abandon(loop: asyncio.AbstractEventLoop, session: HttpSession) -> None:
    """Close the connections of a loop that has ended or runs in some thread."""
    connector = session.client.connector
    session.detach()
    if connector is None:
        return
    with suppress(StopIteration, RuntimeError):
        if loop.is_closed():
            # The sockets are closed along with their objects, so there is nothing to wait for.
            connector.close().__await__().send(None)
        else:
            loop.call_soon_threadsafe(lambda: loop.create_task(_close(connector)))


async def _close(connector: aiohttp.BaseConnector) -> None:
    await connector.close()
