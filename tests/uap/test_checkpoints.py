"""Checkpoints: when they are saved, and the stores."""

import asyncio
import json
import stat
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from cryptography.fernet import Fernet

from tests.uap.agents import call, model, said, settle, tool
from uap import (
    AgentState,
    CheckpointMetadata,
    CheckpointStore,
    agent,
    file_checkpoints,
    memory_checkpoints,
)
from uap.execution import ExecutionStrategy, loop, plan, react
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail

DOWN = UPPError("down", code=ErrorCode.PROVIDER_ERROR)
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


PLANNED = '{"steps": [{"id": "a", "description": "x"}]}'


@pytest.mark.parametrize(
    ("execution", "answers", "steps"),
    [
        (loop(), [call("t"), call("t"), "bye"], [1, 2, 3]),
        (react(), ["hm", call("t"), "hm", "bye"], [1, 2]),
        (plan(), [PLANNED, call("t"), "bye"], [1, 2, 3]),
    ],
)
@pytest.mark.parametrize("streaming", [False, True])
async def test_a_checkpoint_is_saved_after_each_step(
    execution: ExecutionStrategy, answers: list[Any], steps: list[int], *, streaming: bool
) -> None:
    """UAP §12.3 MUST: checkpoints are saved after each step_end event, by every strategy."""
    store = Saves()
    bot = agent(model=model(*answers), tools=[tool("t")], execution=execution, checkpoints=store)
    if streaming:
        async with bot.stream("go", START) as stream:
            async for event in stream:
                if event.uap is not None and event.uap.type == "step_start":
                    assert len(store.saved) >= event.uap.step - 1
            result = await stream
    else:
        result = await bot.generate("go", START)

    assert [state["step"] for _, state in store.saved] == steps
    assert store.saved[-1][1] == result.state.to_json()
    assert {session_id for session_id, _ in store.saved} == {bot.session_id}


async def test_a_session_id_is_made_up_when_there_is_a_store() -> None:
    """UAP §12.3 MUST: sessionId is generated if not provided (UUIDv4); §3.4."""
    bot = agent(model=model("x"), checkpoints=memory_checkpoints())
    result = await bot.generate("go", START)

    assert UUID(bot.session_id).version == 4
    assert result.state.metadata == {"agentId": bot.id, "sessionId": bot.session_id}
    assert agent(model=model("x")).session_id is None
    assert agent(model=model("x"), session_id="mine").session_id == "mine"


async def test_a_save_that_fails_is_logged_and_nothing_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """UAP §12.3 SHOULD log failed saves, MUST NOT throw."""
    bot = agent(
        model=model(call("t"), "bye"),
        tools=[tool("t")],
        checkpoints=Saves(fail=True),
        session_id="s",
    )
    result = await bot.generate("go", START)

    assert result.turn.response.text == "bye"
    assert caplog.messages == ["the checkpoint of session s could not be saved"] * 2
    assert "disk full" in caplog.text


async def test_a_save_that_is_cancelled_inside_the_store_does_not_cancel_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """UAP §12.3 MUST NOT throw: not even the cancellation of what the store waited for."""

    class GivesUp(Saves):
        async def save(self, session_id: str, state: Mapping[str, Any]) -> None:
            waited = asyncio.ensure_future(super().save(session_id, state))
            waited.cancel()
            await waited

    bot = agent(model=model("yes"), checkpoints=GivesUp(), session_id="s")
    result = await bot.generate("go", START)

    assert result.turn.response.text == "yes"
    assert caplog.messages == ["the checkpoint of session s could not be saved"]


async def test_a_save_that_began_is_finished_when_the_run_is_aborted() -> None:
    """UAP §12.3 MUST: checkpoints are saved after each step_end event."""
    store = Saves(gate=asyncio.Event())
    assert store.gate is not None
    stream = agent(model=model("x"), checkpoints=store).stream("go", START)
    async with stream:
        async for event in stream:
            if event.uap is not None and event.uap.type == "step_end":
                break
        await settle()
        closing = asyncio.ensure_future(stream.aclose())
        await settle()
        assert not closing.done()
        store.gate.set()
        await closing
    with pytest.raises(UPPError, match="aborted"):
        await stream.result()

    assert len(store.saved) == 1


async def test_a_restored_state_goes_on_where_it_was() -> None:
    """UAP §1.2, §12.1: serialisation and checkpointing; a session is resumed from its state."""
    store = memory_checkpoints()
    first = agent(
        model=model(call("t"), "bye"), tools=[tool("t")], checkpoints=store, session_id="s"
    )
    await first.generate("go", START)
    kept = await store.load("s")
    assert kept is not None
    state = AgentState.from_json(kept)
    again = agent(model=model("still here"), checkpoints=store, session_id="s")
    result = await again.ask("there?", state)

    assert said(result.state.messages) == [
        *("user go", "assistant", "results done", "assistant bye"),
        *("user there?", "assistant still here"),
    ]
    assert result.state.metadata["sessionId"] == "s"


@pytest.fixture(params=["memory", "files", "sealed files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CheckpointStore:
    """Give each kind of store."""
    if request.param == "memory":
        return memory_checkpoints()
    cipher = Fernet(Fernet.generate_key()) if request.param == "sealed files" else None
    return file_checkpoints(tmp_path / "deep" / "kept", cipher=cipher)


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


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


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
async def test_a_file_that_cannot_be_read_is_no_checkpoint(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    """UAP §15.3 MUST: deserialization validates the structure."""
    store = file_checkpoints(tmp_path)
    await store.save("s", START.to_json())
    (tmp_path / "s" / "checkpoint.json").write_bytes(content)

    assert await store.load("s") is None
    assert "checkpoint.json cannot be read" in caplog.text
    assert await store.load_metadata("s") is not None


async def test_a_file_sealed_with_another_key_is_no_checkpoint(tmp_path: Path) -> None:
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
async def test_what_is_no_session_id_is_refused_before_the_run(
    tmp_path: Path, session_id: Any
) -> None:
    store = file_checkpoints(tmp_path)
    with pytest.raises(ValueError, match=r"session_id|surrogates"):
        agent(model=model("yes"), checkpoints=store, session_id=session_id)
    with pytest.raises(ValueError, match=r"session_id|surrogates"):
        await store.save(session_id, START.to_json())


@pytest.mark.parametrize("kind", ["memory", "files"])
async def test_a_query_leaves_the_conversation_as_it_is(tmp_path: Path, kind: str) -> None:
    """UAP §4.7, §12.3: a query has no state, and the checkpoint is that of the conversation."""
    store = memory_checkpoints() if kind == "memory" else file_checkpoints(tmp_path)
    bot = agent(model=model("yes", "no"), checkpoints=store, session_id="s")
    result = await bot.ask("Is it true?", START)
    turn = await bot.query("Something else?")

    assert turn.response.text == "no"
    assert await store.load("s") == result.state.to_json()
    assert list(await store.list()) == ["s"]


async def test_a_query_keeps_its_steps_until_it_ends() -> None:
    """UAP §12.3, §4.7: saved after each step, under a session of its own, and then discarded."""
    store = Saves()
    bot = agent(model=model(call("t"), "yes"), tools=[tool("t")], checkpoints=store, session_id="s")
    await bot.query("go")

    sessions = {session_id for session_id, _ in store.saved}
    assert [state["step"] for _, state in store.saved] == [1, 2]
    assert len(sessions) == 1
    assert UUID(store.deleted[0]).version == 4
    assert sessions == set(store.deleted)


@pytest.mark.parametrize("fails", [OSError("disk full"), None])
async def test_what_happens_to_a_query_reaches_its_caller(
    caplog: pytest.LogCaptureFixture, fails: Exception | None
) -> None:
    """UAP §4.7: the state is discarded however the query ends; a store that fails is logged."""
    store = Saves(refuses=fails)
    bot = agent(model=model([Fail(DOWN)]), checkpoints=store)
    with pytest.raises(UPPError, match="down"):
        await bot.query("go")

    assert len(store.deleted) == (0 if fails else 1)
    assert ("could not be deleted" in caplog.text) is (fails is not None)


async def test_a_save_that_fails_leaves_the_last_checkpoint(tmp_path: Path) -> None:
    class Broken:
        def encrypt(self, data: bytes) -> bytes:
            raise OSError(f"no room for {len(data)} bytes")

        def decrypt(self, token: bytes) -> bytes:
            return token

    await file_checkpoints(tmp_path).save("s", START.to_json())
    with pytest.raises(OSError, match="no room"):
        await file_checkpoints(tmp_path, cipher=Broken()).save("s", START.with_step(9).to_json())

    assert await file_checkpoints(tmp_path).load("s") == START.to_json()
    assert names_in(tmp_path / "s") == ["checkpoint.json", "metadata.json"]


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
