"""The address under which a connection is counted.

It is that of `sessions_app.proxies`, and overrides the server's own interpretation of
X-Forwarded-For (uvicorn trusts it from 127.0.0.1). The same proxies may name the client's
certificate, in UAMP_CLIENT_CERTIFICATE_HEADER. With HTTPS on, they have to name the scheme.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from django.conf import settings

from sessions_app.access.auth import CERTIFICATE_KEY
from sessions_app.proxies import forwarded_address, is_trusted_proxy

if TYPE_CHECKING:
    from uamp_project.edge.transports import Scope, Transport

LACKS_SCHEME: Final = "uamp.lacks_scheme"
"""The key in the scope of a request whose proxy does not name the scheme that its client used."""


def client_address(scope: Scope, transport: Transport) -> str:
    """Return the client's address, and store it in the scope."""
    client = scope.get("client") or ("", 0)
    peer = transport.peer()
    address = str(client[0]) if peer is None else peer
    if is_trusted_proxy(address):
        address = forwarded_address(_values(scope, b"x-forwarded-for")) or address
        scope[CERTIFICATE_KEY] = _certified(scope)
        scope[LACKS_SCHEME] = (
            settings.HTTPS
            and scope.get("scheme") == "http"
            and not _values(scope, b"x-forwarded-proto")
        )
    if address != client[0]:
        scope["client"] = (address, 0)
    return address


def _certified(scope: Scope) -> str:
    """Return the name in the client's certificate, which the proxy verified; '' for none."""
    header = settings.UAMP_CLIENT_CERTIFICATE_HEADER.lower().encode()
    values = _values(scope, header)
    return values[0] if header and len(values) == 1 else ""


def _values(scope: Scope, header: bytes) -> list[str]:
    return [value.decode("latin-1") for name, value in scope["headers"] if name.lower() == header]
