"""The address of a server, as people write it."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class NotAnAddress(ValueError):
    """It is not the address of a server; the message says how one is written."""


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """`origin` and `socket` are http or https addresses, the latter with its path."""

    origin: str
    socket: str
    is_exposed: bool
    """Whether what is sent, tokens included, can be read on the way."""

    @property
    def shown(self) -> str:
        """The address as a person reads it."""
        return self.origin


def read_address(text: str) -> ServerAddress:
    """Return the address in `wss://host/ws`, `https://host` or the like; without a path it is /ws.

    Raises NotAnAddress.
    """
    try:
        parts = urlsplit(text.strip())
        port = parts.port
    except ValueError as error:
        raise NotAnAddress(f"{text!r} is not an address: {error}.") from None
    scheme = _SCHEMES.get(parts.scheme.lower())
    if scheme is None or not parts.hostname:
        raise NotAnAddress(f"{text!r} is not an address such as wss://chat.example.org.")
    if parts.username is not None or parts.query or parts.fragment:
        raise NotAnAddress("An address has no name, query or fragment; the token is an option.")
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    origin = f"{scheme}://{host}" + (f":{port}" if port is not None else "")
    path = parts.path.rstrip("/") or "/ws"
    exposed = scheme == "http" and parts.hostname not in _LOOPBACK
    return ServerAddress(origin=origin, socket=f"{origin}{path}", is_exposed=exposed)
