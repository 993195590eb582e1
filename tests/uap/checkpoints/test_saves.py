"""Saving checkpoints, and saves that fail."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from tests.uap.agents import call, message_lines, model, settle, tool
from tests.uap.checkpoints.saves import START, Saves, names_in
from uap import AgentState, agent, file_checkpoints, memory_checkpoints
from uap.execution import ExecutionStrategy, loop, plan, react
from upp import ErrorCode, UPPError
from upp.providers.scripted import Fail

DOWN = UPPError("down", code=ErrorCode.PROVIDER_ERROR)
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


async def test_a_restored_state_resumes_where_it_left_off() -> None:
    """UAP §1.2, §12.1: serialisation and checkpointing; a session is resumed from its state."""
    store = memory_checkpoints()
    first = agent(
        model=model(call("t"), "bye"), tools=[tool("t")], checkpoints=store, session_id="s"
    )
    await first.generate("go", START)
    checkpoint = await store.load("s")
    assert checkpoint is not None
    state = AgentState.from_json(checkpoint)
    again = agent(model=model("still here"), checkpoints=store, session_id="s")
    result = await again.ask("there?", state)

    assert message_lines(result.state.messages) == [
        *("user go", "assistant", "results done", "assistant bye"),
        *("user there?", "assistant still here"),
    ]
    assert result.state.metadata["sessionId"] == "s"


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
