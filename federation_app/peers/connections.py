"""The TLS settings of connections to peers (envelope §6.1).

Peers have certificates of public authorities, or those in UAMP_PEER_CA_FILE, which each process
reads once.
"""

from __future__ import annotations

import ssl
from functools import cache
from pathlib import Path
from typing import Final

import certifi
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

CA_BYTES: Final = 1024 * 1024


def tls() -> ssl.SSLContext:
    """Return the TLS 1.3 settings for servers of peers."""
    return _shared(settings.UAMP_PEER_CA_FILE, ssl.TLSVersion.TLSv1_3)


def negotiating_tls() -> ssl.SSLContext:
    """Return the same settings for a client that offers HTTP/2, which it writes into them."""
    return _negotiating(settings.UAMP_PEER_CA_FILE, ssl.TLSVersion.TLSv1_3)


def document_tls() -> ssl.SSLContext:
    """Return the TLS settings for documents of peers, which plain web servers may publish."""
    return _shared(settings.UAMP_PEER_CA_FILE, ssl.TLSVersion.TLSv1_2)


def roots() -> str:
    """Return the trusted certificates, as PEM."""
    return _roots(settings.UAMP_PEER_CA_FILE)


def read_certificates(path: str) -> str:
    """Return the certificates in a PEM file; raises ImproperlyConfigured."""
    try:
        with Path(path).open("rb") as file:
            raw = file.read(CA_BYTES + 1)
    except OSError as error:
        raise _unusable(path, f"it cannot be read ({error.strerror})") from None
    if len(raw) > CA_BYTES:
        raise _unusable(path, f"it has more than {CA_BYTES} bytes")
    try:
        certificates = x509.load_pem_x509_certificates(raw)
    except ValueError:
        raise _unusable(path, "it has no certificates, or a damaged one") from None
    return "".join(_pem(certificate) for certificate in certificates)


def _context(path: str, minimum: ssl.TLSVersion) -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=_roots(path))
    context.minimum_version = minimum
    return context


_shared: Final = cache(_context)
_negotiating: Final = cache(_context)


@cache
def _roots(path: str) -> str:
    public = Path(certifi.where()).read_text("ascii")
    return f"{public}\n{read_certificates(path)}" if path else public


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _unusable(path: str, reason: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"UAMP_PEER_CA_FILE is {path}: {reason}.")
