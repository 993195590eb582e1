"""The server's own keys, with which it signs payment tokens, access tokens and webhooks.

They are PEM files. The first key signs, all of them verify: to rotate, put a new key in front, and
remove the old one when its tokens have expired. UAMP_SIGNING_KEYS names the files; without it a key
is created in DATA_DIR/signing_keys on first use, and the file whose name sorts last signs.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from signing_app.keys import SigningKey, UnusableKey, new_key, read_key


def server_keys() -> tuple[SigningKey, ...]:
    """Return the keys, the signing one first. Raises OSError and ValueError for a bad file."""
    paths = [Path(path) for path in settings.UAMP_SIGNING_KEYS]
    if not paths:
        paths = key_files() or [_first_key(_folder())]
    # A changed file is read again, so that rotation needs no restart.
    return _load(tuple((str(path), path.stat().st_mtime_ns) for path in paths))


def key_files() -> list[Path]:
    """Return the key files in DATA_DIR, the signing one first."""
    return sorted(_folder().glob("*.pem"), reverse=True)


def server_key(kid: str) -> SigningKey | None:
    """Return the key of an id, or None."""
    return next((key for key in server_keys() if key.kid == kid), None)


def _folder() -> Path:
    return Path(settings.DATA_DIR) / "signing_keys"


@lru_cache(maxsize=4)
def _load(files: tuple[tuple[str, int], ...]) -> tuple[SigningKey, ...]:
    return tuple(_read(Path(path)) for path, _ in files)


def _read(path: Path) -> SigningKey:
    try:
        return read_key(path.read_bytes())
    except ValueError as error:
        raise UnusableKey(f"{path}: {error}") from None


def _first_key(folder: Path) -> Path:
    """Create the first key, written aside and then linked so that two processes agree on one."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{datetime.now(UTC):%Y}-first.pem"
    draft = folder / f"draft.{os.getpid()}"
    draft.touch(mode=0o600)
    draft.write_bytes(new_key("RS256").pem)
    try:
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        draft.unlink()
    return path
