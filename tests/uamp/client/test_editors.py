"""`uamp acp`, the program that an editor starts, from an installed wheel."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.client import wait_until
from tests.live_server import counted_rows
from tests.programs import PROGRAM_SECONDS

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from tests.programs import Program
    from tests.uamp.client.installed import Installed

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]


class Editor:
    """The side of the editor: JSON-RPC, one message a line."""

    def __init__(self, process: Program) -> None:
        assert process.stdin is not None
        self._input = process.stdin
        self._process = process
        self._last = 0
        self.seen: list[dict[str, Any]] = []

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its answer; notifications before it are in `seen`."""
        self._last += 1
        body = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        self._input.write(json.dumps(body) + "\n")
        self._input.flush()
        while True:
            assert self._process.stdout is not None
            with self._process.limited_reads():
                line = self._process.stdout.readline()
            frame: dict[str, Any] = json.loads(line)
            if frame.get("id") == self._last:
                return frame
            self.seen.append(frame)

    def close(self) -> int:
        """Close the input, and return the exit code."""
        self._input.close()
        return self._process.wait(PROGRAM_SECONDS)


def test_an_editor_talks_to_an_agent(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    variables = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    with installed.start("acp", "Thinker", variables=variables) as process:
        editor = Editor(process)
        hello = editor.call("initialize", protocolVersion=1, clientCapabilities={})
        assert hello["result"]["protocolVersion"] == 1
        session = editor.call("session/new", cwd="/", mcpServers=[])["result"]["sessionId"]
        prompt = [{"type": "text", "text": "one\ntwo \u2028 ü"}]
        done = editor.call("session/prompt", sessionId=session, prompt=prompt)
        assert done["result"]["stopReason"] == "end_turn"
        updates = [frame["params"]["update"] for frame in editor.seen]
        chunks = [u for u in updates if u["sessionUpdate"] == "agent_message_chunk"]
        assert "".join(u["content"]["text"] for u in chunks).endswith("one\ntwo \u2028 ü")
        unknown = editor.call("session/cancelled")
        assert unknown["error"]["code"] == -32601
        assert editor.close() == 0
        assert process.stderr is not None
        with process.limited_reads():
            assert process.stderr.read() == ""


def test_a_mistake_is_reported_before_an_editor_waits(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    before = counted_rows()
    home = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    missing = installed.run("acp", "missing", **home)
    wrong = installed.run("acp", "echo", UAMP_URL=demo.http, UAMP_KEY="uak_00000000_wrong")
    nowhere = installed.run("acp", "echo", UAMP_URL="http://127.0.0.1:9", UAMP_KEY=alice.key)

    assert [run.returncode for run in (missing, wrong, nowhere)] == [4, 3, 7]
    assert "There is no agent 'missing'." in missing.stderr
    assert all(run.stdout == "" for run in (missing, wrong, nowhere))
    assert counted_rows() == before


def test_a_lost_connection_ends_the_program(
    demo: ServerAddress, alice: Person, installed: Installed
) -> None:
    variables = {"UAMP_URL": demo.http, "UAMP_KEY": alice.key}
    with installed.start("acp", "echo", variables=variables) as process:
        editor = Editor(process)
        editor.call("initialize", protocolVersion=1, clientCapabilities={})
        alice.user.api_keys.update(revoked_at=alice.user.date_joined)
        wait_until(lambda: process.poll() is not None)
        assert process.returncode == 3
        assert process.stderr is not None
        with process.limited_reads():
            assert "revoked" in process.stderr.read()
