"""Connected agents on two servers: the asker is at one of them, the daemon at the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from tests.client import TERMINAL, output_text, text_of
from tests.faults.daemon_matrix import DaemonFixture, make_plan, run_point
from tests.faults.held_daemons import ASKER, HOLDER, client_of, daemon_at, end_of
from tests.faults.kill_daemons import AGENT, ANSWER
from tests.faults.kill_servers import NoServices, running_servers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.faults.kill_servers import ServerGroup

POINTS = 5
SEED = 7

pytestmark = [pytest.mark.long, pytest.mark.redis, pytest.mark.timeout(400)]


@pytest.fixture(scope="module")
def fixture() -> Iterator[DaemonFixture]:
    """Run two servers on PostgreSQL and Redis, with the daemons that tests ask for."""
    try:
        with running_servers("postgres", {"UAMP_DAEMON_ANSWERS": "8"}) as group:
            fixture = DaemonFixture(group)
            yield fixture
            fixture.stop()
    except NoServices as missing:
        pytest.skip(str(missing))


@pytest.fixture
def group(fixture: DaemonFixture) -> ServerGroup:
    """Return the servers, without a daemon."""
    fixture.stop()
    return fixture.group


def test_the_run_goes_to_the_process_that_holds_the_socket(
    fixture: DaemonFixture, group: ServerGroup
) -> None:
    tools = [{"type": "function", "function": {"name": "clock", "parameters": {}}}]
    with client_of(group, session={"tools": tools}) as client:
        client.ask("hello")
        assert end_of(client)["error"]["code"] == "agent_offline"
        daemon = daemon_at(fixture, HOLDER)
        client.ask("again")
        turn = daemon.turn()
        daemon.say(turn, "one ", "two")
        assert text_of(client.until("response.delta")).startswith("one")
        # A call of the client's tool goes there and back.
        daemon.send(turn, "tool.call", call_id="t1", name="clock", arguments="{}")
        client.until("tool.call")
        client.send("tool.result", call_id="t1", result='"noon"')
        assert daemon.socket.expect("tool.result")["result"] == "noon"
        daemon.say(turn, " three")
        daemon.end(turn)
        done = end_of(client)
        assert output_text(done) == "one two three"
        assert done["response"]["usage"]["cost"]["total_cost"] == pytest.approx(0.01)
        # A cancel reaches the daemon, and the asker has what was said.
        client.ask("and more")
        turn = daemon.turn()
        daemon.say(turn, "so far")
        client.until("response.delta")
        client.send("response.cancel")
        daemon.socket.expect("response.cancel")
        assert output_text(end_of(client)) == "so far"
        # A daemon at the other server takes a turn that this one had not begun.
        client.ask("once more")
        turn = daemon.turn()
        other = daemon_at(fixture, ASKER)
        daemon.socket.cut()
        again = other.turn()
        other.say(again, "moved")
        other.end(again)
        assert output_text(end_of(client)) == "moved"
        other.socket.close()


def test_requests_over_http_wait_for_the_other_process(
    fixture: DaemonFixture, group: ServerGroup
) -> None:
    fixture.have(1, first=HOLDER)
    with httpx.Client(
        base_url=f"http://127.0.0.1:{group.ports[ASKER]}",
        headers={"Authorization": f"Bearer {group.token}"},
        timeout=60,
        trust_env=False,
    ) as web:
        completion_request = {"model": AGENT, "messages": [{"role": "user", "content": "hello"}]}
        answered = web.post("/v1/chat/completions", json=completion_request)
        assert answered.json()["choices"][0]["message"]["content"] == ANSWER
        with web.stream(
            "POST", "/v1/chat/completions", json={**completion_request, "stream": True}
        ) as stream:
            text = "".join(stream.iter_text())
        assert text.count('"finish_reason":"stop"') == 1
        assert "word29" in text
        events = [
            {"type": "session.create", "uamp_version": "1.0", "session": {}, "agent": AGENT},
            {"type": "input.text", "text": "hello"},
            {"type": "response.create"},
        ]
        batch = web.post("/uamp", json=events).json()
        # payment.balance comes before the end of the answer or after it.
        (done,) = [frame for frame in batch if frame["type"] in TERMINAL]
        assert output_text(done) == ANSWER


@pytest.mark.timeout(600)
def test_kills_leave_one_end_and_the_right_money(fixture: DaemonFixture) -> None:
    for point in make_plan(POINTS, SEED):
        outcome = run_point(fixture.group, fixture, point)
        assert outcome.wrong == [], (point, outcome.ends)
