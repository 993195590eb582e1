"""Responses whose server process is killed, or ends before they do.

The server runs as a process of its own, with a short lease, on a database of its own.
"""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest

from tests.client import Frame, Story, output_text, text_of, wait_until
from tests.sessions_app.process.server_processes import Server, killable, prepared, resumed
from tests.sessions_app.response.step_tools import FIRST
from tests.sessions_app.response.step_tools import WORDS as STEP_WORDS

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["killable", "prepared"]

COUNTED = " ".join(f"word{number}" for number in range(1, 201))
WORDS = " ".join(f"w{number}" for number in range(20))


def test_a_response_whose_process_was_killed_ends_once_with_its_text(killable: Server) -> None:
    killable.start()
    client = killable.dial()
    created = client.create_session(agent="slow")
    client.ask("Count")
    response_created = client.expect("response.created")
    received = [client.receive() for _ in range(12)]
    # At most one flush behind what arrived, however late a busy machine flushes.
    word_count = len(text_of(received).split())
    wait_until(
        lambda: (
            len(killable.query("SELECT text FROM sessions_app_response")[0][0].split())
            >= word_count - 3
        )
    )
    killable.end(signal.SIGKILL)
    client.close()
    assert killable.query("SELECT status FROM sessions_app_response") == [("in_progress",)]
    killable.start()
    again = killable.dial()
    resumed(again, created, response_created["seq"])
    failed = again.until("response.error")[-1]
    assert failed["response_id"] == response_created["response_id"]
    assert failed["error"]["code"] == "interrupted"
    assert again.during(0.5) == []
    ((status, text),) = killable.query("SELECT status, text FROM sessions_app_response")
    assert status == "failed"
    # What was flushed; a prefix of what would have been said.
    assert COUNTED.startswith(text)
    assert len(text.split()) >= word_count - 3
    assert killable.query(
        "SELECT content, status FROM chat_app_message WHERE role = 'assistant'"
    ) == [(text, "failed")]
    ends = killable.query(
        "SELECT type FROM chat_app_chatevent WHERE type IN"
        " ('response.done', 'response.error', 'response.cancelled')"
    )
    assert ends == [("response.error",)]
    # The session is as good as before.
    again.send("response.create")
    again.until("response.delta")


@pytest.mark.long
def test_an_answer_whose_process_was_killed_while_it_was_made_again_stays(
    killable: Server,
) -> None:
    killable.start()
    client = killable.dial()
    client.create_session(agent="slow")
    client.ask("Count")
    client.until("response.done")
    ((first,),) = killable.query("SELECT id FROM chat_app_message WHERE role = 'assistant'")
    client.send("response.create", replaces=first)
    client.expect("response.created")
    killable.end(signal.SIGKILL)
    client.close()
    # Nothing of the new one was written: before its end and after, readers have the former version.
    current = "SELECT id FROM chat_app_message WHERE role = 'assistant' AND replaced_by IS NULL"
    assert killable.query(current) == [(first,)]
    killable.start()
    ended = "SELECT status FROM sessions_app_response ORDER BY created_at"
    wait_until(lambda: killable.query(ended)[-1] == ("failed",))
    assert killable.query(current) == [(first,)]


def test_a_response_that_waited_for_its_client_continues_in_another_process(
    killable: Server,
) -> None:
    tool = {"type": "function", "function": {"name": "search"}}
    killable.start()
    client = killable.dial()
    created = client.create_session(agent="tool-user", session={"tools": [tool]})
    client.ask("Paris")
    response_created = client.expect("response.created")
    call = client.expect("tool.call")
    killable.end(signal.SIGKILL)
    client.close()
    killable.start()
    again = killable.dial()
    resumed(again, created, response_created["seq"])
    tool_call = next(f for f in again.until("tool.call") if f["type"] == "tool.call")
    assert (tool_call["call_id"], tool_call["response_id"]) == (
        call["call_id"],
        response_created["response_id"],
    )
    again.send("tool.result", call_id=call["call_id"], result="22")
    done = again.until("response.done")[-1]
    assert done["response_id"] == response_created["response_id"]
    assert output_text(done) == "The tool answered: 22"
    assert killable.query("SELECT id, status FROM sessions_app_response") == [
        (response_created["response_id"], "completed")
    ]
    assert killable.query("SELECT status, result FROM sessions_app_toolcall") == [("done", "22")]


@pytest.mark.long
def test_a_response_that_went_on_elsewhere_asks_its_client_again(killable: Server) -> None:
    killable.settings = "tests.sessions_app.response.step_settings"
    killable.start()
    client = killable.dial()
    tool = {"type": "function", "function": {"name": "search"}}
    created = client.create_session(agent="asks-twice", session={"tools": [tool]})
    client.ask("Paris")
    response_created = client.expect("response.created")
    client.expect("tool.call")
    killable.end(signal.SIGKILL)
    client.close()
    killable.start()
    with killable.dial() as again:
        resumed(again, created, response_created["seq"])
        first = again.until("tool.call")[-1]
        again.send("tool.result", call_id=first["call_id"], result="1")
        second = again.until("tool.call")[-1]
        assert second["call_id"] != first["call_id"]
        again.send("tool.result", call_id=second["call_id"], result="2")
        assert output_text(again.until("response.done")[-1]) == "Both are answered."


@pytest.mark.long
def test_a_call_that_was_not_flushed_is_reported_with_its_result(killable: Server) -> None:
    tool = {"type": "function", "function": {"name": "search"}}
    killable.start()
    client = killable.dial()
    created = client.create_session(agent="tool-user", session={"tools": [tool]})
    client.ask("Paris")
    response_created = client.expect("response.created")
    call = client.expect("tool.call")
    killable.end(signal.SIGKILL)
    client.close()
    killable.execute("UPDATE sessions_app_response SET output = '[]'")
    killable.start()
    with killable.dial() as again:
        resumed(again, created, response_created["seq"])
        again.until("tool.call")
        again.send("tool.result", call_id=call["call_id"], result="22")
        done = again.until("response.done")[-1]
    kinds = [item["type"] for item in done["response"]["output"]]
    assert kinds == ["tool_call", "tool_result", "text"]
    assert done["response"]["output"][0]["tool_call"]["name"] == "search"


def killed_in_the_second_step(server: Server, journal: Path) -> tuple[Frame, Frame]:
    """Kill a server that has run a tool and is telling of it; return how the turn had begun."""
    server.settings = "tests.sessions_app.response.step_settings"
    server.start()
    client = server.dial()
    created = client.create_session(agent="noter")
    client.ask(str(journal))
    response_created = client.expect("response.created")
    received: list[Frame] = []
    while len(text_of(received)) < 50:
        received.append(client.receive())
    server.end(signal.SIGKILL)
    client.close()
    assert server.query("SELECT status FROM sessions_app_response") == [("in_progress",)]
    assert server.query("SELECT step, fence FROM agents_app_checkpoint") == [(1, 1)]
    return created, response_created


def test_a_response_resumes_from_its_checkpoint(killable: Server, tmp_path: Path) -> None:
    journal = tmp_path / "journal"
    created, response_created = killed_in_the_second_step(killable, journal)
    killable.start()
    again = killable.dial()
    resumed(again, created, response_created["seq"])
    frames = again.until("response.done")
    done = frames[-1]
    assert done["response_id"] == response_created["response_id"]
    assert output_text(done) == FIRST + "".join(STEP_WORDS)
    assert [item["type"] for item in done["response"]["output"]] == [
        "text",
        "tool_call",
        "tool_result",
        "text",
    ]
    # What arrived adds up to the output, and the tool ran once.
    story = Story(after=response_created["seq"]).take_all(frames)
    assert story.texts == {response_created["response_id"]: output_text(done)}
    assert journal.read_text() == "noted\n"
    assert killable.query("SELECT id, status, fence FROM sessions_app_response") == [
        (response_created["response_id"], "completed", 2)
    ]
    wait_until(lambda: not killable.query("SELECT * FROM agents_app_checkpoint"), 5)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "change",
    [
        # A version of UAP that this server does not know; a fourth process to be ended by it; no
        # state of an agent; no output.
        """UPDATE agents_app_checkpoint SET state = '{"version": "2.0.0"}'""",
        "UPDATE sessions_app_response SET fence = 4",
        pytest.param(
            """UPDATE agents_app_checkpoint SET state = '{"messages": 7}'""", marks=pytest.mark.long
        ),
        pytest.param("UPDATE agents_app_checkpoint SET output = '{}'", marks=pytest.mark.long),
    ],
)
def test_a_response_that_cannot_be_resumed_ends_with_its_text(
    killable: Server, tmp_path: Path, change: str
) -> None:
    created, response_created = killed_in_the_second_step(killable, tmp_path / "journal")
    killable.execute(change)
    killable.start()
    again = killable.dial()
    resumed(again, created, response_created["seq"])
    failed = again.until("response.error")[-1]
    assert failed["response_id"] == response_created["response_id"]
    assert failed["error"]["code"] == "interrupted"
    ((status, text),) = killable.query("SELECT status, text FROM sessions_app_response")
    assert status == "failed"
    assert text.startswith(FIRST + "word0 ")
    wait_until(lambda: not killable.query("SELECT * FROM agents_app_checkpoint"), 5)


@pytest.mark.long
def test_what_does_not_finish_in_time_is_ended_by_the_next_process(killable: Server) -> None:
    killable.start()
    client = killable.dial()
    created = client.create_session(agent="slow")
    client.ask("Count")
    response_created = client.expect("response.created")
    client.until("response.delta")
    assert killable.end(signal.SIGTERM) == 0
    client.close()
    # The whole of the grace time is kept, and the row says that another process may start it.
    ((status, text),) = killable.query("SELECT status, text FROM sessions_app_response")
    assert status == "queued"
    assert len(text.split()) > 25
    killable.start()
    again = killable.dial()
    resumed(again, created, response_created["seq"])
    assert again.until("response.error")[-1]["error"]["code"] == "interrupted"
    assert killable.query("SELECT status, text FROM sessions_app_response") == [("failed", text)]
