"""Each kind of checkpoint store."""

from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from uap import CheckpointStore, file_checkpoints, memory_checkpoints


@pytest.fixture(params=["memory", "files", "sealed files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    """Give each kind of store."""
    if request.param == "memory":
        return memory_checkpoints()
    cipher = Fernet(Fernet.generate_key()) if request.param == "sealed files" else None
    return file_checkpoints(tmp_path / "deep" / "kept", cipher=cipher)
