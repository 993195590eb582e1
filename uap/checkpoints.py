"""Where the states of agents are kept, to go on from later (UAP §12.2-12.4).

A checkpoint is the whole state of a session as JSON, the newest one only. Saving is the
run's duty and never its failure: what a store raises is logged.
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
    """A checkpoint without its state; `checkpoint_id` is new with each save."""

    session_id: str
    checkpoint_id: str
    timestamp: datetime
    step: int
    agent_id: str


class CheckpointStore(Protocol):
    """Keeps the newest state of each session (UAP §12.2); states are what `to_json()` gives."""

    async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
        """Put a state in the place of the session's last one."""

    async def load(self, session_id: str) -> dict[str, Any] | None:
        """Return the session's state; None when there is none that can be read."""

    async def load_metadata(self, session_id: str) -> CheckpointMetadata | None:
        """Return what is known of the session's checkpoint; None when there is none."""

    async def delete(self, session_id: str) -> None:
        """Forget a session; one that is unknown is no error."""

    async def list(self) -> Sequence[str]:
        """Return the ids of all sessions."""


def metadata_of(session_id: str, state: Mapping[str, Any]) -> CheckpointMetadata:
    """Return the metadata of a new checkpoint of a state."""
    return CheckpointMetadata(
        session_id=session_id,
        checkpoint_id=str(uuid4()),
        timestamp=datetime.now(UTC),
        step=state["step"],
        agent_id=state["metadata"].get("agentId", "unknown"),
    )


def check_session_id(session_id: Any) -> None:
    """Raise ValueError for what is no session id: a text that has characters and is Unicode.

    It is called before a run begins: a run does not fail when its checkpoint cannot be saved.
    """
    if not isinstance(session_id, str) or not session_id:
        raise ValueError(f"A session_id is a text that is not empty, and not {session_id!r}.")
    session_id.encode()


class Checkpointer:
    """Saves the states of one run, in order.

    Only the task of the run calls it. A save is a task that also a cancelled run waits for.
    """

    def __init__(self, store: CheckpointStore | None, session_id: str | None) -> None:
        self._store = store
        self._session_id = session_id
        self._saved: str | None = None

    async def save(self, state: AgentState) -> None:
        """Save a state that was not the last one saved; nothing that goes wrong is raised.

        A save that began is finished even when the run is cancelled meanwhile.
        """
        store, session_id = self._store, self._session_id
        if store is None or session_id is None or state.id == self._saved:
            return
        self._saved = state.id
        await self._finish(
            lambda: store.save(session_id, state.to_json()),
            "The checkpoint of session %s was not saved",
        )

    async def forget(self) -> None:
        """Delete the session's checkpoint; nothing that goes wrong is raised."""
        store, session_id = self._store, self._session_id
        if store is not None and session_id is not None:
            await self._finish(
                lambda: store.delete(session_id), "The checkpoint of session %s was not deleted"
            )

    async def _finish(self, work: Callable[[], Awaitable[None]], failed: str) -> None:
        async def logged() -> None:
            try:
                await work()
            except (Exception, asyncio.CancelledError):
                logger.exception(failed, self._session_id)

        finishing = asyncio.ensure_future(logged())
        try:
            # Unlike a shield, this raises nothing of what the store does, not even a cancellation.
            await asyncio.wait({finishing})
        except asyncio.CancelledError:
            await asyncio.wait({finishing})
            raise


def memory_checkpoints() -> CheckpointStore:
    """Return a store that lives as long as the process."""
    return _MemoryCheckpoints()


class _MemoryCheckpoints:
    def __init__(self) -> None:
        self._kept: dict[str, tuple[bytes, CheckpointMetadata]] = {}

    async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
        self._kept[session_id] = msgspec.json.encode(state), metadata_of(session_id, state)

    async def load(self, session_id: str) -> dict[str, Any] | None:
        kept = self._kept.get(session_id)
        return msgspec.json.decode(kept[0], type=dict[str, Any]) if kept else None

    async def load_metadata(self, session_id: str) -> CheckpointMetadata | None:
        kept = self._kept.get(session_id)
        return kept[1] if kept else None

    async def delete(self, session_id: str) -> None:
        self._kept.pop(session_id, None)

    async def list(self) -> Sequence[str]:
        return tuple(self._kept)


class Cipher(Protocol):
    """Seals what is written to disk; `cryptography.fernet.Fernet` is one."""

    def encrypt(self, data: bytes) -> bytes:
        """Return the sealed data."""

    def decrypt(self, token: bytes) -> bytes:
        """Return the data; raises for what was not sealed with the same key."""


def file_checkpoints(
    directory: str | os.PathLike[str] = ".checkpoints", *, cipher: Cipher | None = None
) -> CheckpointStore:
    """Return a store of files (UAP §12.4): DIRECTORY/SESSION/checkpoint.json and metadata.json.

    Only their owner may read the files, and with a `cipher` they are sealed as well (UAP §15.3).
    SESSION is the session's id: what no file name may hold is percent-encoded, and an id that would
    be longer than a file name is a hash. What is no session id raises ValueError.
    """
    return _FileCheckpoints(Path(directory), cipher)


_HASHED = "%sha256-"
"""How the name of a hash begins; no percent-encoded id begins so."""
_NAME_BYTES = 255
"""The longest name of a file that systems take."""


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
        # What cannot be deleted is still there, and the caller has to know.
        with suppress(FileNotFoundError):
            await asyncio.to_thread(shutil.rmtree, self._folder(session_id))

    async def list(self) -> Sequence[str]:
        return await asyncio.to_thread(self._list)

    def _list(self) -> Sequence[str]:
        paths = sorted(self._directory.glob("*/checkpoint.json"))
        found = [self._session_of(path.parent) for path in paths]
        return [session_id for session_id in found if session_id is not None]

    def _session_of(self, folder: Path) -> str | None:
        """Return the id of the session in a folder; None when a long one cannot be read."""
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
        # Beside its goal and then in its place, so that a reader never sees half a file.
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
