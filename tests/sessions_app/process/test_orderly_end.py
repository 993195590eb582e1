"""A server that gets a signal to end: what it lets finish, what it gives back, and what it sends.

The server runs as a process of its own, by Daphne (`manage.py serve`) and by uvicorn.
"""

from __future__ import annotations

import shutil
import signal
import socket
import time
from typing import TYPE_CHECKING

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from tests.client import Frame, UampClient, open_stream, output_text, wait_until
from tests.sessions_app.connected.daemon_socket import Daemon
from tests.sessions_app.process.server_processes import Server, prepared, read_to_the_end
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["prepared"]

WORDS = " ".join(f"w{number}" for number in range(40))
DEAR = (
    "from agents_app.models import Agent\n"
    'Agent.objects.create(name="dear", is_public=True, options={"script": "echo"},'
    ' pricing={"per_answer": "1"})'
)
ASKER = (
    "from tests.sessions_app.turn import team_tools\n"
    "from agents_app.models import Agent\n"
    'Agent.objects.create(name="asker", is_public=True, options={"script": "doer"},'
    ' tools=["steps"], approvals=["steps"])'
)
HELPER = """
from pathlib import Path
from django.contrib.auth.models import User
from agents_app.models import Agent
from agents_app.rest.rights import ALL
from sessions_app.access import connect_tokens
user = User.objects.create_user("ada")
Path({place!r}).write_text(connect_tokens.issue(user.pk, "helper", by=ALL)[1].secret)
Agent.objects.filter(name="helper").update(is_public=True)
"""
BOTH = pytest.mark.parametrize("uvicorn", [False, True], ids=["daphne", "uvicorn"])


@pytest.fixture
def server(prepared: Path, tmp_path: Path) -> Iterator[Server]:
    """Give a server that was not started, and that waits long for its answers."""
    shutil.copytree(prepared, tmp_path / "data")
    server = Server(tmp_path / "data", environment={"UAMP_GRACE_SECONDS": "600"})
    yield server
    if server.process is not None:
        server.end(signal.SIGKILL)


def asking_client(server: Server, agent: str, text: str) -> UampClient:
    """Return a socket on which a turn was asked for."""
    client = server.dial()
    client.create_session(agent=agent)
    client.ask(text)
    return client


def tell(server: Server, how: signal.Signals) -> None:
    """Send the server a signal."""
    assert server.process is not None
    server.process.send_signal(how)


def status(server: Server) -> list[str]:
    """Return the states of the responses."""
    return [row[0] for row in server.query("SELECT status FROM sessions_app_response")]


def refused(client: UampClient) -> Frame:
    """Ask for another turn and return the refusal."""
    client.ask("and this?")
    error: Frame = client.until("session.error")[-1]["error"]
    return error


def is_closed(port: int) -> bool:
    """Return whether nothing listens on a port of this machine."""
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return True
    return False


@BOTH
def test_an_answer_ends_at_its_socket_and_nothing_new_begins(
    server: Server, *, uvicorn: bool
) -> None:
    server.start(uvicorn=uvicorn)
    idle = server.dial()
    idle.create_session(agent="teller")
    client = asking_client(server, "teller", WORDS)
    client.until("response.delta")
    tell(server, signal.SIGTERM)
    if uvicorn:
        # The port stays open: a load balancer reads that this process takes no more traffic.
        ready = f"http://127.0.0.1:{server.port}/readyz"
        wait_until(lambda: httpx.get(ready).status_code == 503)
        assert httpx.get(ready).json()["reasons"] == ["draining"]
        with pytest.raises(InvalidStatus) as turned_away:
            server.dial()
        assert turned_away.value.response.status_code == 503
    else:
        # Its port closes first.
        wait_until(lambda: is_closed(server.port))
    error = refused(idle)
    assert (error["code"], error["details"]["retry_after"]) == ("unavailable", 2)
    frames, code = read_to_the_end(client)
    assert frames[-1]["type"] == "response.done"
    assert output_text(frames[-1]) == WORDS
    assert code == 1012
    assert read_to_the_end(idle)[1] == 1012
    assert server.process is not None
    assert server.process.wait(timeout=120) == 0
    assert status(server) == ["completed"]


@pytest.mark.sampled(1)
@BOTH
def test_an_answer_that_waits_to_be_paid_is_not_waited_for(
    server: Server, *, uvicorn: bool
) -> None:
    server.run(DEAR)
    server.start(uvicorn=uvicorn)
    client = asking_client(server, "dear", "hello")
    client.until("payment.required")
    assert server.end(signal.SIGINT) == 0
    assert read_to_the_end(client)[1] == 1012
    assert status(server) == ["waiting"]


def test_an_answer_that_waits_for_a_person_is_not_waited_for(
    server: Server, tmp_path: Path
) -> None:
    server.settings = "tests.sessions_app.turn.team_settings"
    server.run(ASKER)
    server.start()
    steps = {"steps": 1, "pause": 0, "journal": str(tmp_path / "journal")}
    client = asking_client(server, "asker", order(call="steps", arguments=steps))
    client.until("tool.approval_required")
    assert server.end(signal.SIGINT) == 0
    assert read_to_the_end(client)[1] == 1012
    assert status(server) == ["waiting"]


def test_daemons_reconnect_elsewhere_when_their_answers_have_ended(
    server: Server, tmp_path: Path
) -> None:
    server.run(HELPER.format(place=str(tmp_path / "token")))
    token = (tmp_path / "token").read_text()
    server.start(uvicorn=True)
    busy, idle = Daemon(server.dial()), Daemon(server.dial())
    busy.register("helper", token)
    client = asking_client(server, "helper", "hello")
    turn = busy.turn()
    idle.register("helper", token)
    tell(server, signal.SIGTERM)
    assert read_to_the_end(idle.socket)[1] == 1012
    # The busy one gets no more turns, and finishes the one that it has.
    rows = "SELECT is_closing FROM agents_app_agentconnection"
    wait_until(lambda: server.query(rows) == [(1,)])
    busy.say(turn, "hello, too")
    busy.end(turn)
    frames, code = read_to_the_end(client)
    assert (frames[-1]["type"], code) == ("response.done", 1012)
    assert output_text(frames[-1]) == "hello, too"
    assert read_to_the_end(busy.socket)[1] == 1012
    assert server.process is not None
    assert server.process.wait(timeout=120) == 0
    assert status(server) == ["completed"]
    assert server.query(rows) == []


@pytest.mark.sampled(1)
@BOTH
def test_a_second_ctrl_c_gives_the_answers_back_at_once(server: Server, *, uvicorn: bool) -> None:
    server.start(uvicorn=uvicorn)
    client = asking_client(server, "slow", "Count")
    client.until("response.delta")
    tell(server, signal.SIGINT)
    time.sleep(1.2)  # what comes sooner is taken for the same wish
    assert server.process is not None
    assert server.process.poll() is None
    began = time.monotonic()
    assert server.end(signal.SIGINT) == 0
    assert time.monotonic() - began < 5
    assert status(server) == ["queued"]


def test_streams_and_batches_end_with_the_server(server: Server) -> None:
    """Uvicorn waits for open requests without end."""
    server.environment["UAMP_GRACE_SECONDS"] = "0.2"
    server.start(uvicorn=True)
    create = {"type": "session.create", "event_id": "1", "uamp_version": "1.0", "session": {}}
    turn = [
        create,
        {"type": "input.text", "event_id": "2", "text": "Count"},
        {"type": "response.create", "event_id": "3"},
    ]
    with httpx.Client(base_url=f"http://127.0.0.1:{server.port}", timeout=30) as web:
        opened = web.post("/agents/teller/events", json=create).raise_for_status()
        session = {"X-Session-ID": opened.headers["X-Session-ID"]}
        with (
            open_stream(web, "GET", "/events/stream", headers=session) as stream,
            open_stream(web, "POST", "/agents/slow/uamp/stream", json=turn) as batch,
        ):
            batch.until("response.delta")
            tell(server, signal.SIGTERM)
            # Both come to an orderly end, where a connection that is cut raises.
            list(stream)
            assert list(batch)[-1].data == "[DONE]"
    assert server.process is not None
    assert server.process.wait(timeout=120) == 0
    assert status(server) == ["queued"]
