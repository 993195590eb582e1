"""Stores for agent states, from which a later run can continue (UAP §12.2-12.4).

A checkpoint is the whole state of a session as JSON; only the latest is kept. Saving is the run's
duty, but never makes it fail: errors of a store are logged.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote, unquote
from uuid import uuid4

import msgspec

from uap.state import AgentState

logger = logging.getLogger(__name__)


class CheckpointMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A checkpoint without its state; each save creates a new `checkpoint_id`."""

    session_id: str
    checkpoint_id: str
    timestamp: datetime
    step: int
    agent_id: str


class CheckpointStore(Protocol):
    """Keeps the latest state of each session (UAP §12.2), in the format of `to_json()`."""

    async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
        """Save a state, replacing the session's previous one."""

    async def load(self, session_id: str) -> dict[str, Any] | None:
        """Return the session's state, or None if it is missing or unreadable."""

    async def load_metadata(self, session_id: str) -> CheckpointMetadata | None:
        """Return the metadata of the session's checkpoint, or None."""

    async def delete(self, session_id: str) -> None:
        """Delete a session; unknown sessions are ignored."""

    async def list(self) -> Sequence[str]:
        """Return the ids of all sessions."""


def metadata_of(session_id: str, state: Mapping[str, Any]) -> CheckpointMetadata:
    """Create the metadata of a new checkpoint."""
    return CheckpointMetadata(
        session_id=session_id,
        checkpoint_id=str(uuid4()),
        timestamp=datetime.now(UTC),
        step=state["step"],
        agent_id=state["metadata"].get("agentId", "unknown"),
    )


def check_session_id(session_id: Any) -> None:
    """Raise ValueError unless a session id is a non-empty, valid Unicode string.

    Checked before a run begins, because a run does not fail if a checkpoint cannot be saved.
    """
    if not isinstance(session_id, str) or not session_id:
        raise ValueError(f"A session_id must be a non-empty, valid string, not {session_id!r}.")
    session_id.encode()


class Checkpointer:
    """Saves the states of one run, in order.

    Only the run's task calls it. Each save is a task that even a cancelled run waits for.
    """

    def __init__(self, store: CheckpointStore | None, session_id: str | None) -> None:
        self._store = store
        self._session_id = session_id
        self._saved: str | None = None

    async def save(self, state: AgentState) -> None:
        """Save a state unless it was the last one saved; never raises errors of the store.

        A save that has begun is completed even if the run is cancelled in the meantime.
        """
        store, session_id = self._store, self._session_id
        if store is None or session_id is None or state.id == self._saved:
            return
        self._saved = state.id
        await self._finish(
            lambda: store.save(session_id, state.to_json()),
            "the checkpoint of session %s could not be saved",
        )

    async def forget(self) -> None:
        """Delete the session's checkpoint; never raises errors of the store."""
        store, session_id = self._store, self._session_id
        if store is not None and session_id is not None:
            await self._finish(
                lambda: store.delete(session_id),
                "the checkpoint of session %s could not be deleted",
            )

    async def _finish(self, work: Callable[[], Awaitable[None]], failure: str) -> None:
        async def logged() -> None:
            try:
                await work()
            except (Exception, asyncio.CancelledError):
                logger.exception(failure, self._session_id)

        finishing = asyncio.ensure_future(logged())
        try:
            # Unlike a shield, this raises nothing from the store, not even a cancellation.
            await asyncio.wait({finishing})
        except asyncio.CancelledError:
            await asyncio.wait({finishing})
            raise


def memory_checkpoints() -> CheckpointStore:
    """Return a store that lasts as long as the process."""
    return _MemoryCheckpoints()


class _MemoryCheckpoints:
    def __init__(self) -> None:
        self._saved: dict[str, tuple[bytes, CheckpointMetadata]] = {}

    async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
        self._saved[session_id] = msgspec.json.encode(state), metadata_of(session_id, state)

    async def load(self, session_id: str) -> dict[str, Any] | None:
        saved = self._saved.get(session_id)
        return msgspec.json.decode(saved[0], type=dict[str, Any]) if saved else None

    async def load_metadata(self, session_id: str) -> CheckpointMetadata | None:
        saved = self._saved.get(session_id)
        return saved[1] if saved else None

    async def delete(self, session_id: str) -> None:
        self._saved.pop(session_id, None)

    async def list(self) -> Sequence[str]:
        return tuple(self._saved)


class Cipher(Protocol):
    """Encrypts data on disk; `cryptography.fernet.Fernet` is an implementation."""

    def encrypt(self, data: bytes) -> bytes:
        """Return the encrypted data."""

    def decrypt(self, token: bytes) -> bytes:
        """Return the decrypted data; raises if it was not encrypted with the same key."""


def file_checkpoints(
    directory: str | os.PathLike[str] = ".checkpoints", *, cipher: Cipher | None = None
) -> CheckpointStore:
    """Return a store of files (UAP §12.4): DIRECTORY/SESSION/checkpoint.json and metadata.json.

    Only their owner may read the files; a `cipher` also encrypts them (UAP §15.3). SESSION is the
    session id with characters that file names cannot contain percent-encoded, or a hash if that
    would be too long. An invalid session id raises ValueError.
    """
    return _FileCheckpoints(Path(directory), cipher)


_HASHED = "%sha256-"
"""The prefix of hashed names; no percent-encoded id starts with it."""
_NAME_BYTES = 255
"""The longest file name that common systems accept."""


class _FileCheckpoints:
    def __init__(self, directory: Path, cipher: Cipher | None) -> None:
        self._directory = directory
        self._cipher = cipher

    async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
        await asyncio.to_thread(self._save, session_id, dict(state))

    async def load(self, session_id: str) -> dict[str, Any] | None:
        path = self._folder(session_id) / "checkpoint.json"
        return await asyncio.to_thread(self._read, path, dict[str, Any])

    async def load_metadata(self, session_id: str) -> CheckpointMetadata | None:
        path = self._folder(session_id) / "metadata.json"
        return await asyncio.to_thread(self._read, path, CheckpointMetadata)

    async def delete(self, session_id: str) -> None:
        # If deletion fails, the data is still there and the caller has to know.
        with suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.rmtree, self._folder(session_id))

    async def list(self) -> Sequence[str]:
        return await asyncio.to_thread(self._list)

    def _list(self) -> Sequence[str]:
        paths = sorted(self._directory.glob("*/checkpoint.json"))
        session_ids = [self._session_of(path.parent) for path in paths]
        return [session_id for session_id in session_ids if session_id is not None]

    def _session_of(self, folder: Path) -> str | None:
        """Return a folder's session id; None if it is hashed and its metadata is unreadable."""
        if not folder.name.startswith(_HASHED):
            return unquote(folder.name)
        metadata: CheckpointMetadata | None = self._read(
            folder / "metadata.json", CheckpointMetadata
        )
        return None if metadata is None else metadata.session_id

    def _folder(self, session_id: str) -> Path:
        check_session_id(session_id)
        name = quote(session_id, safe="")
        if name.startswith("."):
            name = f"%2E{name[1:]}"
        if len(name) > _NAME_BYTES:
            name = f"{_HASHED}{sha256(session_id.encode()).hexdigest()}"
        return self._directory / name

    def _save(self, session_id: str, state: dict[str, Any]) -> None:
        folder = self._folder(session_id)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._write(folder / "checkpoint.json", state)
        self._write(folder / "metadata.json", metadata_of(session_id, state))

    def _write(self, path: Path, value: Any) -> None:
        text = msgspec.json.format(msgspec.json.encode(value), indent=2)
        # Write a temporary file and rename it, so that readers never see a partial file.
        draft = path.with_name(f"{path.name}.{uuid4().hex}")
        try:
            with os.fdopen(
                os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb"
            ) as out:
                out.write(self._cipher.encrypt(text) if self._cipher else text)
                out.flush()
                os.fsync(out.fileno())
            draft.replace(path)
        finally:
            draft.unlink(missing_ok=True)

    def _read(self, path: Path, kind: Any) -> Any:
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            return msgspec.json.decode(
                self._cipher.decrypt(data) if self._cipher else data, type=kind
            )
        except Exception:
            logger.exception("%s cannot be read", path)
            return None
