"""The TLS certificate that this server makes for itself, in DATA_DIR/peers.

It signs itself and is no authority, so that a peer which trusts it trusts the names in it and no
others. Its key stays when the certificate is renewed.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple
from urllib.parse import urlsplit

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import (
    SECP256R1,
    EllipticCurvePrivateKey,
    generate_private_key,
)
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID
from django.conf import settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

FOLDER: Final = "peers"
VALID: Final = timedelta(days=3650)
RENEWED: Final = timedelta(days=30)
"""A certificate that is valid for no longer than this is replaced at the next start."""
_EARLY: Final = timedelta(minutes=5)
_ALWAYS: Final = ("localhost", "127.0.0.1", "::1")
_MAX_NAMES: Final = 100
_NAME_CHARS: Final = 253
_SUBJECT_CHARS: Final = 64

Name = x509.DNSName | x509.IPAddress


class UnusableCertificate(Exception):
    """The files of the certificate cannot be used; the message says what to do."""


class CertificateFiles(NamedTuple):
    """A certificate and its key, as PEM files; `fingerprint` is SHA-256 in hexadecimal digits.

    `previous` is a copy of the certificate that a new one has just replaced.
    """

    certificate: Path
    key: Path
    fingerprint: str
    is_new: bool
    previous: Path | None = None


def prepare() -> CertificateFiles:
    """Return the server's own certificate, made or renewed if needed; raises UnusableCertificate.

    Processes that start at the same moment agree on one.
    """
    folder = Path(settings.DATA_DIR) / FOLDER
    paths = folder / "certificate.pem", folder / "key.pem"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _alone(folder / "lock"):
            key = _key(*paths)
            stored = _certificate(paths[0], key)
            previous: Path | None = None
            if stored is not None and not _is_outdated(stored):
                certificate = stored
            else:
                if stored is not None:
                    previous = folder / "certificate.previous.pem"
                    _write(previous, stored.public_bytes(Encoding.PEM))
                certificate = _made(key, _names_for(stored))
                _write(paths[0], certificate.public_bytes(Encoding.PEM))
    except OSError as error:
        raise UnusableCertificate(
            f"{error.filename or folder}: {error.strerror}. The certificate for peers is stored"
            " there: make the user of the server its owner."
        ) from error
    fingerprint = certificate.fingerprint(SHA256()).hex(":").upper()
    return CertificateFiles(
        *paths, fingerprint, is_new=certificate is not stored, previous=previous
    )


def own_names() -> list[str]:
    """Return the host names and addresses of this server, the public one first."""
    hosts = [
        urlsplit(f"//{settings.UAMP_FEDERATION_HOST}").hostname,
        urlsplit(settings.UAMP_ISSUER).hostname,
        *(host.strip("[]") for host in settings.ALLOWED_HOSTS if host != "*"),
        *_ALWAYS,
    ]
    names = [f"*{host}" if host.startswith(".") else host for host in hosts if host]
    listed = [str(name.value) for text in names if (name := _general_name(text)) is not None]
    return list(dict.fromkeys(listed))[:_MAX_NAMES]


def _general_name(text: str) -> Name | None:
    """Return a name for a certificate; None if it cannot be in one."""
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        is_name = text.isascii() and len(text) <= _NAME_CHARS
        return x509.DNSName(text.lower()) if is_name else None


def _key(certificate: Path, path: Path) -> EllipticCurvePrivateKey:
    """Return the stored key, made if neither file exists yet."""
    if not path.exists():
        if certificate.exists():
            raise UnusableCertificate(
                f"{path} is missing, the key of {certificate}. Restore it, or delete the"
                " certificate: the next start makes both, and peers need the new certificate."
            )
        key = generate_private_key(SECP256R1())
        _write(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return key
    try:
        stored = load_pem_private_key(path.read_bytes(), None)
    except (ValueError, TypeError) as error:
        raise _damaged(path, certificate, path) from error
    if not isinstance(stored, EllipticCurvePrivateKey):
        raise _damaged(path, certificate, path)
    return stored


def _certificate(path: Path, key: EllipticCurvePrivateKey) -> x509.Certificate | None:
    """Return the stored certificate; None if there is none."""
    if not path.exists():
        return None
    try:
        stored = x509.load_pem_x509_certificate(path.read_bytes())
        is_own = stored.public_key() == key.public_key()
    except ValueError as error:
        raise _damaged(path, path) from error
    if not is_own:
        raise _damaged(path, path)
    return stored


def _is_outdated(stored: x509.Certificate) -> bool:
    """Return whether a certificate ends soon, or lacks a name of the server."""
    ends_soon = stored.not_valid_after_utc - datetime.now(UTC) <= RENEWED
    return ends_soon or not set(own_names()) <= set(_names_in(stored))


def _names_for(stored: x509.Certificate | None) -> list[str]:
    """Return the names of a new certificate: those of the server, and then the earlier ones.

    Peers may still use an earlier name.
    """
    earlier = _names_in(stored) if stored is not None else []
    return list(dict.fromkeys([*own_names(), *earlier]))[:_MAX_NAMES]


def _names_in(certificate: x509.Certificate) -> list[str]:
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (x509.ExtensionNotFound, ValueError):
        return []
    return [
        *names.get_values_for_type(x509.DNSName),
        *map(str, names.get_values_for_type(x509.IPAddress)),
    ]


def _made(key: EllipticCurvePrivateKey, names: Iterable[str]) -> x509.Certificate:
    """Return a certificate of these names, the first of which is its subject."""
    listed = list(names)
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, listed[0][:_SUBJECT_CHARS])])
    now = datetime.now(UTC)
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=False,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )
    alternatives = [name for text in listed if (name := _general_name(text)) is not None]
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLY)
        .not_valid_after(now - _EARLY + VALID)
        .add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(identifier, critical=False)
        .sign(key, SHA256())
    )


def _write(path: Path, data: bytes) -> None:
    """Write a file whole, only for this user."""
    draft = path.with_suffix(".draft")
    # An interrupted start may have left one, and only the holder of the lock writes.
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Let one process at a time write the files."""
    with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT, 0o600), "w") as file:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
        yield


def _damaged(path: Path, *files: Path) -> UnusableCertificate:
    names = " and ".join(str(file) for file in files)
    return UnusableCertificate(
        f"{path} is damaged, or does not belong to the other file beside it. Restore it from a"
        f" backup, or delete {names}: the next start makes a new certificate, which peers need."
    )
