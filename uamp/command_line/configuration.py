"""Chooses the server and key: from options, the environment, or the saved servers.

Saved keys are in one file that only its owner may read. A saved key is sent only to the server that
it was saved for.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import msgspec

from uamp.client.client import DEFAULT_URL
from uamp.client.errors import InvalidRequestError

_ONLY_OWNER = 0o077


class SavedServer(msgspec.Struct, kw_only=True):
    """The address of a server and a key for it."""

    url: str
    key: str


class SavedServers(msgspec.Struct, kw_only=True):
    """The configuration file: servers by the names that the user chose, and the one in use."""

    current: str = ""
    servers: dict[str, SavedServer] = {}


def file_path() -> Path:
    """Return the path of the saved keys, under XDG_CONFIG_HOME or ~/.config."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "uamp" / "servers.json"


def load() -> SavedServers:
    """Load the saved servers; none if the file does not exist.

    Raises InvalidRequestError for a file that others may read, or that is malformed.
    """
    path = file_path()
    try:
        with path.open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            content = file.read()
    except FileNotFoundError:
        return SavedServers()
    if os.name == "posix" and mode & _ONLY_OWNER:
        raise InvalidRequestError(
            f"{path} contains keys, and other users can read it.",
            code="keys_readable",
            what_to_do=f"Run: chmod 600 {path}",
        )
    try:
        return msgspec.json.decode(content, type=SavedServers)
    except msgspec.DecodeError as error:
        raise InvalidRequestError(
            f"{path} is not a valid configuration file: {error}",
            code="keys_unreadable",
            what_to_do="Correct the file, or remove it and save the keys again.",
        ) from None


def save(saved: SavedServers) -> Path:
    """Replace the file atomically, with mode 0600, and return its path."""
    path = file_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Only its owner may read a file that `mkstemp` creates.
    handle, name = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.format(msgspec.json.encode(saved), indent=2) + b"\n")
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def key_for(url: str) -> str:
    """Return the key for a server, from the environment if UAMP_URL is it; empty if none is known.

    Raises InvalidRequestError for a configuration file that cannot be used.
    """
    key = os.environ.get("UAMP_KEY")
    address = os.environ.get("UAMP_URL") or DEFAULT_URL
    if key is not None and address.rstrip("/") == url.rstrip("/"):
        return key
    saved = load().servers.values()
    return next((server.key for server in saved if server.url.rstrip("/") == url.rstrip("/")), "")


def choose(*, url: str | None, name: str | None) -> SavedServer:
    """Return the server to use, given `--url` and `--server`; visitors have an empty key.

    Raises InvalidRequestError for a name that is not saved.
    """
    address = url or os.environ.get("UAMP_URL")
    key = os.environ.get("UAMP_KEY")
    if key is not None and name is None:
        return SavedServer(url=address or DEFAULT_URL, key=key)
    saved = load()
    if name is not None:
        if name not in saved.servers:
            raise InvalidRequestError(
                f"No server {name!r} is saved.",
                code="unknown_server",
                what_to_do="See `uamp keys list`, or save one with `uamp keys add`.",
            )
        return saved.servers[name]
    current = saved.servers.get(saved.current)
    if address is None:
        return current or SavedServer(url=DEFAULT_URL, key="")
    candidates = [current] if current else []
    for server in [*candidates, *saved.servers.values()]:
        if server.url.rstrip("/") == address.rstrip("/"):
            return server
    return SavedServer(url=address, key="")
