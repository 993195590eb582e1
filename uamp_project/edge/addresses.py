"""The address under which a connection is counted.

Any client can send X-Forwarded-For, so it counts only on connections from a proxy in
UAMP_TRUSTED_PROXIES, and then the last address in it that is not such a proxy. This overrides the
server's own interpretation of the header (uvicorn trusts it from 127.0.0.1). The same proxies may
name the client's certificate, in UAMP_CLIENT_CERTIFICATE_HEADER.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

from sessions_app.access.auth import CERTIFICATE_KEY

if TYPE_CHECKING:
    from uamp_project.edge.transports import Scope, Transport

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def client_address(scope: Scope, transport: Transport) -> str:
    """Return the client's address, and store it in the scope."""
    client = scope.get("client") or ("", 0)
    peer = transport.peer()
    address = str(client[0]) if peer is None else peer
    trusted = tuple(settings.UAMP_TRUSTED_PROXIES)
    if trusted and _is_trusted(address, trusted):
        address = _forwarded(scope, trusted) or address
        scope[CERTIFICATE_KEY] = _certified(scope)
    if address != client[0]:
        scope["client"] = (address, 0)
    return address


def _certified(scope: Scope) -> str:
    """Return the name in the client's certificate, which the proxy verified; '' for none."""
    header = settings.UAMP_CLIENT_CERTIFICATE_HEADER.lower().encode()
    values = [value for name, value in scope["headers"] if name.lower() == header]
    return values[0].decode("latin-1") if header and len(values) == 1 else ""


def _forwarded(scope: Scope, trusted: tuple[str, ...]) -> str:
    values = [value for name, value in scope["headers"] if name.lower() == b"x-forwarded-for"]
    client = ""
    for item in reversed(b",".join(values).decode("latin-1").split(",")):
        address = _address(item.strip())
        if not address:
            break
        client = address
        if not _is_trusted(address, trusted):
            break
    return client


def _address(text: str) -> str:
    """Return an address without its port; '' if it is not an address."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return str(ipaddress.ip_address(text))
    except ValueError:
        return ""


def _is_trusted(address: str, trusted: tuple[str, ...]) -> bool:
    if not address:
        return "unix" in trusted
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in _networks(trusted))


@lru_cache(maxsize=8)
def _networks(trusted: tuple[str, ...]) -> tuple[_Network, ...]:
    return tuple(
        ipaddress.ip_network(item.strip(), strict=False)
        for item in trusted
        if item.strip() != "unix"
    )
