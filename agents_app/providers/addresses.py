"""Where the models of agents may be, and which key goes there (docs/adr/0014).

Who writes an agent chooses its `base_url` and names the key (`api_key_env`); the operator chooses
the environment. An address of a row goes through the rules of outbound requests: public, https on
443 or 8443, and each connection goes to an address that was checked. Hosts in
UAMP_MODEL_ALLOW_HOSTS, and those of OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GOOGLE_BASE_URL, may be
private and plain http. A key goes to its own vendor, to the address that the environment has for
it, or to a host in UAMP_MODEL_ALLOW_HOSTS, and to no other.
"""

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import anyio.to_thread
import httpcore
import httpx
from django.conf import settings

from agents_app.outbound.guard import look_up
from agents_app.outbound.rules import Policy, Target, Unreachable, check_addresses, check_url

logger = logging.getLogger(__name__)

VENDOR_HOSTS: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "api.anthropic.com",
    "CEREBRAS_API_KEY": "api.cerebras.ai",
    "COHERE_API_KEY": "api.cohere.ai",
    "DEEPINFRA_API_KEY": "api.deepinfra.com",
    "DEEPSEEK_API_KEY": "api.deepseek.com",
    "FIREWORKS_API_KEY": "api.fireworks.ai",
    "GEMINI_API_KEY": "generativelanguage.googleapis.com",
    "GOOGLE_API_KEY": "generativelanguage.googleapis.com",
    "GROQ_API_KEY": "api.groq.com",
    "MISTRAL_API_KEY": "api.mistral.ai",
    "MOONSHOT_API_KEY": "api.moonshot.ai",
    "NVIDIA_API_KEY": "integrate.api.nvidia.com",
    "OPENAI_API_KEY": "api.openai.com",
    "OPENROUTER_API_KEY": "openrouter.ai",
    "PERPLEXITY_API_KEY": "api.perplexity.ai",
    "SAMBANOVA_API_KEY": "api.sambanova.ai",
    "TOGETHER_API_KEY": "api.together.xyz",
    "XAI_API_KEY": "api.x.ai",
}
"""The host of the vendor that each key is for; a key with another name needs the setting."""

_OPERATORS: Final = ("OPENAI", "ANTHROPIC", "GOOGLE")
_CONNECT_SECONDS: Final = 10.0
_CONNECTIONS: Final = httpx.Limits(max_connections=2000, max_keepalive_connections=50)


def target_of(base_url: str) -> Target:
    """Return where the address of a row leads; raises Unreachable."""
    return check_url(base_url, _policy())


def may_take(variable: str, address: str) -> bool:
    """Return whether the key in an environment variable may be sent to an address."""
    place = _place(address)
    host = place.rpartition(":")[0]
    named = place != "" and not _allowed().isdisjoint((place, f"{host}:*"))
    is_secure = address.lower().startswith("https:")
    return (
        (is_secure and VENDOR_HOSTS.get(variable) == host)
        or named
        or (place != "" and place == _place(_operators_address(variable.removesuffix("_API_KEY"))))
    )


def _policy() -> Policy:
    operators = {_place(_operators_address(prefix)) for prefix in _OPERATORS} - {""}
    return Policy(
        allowed=_allowed() | operators,
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
    )


def _allowed() -> frozenset[str]:
    return frozenset(name.lower() for name in settings.UAMP_MODEL_ALLOW_HOSTS)


def _operators_address(prefix: str) -> str:
    return os.environ.get(f"{prefix}_BASE_URL", "") if prefix in _OPERATORS else ""


def _place(address: str) -> str:
    """Return host:port of an address, '' for none."""
    try:
        url = httpx.URL(address)
        host = url.raw_host.decode("ascii").rstrip(".")
    except (httpx.InvalidURL, ValueError):
        return ""
    port = {"https": 443, "http": 80}.get(url.scheme, 0) if url.port is None else url.port
    return f"{host}:{port}" if host else ""


class GuardedTransport(httpx.AsyncBaseTransport):
    """Sends requests to one target, over connections to addresses that were checked.

    The name is looked up for each connection, and the connection goes to what was looked up: it
    cannot lead elsewhere in between. Connections are kept per event loop.
    """

    def __init__(self, target: Target) -> None:
        self._target = target
        self._transports: WeakKeyDictionary[asyncio.AbstractEventLoop, _PinnedTransport] = (
            WeakKeyDictionary()
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send one request; raises httpx.TransportError."""
        loop = asyncio.get_running_loop()
        if loop not in self._transports:
            self._transports[loop] = _PinnedTransport(self._target)
        return await self._transports[loop].handle_async_request(request)

    async def aclose(self) -> None:
        """Close the connections of the running loop."""
        transport = self._transports.pop(asyncio.get_running_loop(), None)
        if transport is not None:
            await transport.aclose()


class _PinnedTransport(httpx.AsyncHTTPTransport):
    """httpx's own transport, with connections of ours."""

    def __init__(self, target: Target) -> None:
        super().__init__(trust_env=False)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=httpx.create_ssl_context(trust_env=False),
            max_connections=_CONNECTIONS.max_connections,
            max_keepalive_connections=_CONNECTIONS.max_keepalive_connections,
            keepalive_expiry=_CONNECTIONS.keepalive_expiry,
            network_backend=_PinnedBackend(target),
        )


class _PinnedBackend(httpcore.AsyncNetworkBackend):
    """Connects to the addresses of one target, after they were checked."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 the signature of httpcore
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Return a connection to the first address that takes one."""
        seconds = _CONNECT_SECONDS if timeout is None else timeout
        try:
            addresses = await self._addresses(host, port, seconds)
        except Unreachable as error:
            logger.warning("the model of an agent was not asked: %s", error.reason)
            raise httpcore.ConnectError(str(error)) from error
        refused: Exception | None = None
        for address in addresses:
            try:
                return await self._sockets.connect_tcp(
                    address, port, seconds / len(addresses), local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                refused = error
        raise httpcore.ConnectError("no address took a connection") from refused

    async def _addresses(self, host: str, port: int, seconds: float) -> Sequence[str]:
        if (host.rstrip("."), port) != (self._target.host, self._target.port):
            raise Unreachable(f"{host}:{port} is not {self._target.place}")
        found = await anyio.to_thread.run_sync(look_up, host, port, seconds, abandon_on_cancel=True)
        return check_addresses(self._target, found)
