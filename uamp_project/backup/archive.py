"""The backup file: a tar archive whose last member describes all the others.

`manifest.json` contains the time, the database's migrations, and the size and SHA-256 of each file.
A truncated file has no manifest, and an altered one does not match it.
"""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from typing import IO, TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

MANIFEST: Final = "manifest.json"
FORMAT: Final = 1
_CHUNK: Final = 1024 * 1024


class ArchiveError(Exception):
    """The file is not a complete backup of this server; the text says why."""


class FileEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One file of a backup."""

    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The contents of a backup. `made_at` is Unix time in seconds; migrations are `app.name`."""

    format: int
    made_at: int
    migrations: list[str]
    files: dict[str, FileEntry]


def write_archive(
    to: Path,
    files: Iterable[tuple[str, Callable[[], IO[bytes]]]],
    *,
    made_at: int,
    migrations: list[str],
) -> Manifest:
    """Write files under their names, each opened when it is its turn.

    The archive gets its final name once complete, and is deleted if it cannot be completed.

    A file that vanishes meanwhile is skipped, because its content was deleted.
    """
    partial = to.with_name(to.name + ".partial")
    with partial.open("xb") as file:
        try:
            partial.chmod(0o600)
            manifest = _write(file, files, made_at, migrations)
            # What is still buffered may find the disk full.
            file.flush()
        except BaseException:
            partial.unlink()
            raise
    partial.rename(to)
    return manifest


def _write(
    file: IO[bytes],
    files: Iterable[tuple[str, Callable[[], IO[bytes]]]],
    made_at: int,
    migrations: list[str],
) -> Manifest:
    entries: dict[str, FileEntry] = {}
    with tarfile.open(fileobj=file, mode="w") as archive:
        for name, opened in files:
            try:
                source = opened()
            except FileNotFoundError:
                continue
            with source:
                entries[name] = _add(archive, name, source, made_at)
        manifest = Manifest(format=FORMAT, made_at=made_at, migrations=migrations, files=entries)
        text = msgspec.json.format(msgspec.json.encode(manifest))
        member = tarfile.TarInfo(MANIFEST)
        member.size, member.mode = len(text), 0o600
        archive.addfile(member, io.BytesIO(text))
    return manifest


def _add(archive: tarfile.TarFile, name: str, source: IO[bytes], made_at: int) -> FileEntry:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = source.seek(0, os.SEEK_END), 0o600, made_at
    source.seek(0)
    reader = _HashedReader(source)
    archive.addfile(member, reader)
    return FileEntry(size=member.size, sha256=reader.sha256.hexdigest())


class _HashedReader(io.RawIOBase):
    """A file that is hashed as it is read."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.sha256 = hashlib.sha256()

    def read(self, size: int = -1) -> bytes:
        """Read the next bytes."""
        data = self._source.read(size)
        self.sha256.update(data)
        return data


def extract_archive(archive: Path, into: Path) -> Manifest:
    """Extract a backup into an empty folder, verifying each file against the manifest.

    Raises ArchiveError if the file is not a backup, is truncated or altered, or contains a name
    that leads out of the folder.
    """
    if not archive.is_file():
        raise ArchiveError(f"There is no file {archive}.")
    try:
        with tarfile.open(archive) as opened:
            opened.extractall(into, filter="data")
        manifest = msgspec.json.decode((into / MANIFEST).read_bytes(), type=Manifest)
    except FileNotFoundError as error:
        raise ArchiveError(f"{archive} is incomplete: it has no {MANIFEST}.") from error
    except (tarfile.TarError, msgspec.DecodeError, EOFError) as error:
        # Python lists on further lines which compressions it tried.
        reason = str(error).partition(":\n")[0]
        raise ArchiveError(f"{archive} is not a readable backup: {reason}.") from error
    if manifest.format != FORMAT:
        raise ArchiveError(
            f"{archive} has backup format {manifest.format}; this version reads format {FORMAT}."
            " Restore it with the version that created it."
        )
    paths = {
        path.relative_to(into).as_posix()
        for path in into.rglob("*")
        if path.is_file() and path.name != MANIFEST
    }
    if paths != set(manifest.files):
        raise ArchiveError(f"{archive} does not have the files that its {MANIFEST} lists.")
    for name, entry in manifest.files.items():
        path = into / name
        if path.stat().st_size != entry.size or _sha256(path) != entry.sha256:
            raise ArchiveError(f"{name} in {archive} was changed.")
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
