"""Serving peers with TLS, in `peers` and in `serve`: where, and with which certificate."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from django.conf import settings
from django.core.management.base import CommandError

from federation_app.peers import own_certificate
from uamp_project import health
from uamp_project.management.listening import PORT_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from uamp_project.servers.peer_ports.hypercorn_server import PeerPorts

HYPERCORN: Final = "0.18."
"""The beginning of the versions whose defects `servers.peer_ports` works around."""
_INSTALL: Final = 'Run pip install "uamp-server[peers]" first.'
_ADDRESS: Final = re.compile(r"(?:(?P<host>[^\s:\[\]]+|\[[0-9A-Fa-f:.]+\]):)?(?P<port>[0-9]{1,5})")


class CertificatePair(NamedTuple):
    """The files of a certificate and of its key."""

    certificate: str
    key: str


class PeersEndpoint(NamedTuple):
    """The address at which a process serves peers, as `host:port`, and its certificate."""

    address: str
    pair: CertificatePair


def peers_address(options: Mapping[str, Any]) -> str:
    """Return the address to listen at for peers, as `host:port`, or "". Raises CommandError.

    An address without a host has that of the web server.
    """
    text: str = settings.UAMP_PEERS_ADDRESS if options["peers"] is None else options["peers"]
    if not text:
        return ""
    match = _ADDRESS.fullmatch(text)
    if match is None or int(match["port"]) > PORT_LIMIT:
        raise CommandError(
            f"{text!r} is not an address for peers: use a port such as 8443, or HOST:PORT"
            " (--peers, UAMP_PEERS_ADDRESS)"
        )
    host = match["host"] or options["host"]
    host = f"[{host}]" if ":" in host and not host.startswith("[") else host
    return f"{host}:{match['port']}"


def require_hypercorn() -> None:
    """Raise CommandError unless the extra `peers` is installed, in the right version."""
    if any(importlib.util.find_spec(name) is None for name in ("hypercorn", "aioquic")):
        raise CommandError(_INSTALL)
    version = importlib.metadata.version("hypercorn")
    if not version.startswith(HYPERCORN):
        raise CommandError(
            f"Hypercorn {version} is installed, and this server needs {HYPERCORN}x. {_INSTALL}"
        )


def certificate_pair(certificate: str, key: str, say: Callable[[str], object]) -> CertificatePair:
    """Return the configured files, or those of the server's own certificate.

    `say` gets the fingerprint of the latter. Raises CommandError if the files cannot be used.
    """
    if not certificate and not key:
        return _own_pair(say)
    for name, path in (("certificate", certificate), ("key", key)):
        if not path:
            raise CommandError(
                f"There is no {name} for peers: set --{name} or UAMP_PEERS_{name.upper()}, or leave"
                " out both files for a certificate of the server's own."
            )
        if not Path(path).is_file():
            raise CommandError(f"There is no file {path}: check --{name}.")
    return CertificatePair(certificate, key)


def settings_pair(say: Callable[[str], object]) -> CertificatePair:
    """Return the files in the settings, or those of the server's own certificate.

    See `certificate_pair`.
    """
    return certificate_pair(settings.UAMP_PEERS_CERTIFICATE, settings.UAMP_PEERS_KEY, say)


def open_ports(
    application: Any, endpoint: PeersEndpoint, failed: Callable[[str], object]
) -> PeerPorts:
    """Return the ports for peers of this process, which is unready until they are open.

    `failed` gets the reason if they end early.
    """
    from federation_app.rpc.server import EnvelopeServer  # noqa: PLC0415 as below
    from uamp_project.servers.peer_ports import hypercorn_server  # noqa: PLC0415 Hypercorn is optional

    EnvelopeServer.peers_certificate = endpoint.pair
    config = hypercorn_server.configured(
        endpoint.address, certificate=endpoint.pair.certificate, key=endpoint.pair.key
    )
    ports = hypercorn_server.PeerPorts(
        application, config, lambda error: failed(f"the ports for peers have closed: {error!r}")
    )
    health.also_requires("peers", lambda: ports.is_listening)
    return ports


def _own_pair(say: Callable[[str], object]) -> CertificatePair:
    try:
        files = own_certificate.prepare()
    except own_certificate.UnusableCertificate as error:
        raise CommandError(str(error)) from error
    if files.previous is not None:
        say(
            "Created a new certificate for peers, because the previous one was about to expire or"
            f" lacked a name of this server ({files.previous}). Peers refuse this server until they"
            " have the new copy in UAMP_PEER_CA_FILE."
        )
    elif files.is_new:
        say(
            "Created a certificate for peers. Operators of other servers put a copy of it in"
            " UAMP_PEER_CA_FILE."
        )
    say(f"Certificate for peers: {files.certificate}, SHA-256 {files.fingerprint}")
    return CertificatePair(str(files.certificate), str(files.key))
