"""The addresses that agents' models may have, and the keys that may be sent there (ADR 14).

The author of an agent chooses its `base_url` and names the key (`api_key_env`); the operator
controls the environment. The address in a row must pass the rules for outbound requests: public,
https on port 443 or 8443, with every connection going to a checked address. Hosts in
UAMP_MODEL_ALLOW_HOSTS and those of OPENAI_BASE_URL, ANTHROPIC_BASE_URL and GOOGLE_BASE_URL may be
private and use plain http. A key of the environment is sent only to its own vendor, to the address
that the environment sets for it, or to a host in UAMP_MODEL_ALLOW_HOSTS; a key stored in a row only
to the place it was entered for.
"""

import logging
import os
import socket
import ssl
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import aiohttp
import httpx
from aiohttp.abc import AbstractResolver, ResolveResult
from django.conf import settings

from agents_app.outbound.look_ups import look_up_async
from agents_app.outbound.rules import Policy, Target, Unreachable, check_addresses, check_url
from upp.providers.http.connections import certified, connector_with

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
"""The vendor's host for each key; keys with other names need the setting."""

_OPERATORS: Final = ("OPENAI", "ANTHROPIC", "GOOGLE")
_LOOK_UP_SECONDS: Final = 10.0


def target_of(base_url: str) -> Target:
    """Check the address of a row; raises Unreachable."""
    return check_url(base_url, _policy())


def listing_policy(seconds: float, max_bytes: int) -> Policy:
    """Return the same rules for a request that lists the models of a server."""
    return replace(_policy(), seconds=seconds, max_bytes=max_bytes)


def may_take(variable: str, address: str) -> bool:
    """Return whether the key in an environment variable may be sent to an address."""
    place, host = _place(address), host_of(address)
    named = place != "" and not _allowed().isdisjoint((place, f"{host}:*"))
    is_secure = address.lower().startswith("https:")
    return (
        (is_secure and VENDOR_HOSTS.get(variable) == host)
        or named
        or (place != "" and place == _place(_operators_address(variable.removesuffix("_API_KEY"))))
    )


def is_vendors(address: str) -> bool:
    """Return whether an address is a vendor's or the operator's, not one that an author runs."""
    place = _place(address)
    is_vendor = address.lower().startswith("https:") and host_of(address) in VENDOR_HOSTS.values()
    return is_vendor or (place != "" and place in map(_place, map(_operators_address, _OPERATORS)))


def place_of(address: str) -> str:
    """Return scheme, host and port of an address; "" for an invalid one."""
    place = _place(address)
    return f"{httpx.URL(address).scheme}://{place}" if place else ""


def host_of(address: str) -> str:
    """Return the host of an address; "" for an invalid one."""
    return _place(address).rpartition(":")[0]


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
    """Return host:port of an address, or '' if it is invalid."""
    try:
        url = httpx.URL(address)
        host = url.raw_host.decode("ascii").rstrip(".")
    except (httpx.InvalidURL, ValueError):
        return ""
    port = {"https": 443, "http": 80}.get(url.scheme, 0) if url.port is None else url.port
    return f"{host}:{port}" if host else ""


def guarded_connector(
    target: Target, *, tls: ssl.SSLContext | None = None
) -> aiohttp.BaseConnector:
    """Return a connector to one target for the running event loop.

    Each connection looks up the name and goes to the address that was checked, so that it cannot
    change in between. Proxies and certificates from the environment are ignored.
    """
    guard = _Guard(target)
    return connector_with(
        ssl=tls or certified(),
        resolver=guard,
        use_dns_cache=False,
        socket_factory=guard.open_socket,
    )


class _Guard(AbstractResolver):
    """Looks up one target and opens sockets to it; used by a single event loop."""

    def __init__(self, target: Target) -> None:
        self._target = target

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the addresses of the target; raises OSError if they are forbidden.

        aiohttp does not call this if the host is already an address.
        """
        try:
            if (host.rstrip("."), port) != (self._target.host, self._target.port):
                raise Unreachable(f"{host}:{port} is not {self._target.place}")  # noqa: TRY301 logged in one place
            dns_addresses = await look_up_async(host, port, _LOOK_UP_SECONDS)
            addresses = check_addresses(self._target, dns_addresses)
        except Unreachable as error:
            raise _refused(error) from error
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in addresses
            if family in {socket.AF_UNSPEC, socket.AF_INET6 if ":" in address else socket.AF_INET}
        ]

    async def close(self) -> None:
        """Do nothing: there are no resources to release."""

    def open_socket(self, info: tuple[Any, ...]) -> socket.socket:
        """Open the socket for one address of a new connection.

        Raises OSError if the address is forbidden.
        """
        family, kind, protocol, _, (address, port, *_) = info
        try:
            if port != self._target.port:
                raise Unreachable(f"port {port} is not {self._target.port}")  # noqa: TRY301 as above
            check_addresses(self._target, [address])
        except Unreachable as error:
            raise _refused(error) from error
        return socket.socket(family, kind, protocol)


def _refused(error: Unreachable) -> OSError:
    logger.warning("the model of an agent was not asked: %s", error.reason)
    return OSError(str(error))
