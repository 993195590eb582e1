"""The rules for outbound addresses named by a model, a page, a message or a row.

These functions only decide. `check_url` checks the URL as written, `check_addresses` the IP
addresses of its host; `agents_app.outbound.guard` connects if both allow it.
"""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

import httpx
from django.conf import settings
from django.http.request import validate_host

URL_CHARS = 2048
PORTS = frozenset({443, 8443})

# The only part of IPv6 allocated for public use. Every other way to embed an IPv4 address (mapped,
# compatible, NAT64) and all local addresses lie outside.
_PUBLIC_V6 = ipaddress.ip_network("2000::/3")
# Ranges that `ipaddress` considers global in some Python version but that must not be reached.
_DENIED = tuple(
    ipaddress.ip_network(network)
    for network in (
        "192.0.0.0/24",  # IETF protocols; one cloud's metadata
        "192.88.99.0/24",  # 6to4 relays
        "168.63.129.16/32",  # another cloud's metadata
        "2001::/23",  # IETF protocols: Teredo embeds IPv4 addresses
        "2002::/16",  # 6to4 embeds them too
        "3fff::/20",  # documentation
    )
)


class Unreachable(Exception):
    """The address is forbidden or gave no sensible response; `reason` is for the log only.

    The message is always the same: any other would reveal what is behind the firewall.
    """

    def __init__(self, reason: str) -> None:
        super().__init__("The address cannot be reached.")
        self.reason = reason


class Cleartext(Enum):
    """The `allowed` hosts of a policy that may be asked over plain http."""

    ALLOWED = auto()
    LOOPBACK = auto()
    NONE = auto()


@dataclass(frozen=True, kw_only=True)
class Policy:
    """The limits of an outbound request: where it may go, and how much may come back.

    `allowed` are "host:port" or "host:*" that may be private, and plain http within `cleartext`;
    `own_hosts` are names of this server, in the form of ALLOWED_HOSTS, that are never asked unless
    they are allowed.
    """

    allowed: frozenset[str] = frozenset()
    cleartext: Cleartext = Cleartext.ALLOWED
    own_hosts: tuple[str, ...] = ()
    seconds: float = 10
    max_bytes: int = 5 * 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Target:
    """A URL that may be requested, provided that its IP addresses may be, too.

    `is_loopback` demands that all of them are loopback addresses.
    """

    url: httpx.URL
    host: str
    port: int
    is_allowed: bool
    is_loopback: bool = False

    @property
    def place(self) -> str:
        """Scheme, host and port: the scope of credentials."""
        return f"{self.url.scheme}://{self.host}:{self.port}"


def current_policy() -> Policy:
    """Return the policy from the settings."""
    return Policy(
        allowed=frozenset(name.lower() for name in settings.UAMP_FETCH_ALLOW_HOSTS),
        own_hosts=tuple(name for name in settings.ALLOWED_HOSTS if name != "*"),
        seconds=settings.UAMP_FETCH_SECONDS,
        max_bytes=settings.UAMP_FETCH_BYTES,
    )


def check_url(text: str, policy: Policy) -> Target:
    """Parse and check a URL; raises Unreachable if it is forbidden."""
    if len(text) > URL_CHARS:
        raise Unreachable(f"the URL has {len(text)} characters")
    try:
        url = httpx.URL(text)
        host = url.raw_host.decode("ascii").rstrip(".")
    except (httpx.InvalidURL, ValueError) as error:
        raise Unreachable(f"this is not a URL: {error}") from error
    port = {"https": 443, "http": 80}.get(url.scheme, 0) if url.port is None else url.port
    is_allowed = not policy.allowed.isdisjoint((f"{host}:{port}", f"{host}:*"))
    if not host:
        raise Unreachable("the URL has no host")
    if url.userinfo:
        raise Unreachable("the URL has user information")
    if url.fragment:
        raise Unreachable("the URL has a fragment")
    is_cleartext = is_allowed and policy.cleartext is not Cleartext.NONE and url.scheme == "http"
    if url.scheme != "https" and not is_cleartext:
        raise Unreachable(f"{url.scheme!r} is not https")
    if not is_allowed:
        if port not in PORTS:
            raise Unreachable(f"port {port} is not one of {sorted(PORTS)}")
        if validate_host(host, policy.own_hosts):
            raise Unreachable(f"{host} is this server")
    return Target(
        url=url,
        host=host,
        port=port,
        is_allowed=is_allowed,
        is_loopback=is_cleartext and policy.cleartext is Cleartext.LOOPBACK,
    )


def check_addresses(target: Target, addresses: Sequence[str]) -> Sequence[str]:
    """Return the addresses of a target; raises Unreachable if one of them is forbidden."""
    if not addresses:
        raise Unreachable(f"{target.host} has no address")
    for address in addresses:
        if target.is_loopback and not ipaddress.ip_address(address).is_loopback:
            raise Unreachable(f"{target.host} leads to {address}, which needs TLS")
        if not target.is_allowed and not is_public(address):
            raise Unreachable(f"{target.host} leads to {address}")
    return addresses


def is_public(address: str) -> bool:
    """Return whether an IP address belongs to the public internet."""
    ip = ipaddress.ip_address(address)
    if isinstance(ip, ipaddress.IPv6Address) and ip not in _PUBLIC_V6:
        return False
    return (
        ip.is_global
        and not ip.is_multicast
        and not any(ip in network for network in _DENIED if network.version == ip.version)
    )
