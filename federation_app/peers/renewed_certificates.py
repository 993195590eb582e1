"""Certificates in files that may be replaced while a process runs.

The tools that renew certificates replace two files, one after the other. A port looks at them when
a client connects, and uses a new pair once the key is that of the certificate; connections that are
open continue.
"""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from cryptography import x509
from cryptography.hazmat.primitives.serialization import load_pem_private_key

if TYPE_CHECKING:
    from collections.abc import Callable

logger = logging.getLogger(__name__)
T = TypeVar("T")

LOOK_SECONDS: Final = 5.0
"""How long the files are not looked at again."""


class PemPair(NamedTuple):
    """A certificate chain and its key, as PEM."""

    chain: bytes
    key: bytes


class RenewableCertificate:
    """The files of one port's certificate and key; any thread may call the methods."""

    def __init__(self, certificate: str, key: str) -> None:
        self._paths = Path(certificate), Path(key)
        self._lock = threading.Lock()
        self._versions = self._look()
        self._looked_at = time.monotonic()

    def pair(self) -> PemPair:
        """Read the files; raises OSError and ValueError."""
        chain, key = (path.read_bytes() for path in self._paths)
        certificates = x509.load_pem_x509_certificates(chain)
        try:
            public = load_pem_private_key(key, None).public_key()
        except TypeError:
            raise ValueError("the key is encrypted") from None
        if certificates[0].public_key() != public:
            raise ValueError("the key does not match the certificate")
        return PemPair(chain, key)

    def renewed(self, load: Callable[[PemPair], T]) -> T | None:
        """Return what `load` makes of a pair that is new since the last call; None without one.

        A pair that cannot be used is logged, and tried again once a file changes. `load` may raise
        OSError and ValueError, too.
        """
        with self._lock:
            if time.monotonic() - self._looked_at < LOOK_SECONDS:
                return None
            self._looked_at = time.monotonic()
            versions = self._look()
            if versions == self._versions:
                return None
            self._versions = versions
            try:
                loaded = load(self.pair())
            except (OSError, ValueError) as error:
                logger.warning("the new certificate %s is not used yet: %s", self._paths[0], error)
                return None
            logger.info("the new certificate %s is used from now on", self._paths[0])
            return loaded

    def _look(self) -> tuple[tuple[int, int, int], ...]:
        """Return what changes when a file is written or replaced."""
        versions = []
        for path in self._paths:
            try:
                file = path.stat()
            except OSError:
                versions.append((0, 0, 0))
            else:
                versions.append((file.st_ino, file.st_mtime_ns, file.st_size))
        return tuple(versions)
