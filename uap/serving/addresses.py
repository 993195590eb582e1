"""Parsing of server addresses as people write them."""

from dataclasses import dataclass
from urllib.parse import urlsplit

_SCHEMES = {"ws": "http", "wss": "https", "http": "http", "https": "https"}
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


class NotAnAddress(ValueError):
    """This is not a server address; the message shows the expected format."""


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """The address of a server; `origin` and `socket` are http(s) URLs, the latter with its path."""

    origin: str
    socket: str
    is_exposed: bool
    """Whether data in transit, including tokens, can be read by others."""

    @property
    def display(self) -> str:
        """The address for display."""
        return self.origin


def read_address(text: str) -> ServerAddress:
    """Parse `wss://host/ws`, `https://host` or the like; the default path is /ws.

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
        raise NotAnAddress(
            "An address must not have a user name, query or fragment; pass the token as an option."
        )
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    origin = f"{scheme}://{host}" + (f":{port}" if port is not None else "")
    path = parts.path.rstrip("/") or "/ws"
    exposed = scheme == "http" and parts.hostname not in _LOOPBACK
    return ServerAddress(origin=origin, socket=f"{origin}{path}", is_exposed=exposed)
