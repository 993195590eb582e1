"""The address of a client behind trusted proxies.

Any client can send X-Forwarded-For, so it counts only on connections from a proxy in
UAMP_TRUSTED_PROXIES, and then the last address in it that is not such a proxy.
"""

from __future__ import annotations

import ipaddress
from functools import lru_cache
from typing import TYPE_CHECKING

from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterable

_Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def is_trusted_proxy(peer: str) -> bool:
    """Return whether a connection's peer is a trusted proxy; '' is that of a local socket."""
    trusted = tuple(settings.UAMP_TRUSTED_PROXIES)
    if not peer:
        return "unix" in trusted
    try:
        parsed = ipaddress.ip_address(peer)
    except ValueError:
        return False
    return any(parsed in network for network in _networks(trusted))


def forwarded_address(values: Iterable[str]) -> str:
    """Return the client's address from X-Forwarded-For, as a trusted proxy sent it.

    Returns '' if the proxy named no address.
    """
    client = ""
    for item in reversed(",".join(values).split(",")):
        address = _address(item.strip())
        if not address:
            break
        client = address
        if not is_trusted_proxy(address):
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


@lru_cache(maxsize=8)
def _networks(trusted: tuple[str, ...]) -> tuple[_Network, ...]:
    return tuple(
        ipaddress.ip_network(item.strip(), strict=False)
        for item in trusted
        if item.strip() != "unix"
    )
