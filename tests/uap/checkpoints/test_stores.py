"""Checkpoint stores and their files."""

import asyncio
import json
import stat
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet

from tests.uap.agents import model
from tests.uap.checkpoints.saves import START, names_in
from uap import AgentState, CheckpointStore, agent, file_checkpoints


async def test_a_store_gives_back_the_newest_state(store: CheckpointStore) -> None:
    """UAP §12.2: save and load."""
    state = START.with_metadata("agentId", "a").with_step(1)
    await store.save("s", state.to_json())
    await store.save("s", state.with_step(2).to_json())
    loaded = await store.load("s")

    assert loaded is not None
    assert AgentState.from_json(loaded).step == 2
    loaded["metadata"]["agentId"] = "changed"
    assert (await store.load("s") or {})["metadata"] == {"agentId": "a"}


async def test_a_store_knows_what_it_keeps(store: CheckpointStore) -> None:
    """UAP §12.2: loadMetadata; §3.4, §14.2 MUST: checkpoint ids are UUIDv4."""
    await store.save("s", START.with_metadata("agentId", "a").with_step(4).to_json())
    first = await store.load_metadata("s")
    await store.save("s", START.to_json())
    second = await store.load_metadata("s")

    assert first is not None
    assert second is not None
    assert (first.session_id, first.step, first.agent_id) == ("s", 4, "a")
    assert second.agent_id == "unknown"
    assert UUID(first.checkpoint_id).version == 4
    assert first.checkpoint_id != second.checkpoint_id
    assert first.timestamp <= second.timestamp


async def test_a_store_lists_and_forgets(store: CheckpointStore) -> None:
    """UAP §12.2: delete and list."""
    assert list(await store.list()) == []
    for session_id in ("a", "b.c-d_e"):
        await store.save(session_id, START.to_json())
    assert sorted(await store.list()) == ["a", "b.c-d_e"]

    await store.delete("a")
    await store.delete("never-there")
    assert list(await store.list()) == ["b.c-d_e"]
    assert await store.load("a") is None
    assert await store.load_metadata("a") is None


async def test_files_lie_where_they_are_expected(tmp_path: Path) -> None:
    """UAP §12.4: fileCheckpoints(dir)."""
    await file_checkpoints(tmp_path).save("s", START.to_json())
    folder = tmp_path / "s"

    assert names_in(folder) == ["checkpoint.json", "metadata.json"]
    assert json.loads((folder / "checkpoint.json").read_text()) == START.to_json()
    assert json.loads((folder / "metadata.json").read_text())["sessionId"] == "s"


async def test_the_default_folder_is_the_one_of_the_specification(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """UAP §12.4: the default directory is .checkpoints."""
    monkeypatch.chdir(tmp_path)
    await file_checkpoints().save("s", START.to_json())

    assert (tmp_path / ".checkpoints" / "s" / "checkpoint.json").exists()


async def test_files_are_their_owners_and_may_be_sealed(tmp_path: Path) -> None:
    """UAP §15.3 SHOULD: state is encrypted at rest."""
    cipher = Fernet(Fernet.generate_key())
    secret = START.with_metadata("secret", "hunter2").to_json()
    await file_checkpoints(tmp_path, cipher=cipher).save("s", secret)
    path = tmp_path / "s" / "checkpoint.json"

    assert b"hunter2" not in path.read_bytes()
    assert b"hunter2" in cipher.decrypt(path.read_bytes())
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b"\xff"])
async def test_an_unreadable_file_is_not_a_checkpoint(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """UAP §15.3 MUST: deserialization validates the structure."""
    store = file_checkpoints(tmp_path)
    await store.save("s", START.to_json())
    (tmp_path / "s" / "checkpoint.json").write_bytes(content)

    assert await store.load("s") is None
    assert "checkpoint.json cannot be read" in caplog.text
    assert await store.load_metadata("s") is not None


async def test_a_file_sealed_with_another_key_is_not_a_checkpoint(tmp_path: Path) -> None:
    await file_checkpoints(tmp_path, cipher=Fernet(Fernet.generate_key())).save(
        "s", START.to_json()
    )
    other = file_checkpoints(tmp_path, cipher=Fernet(Fernet.generate_key()))

    assert await other.load("s") is None


LONG = "ß" * 300


@pytest.mark.parametrize(
    ("session_id", "folder"),
    [
        ("oslo.7", "oslo.7"),
        ("user@example.com", "user%40example.com"),
        (".", "%2E"),
        ("..", "%2E."),
        ("../x", "%2E.%2Fx"),
        ("a/b\\c\n", "a%2Fb%5Cc%0A"),
        ("50 %", "50%20%25"),
        (LONG, f"%sha256-{sha256(LONG.encode()).hexdigest()}"),
    ],
)
async def test_every_session_has_a_folder_of_its_own(
    tmp_path: Path, session_id: str, folder: str
) -> None:
    """UAP §12.4: fileCheckpoints() keeps the state of every session, whatever its id."""
    store = file_checkpoints(tmp_path / "kept")
    bot = agent(model=model("yes"), checkpoints=store, session_id=session_id)
    result = await bot.generate("go", START)

    assert await store.load(session_id) == result.state.to_json()
    metadata = await store.load_metadata(session_id)
    assert metadata is not None
    assert metadata.session_id == session_id
    assert await store.list() == [session_id]
    assert names_in(tmp_path) == ["kept"]
    assert names_in(tmp_path / "kept") == [folder]
    await store.delete(session_id)
    assert await store.list() == []


async def test_a_long_id_that_cannot_be_read_is_not_listed(tmp_path: Path) -> None:
    store = file_checkpoints(tmp_path, cipher=Fernet(Fernet.generate_key()))
    await store.save(LONG, START.to_json())
    await store.save("short", START.to_json())

    assert await file_checkpoints(tmp_path).list() == ["short"]


@pytest.mark.parametrize("session_id", ["", 5, b"s", "half a \ud800"])
async def test_an_invalid_session_id_is_refused_before_the_run(
    tmp_path: Path, session_id: Any
) -> None:
    store = file_checkpoints(tmp_path)
    with pytest.raises(ValueError, match=r"session_id|surrogates"):
        agent(model=model("yes"), checkpoints=store, session_id=session_id)
    with pytest.raises(ValueError, match=r"session_id|surrogates"):
        await store.save(session_id, START.to_json())


async def test_saves_at_the_same_time_leave_a_whole_state(tmp_path: Path) -> None:
    store = file_checkpoints(tmp_path)
    states = [START.with_metadata("n", "x" * n * 1000).to_json() for n in range(20)]
    await asyncio.gather(*(store.save("s", state) for state in states))

    assert await store.load("s") in states


async def test_what_cannot_be_deleted_is_not_forgotten_in_silence(tmp_path: Path) -> None:
    store = file_checkpoints(tmp_path)
    (tmp_path / "s").write_text("a file where a folder should be")

    with pytest.raises(NotADirectoryError):
        await store.delete("s")
    await store.delete("missing")
