"""The TLS settings of connections to peers (envelope §6.1)."""

from __future__ import annotations

import ssl
from functools import cache

import certifi


@cache
def tls() -> ssl.SSLContext:
    """Return the TLS 1.3 settings for servers with public certificates (envelope §6.1)."""
    return _tls_1_3()


@cache
def negotiating_tls() -> ssl.SSLContext:
    """Return the same settings for a client that offers HTTP/2, which it writes into them."""
    return _tls_1_3()


def _tls_1_3() -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=certifi.where())
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context
