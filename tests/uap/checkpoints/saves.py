"""A store that keeps every state, and the names of files in a folder."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from uap import AgentState, CheckpointMetadata

START = AgentState.initial()


class Saves:
    """A store that keeps every state that it is given."""

    def __init__(
        self,
        *,
        fail: bool = False,
        gate: asyncio.Event | None = None,
        refuses: Exception | None = None,
    ) -> None:
        self.saved: list[tuple[str, Mapping[str, Any]]] = []
        self.deleted: list[str] = []
        self.refuses = refuses
        self.fail = fail
        self.gate = gate

    async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
        """Keep the state, when the gate is open."""
        if self.gate is not None:
            await asyncio.wait_for(self.gate.wait(), 60)
        if self.fail:
            raise OSError("disk full")
        self.saved.append((session_id, state))

    async def load(self, session_id: str) -> dict[str, Any] | None:
        """Return the last state."""
        return next((dict(state) for name, state in self.saved[::-1] if name == session_id), None)

    async def load_metadata(self, session_id: str) -> CheckpointMetadata | None:
        """Refuse; no test asks for it."""
        raise LookupError(session_id)

    async def delete(self, session_id: str) -> None:
        """Say that it was asked to."""
        if self.refuses is not None:
            raise self.refuses
        self.deleted.append(session_id)

    async def list(self) -> Sequence[str]:
        """Return the ids."""
        return [session_id for session_id, _ in self.saved]


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())
