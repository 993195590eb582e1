"""A remote agent over UAMP whose connection is lost in the middle of its answer."""

from __future__ import annotations

import re
import select
import socket
import socketserver
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from agents_app.models import Agent
from agents_app.providers import scripts
from agents_app.remote.protocols import uamp_socket
from sessions_app.models import Response
from tests.agents_app.remote.remote_agents import remote_agent
from tests.agents_app.remote.test_loopback import states_of
from tests.client import wait_until
from tests.live_server import quick_agent
from tests.sessions_app.turn.delegation import answer_text
from tests.threads import join_threads
from upp.providers.scripted import Pause, Reasoning, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person

PIECE_BYTES = 65_536
TEXT = b'"response.delta"'
LONG_WORDS = "eleven " * 1_000
THOUGHT = ("First I think. ", "Then I think again.")


class Relay(socketserver.ThreadingTCPServer):
    """Passes connections on, and cuts the first `cuts` of them after some pieces of an answer."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(self, port: int, cuts: int) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.upstream = port
        self.cuts = cuts
        self.was_cut = 0
        self.lock = threading.Lock()


class _Connection(socketserver.BaseRequestHandler):
    server: Relay

    def handle(self) -> None:
        """See BaseRequestHandler."""
        with socket.create_connection(("127.0.0.1", self.server.upstream)) as upstream:
            client: socket.socket = self.request
            others = {client: upstream, upstream: client}
            seen = 0
            while True:
                for ready in select.select(list(others), [], [])[0]:
                    try:
                        piece = ready.recv(PIECE_BYTES)
                        others[ready].sendall(piece)
                    except OSError:
                        return
                    if not piece:
                        return
                    seen += piece.count(TEXT) if ready is upstream else 0
                if seen > 1 and self._may_cut():
                    return

    def _may_cut(self) -> bool:
        with self.server.lock:
            if self.server.was_cut >= self.server.cuts:
                return False
            self.server.was_cut += 1
            return True


@contextmanager
def relayed(address: str, cuts: int) -> Iterator[Relay]:
    """Run a relay before the server at an address."""
    with Relay(int(address.rpartition(":")[2]), cuts) as relay:
        thread = threading.Thread(target=relay.serve_forever, daemon=True)
        thread.start()
        yield relay
        relay.shutdown()
        join_threads([thread])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("cuts", [1, uamp_socket.RESUMES])
def test_the_session_is_resumed_and_the_answer_is_whole(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person, cuts: int
) -> None:
    with relayed(demo.http, cuts) as relay:
        origin = f"http://127.0.0.1:{relay.server_address[1]}"
        remote_agent(f"{origin}/agents/slow", protocol="uamp", key=bob.key, model="slow")
        client = dial(alice)
        client.create_session(agent="far")
        client.ask(f"count {LONG_WORDS}")
        text = answer_text(client.until("response.done", "response.error"))
        assert relay.was_cut == cuts
    numbers = [int(number) for number in re.findall(r"[0-9]+", text)]
    assert numbers == list(range(1, 201)), "nothing is missing, and nothing came twice"
    assert states_of(Agent.objects.get(name="slow")) == ["completed"], "it was asked once"
    # The conversation was sent on the first connection only; its tokens count all the same.
    near, over_there = (Response.objects.get(agent__name=name).usage for name in ("far", "slow"))
    assert near is not None
    assert over_there is not None
    assert near["input_tokens"] == over_there["input_tokens"] > 1_000


def test_thoughts_are_shown_once(
    demo: ServerAddress,
    dial: Dial,
    alice: Person,
    bob: Person,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def thinks_and_counts(*_args: object) -> AsyncGenerator[Step, None]:
        for piece in THOUGHT:
            yield Reasoning(piece)
        for number in range(20):
            yield Pause(0.05)
            yield Text(f"{number} ")

    monkeypatch.setitem(scripts.SCRIPTS, "thinks-and-counts", thinks_and_counts)
    quick_agent("pensive", "thinks-and-counts")
    with relayed(demo.http, 1) as relay:
        origin = f"http://127.0.0.1:{relay.server_address[1]}"
        remote_agent(f"{origin}/agents/pensive", protocol="uamp", key=bob.key, model="pensive")
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("count")
        frames = client.until("response.done", "response.error")
        assert relay.was_cut == 1
    assert answer_text(frames).split() == [str(number) for number in range(20)]
    thoughts = [frame["content"] for frame in frames if frame["type"] == "thinking"]
    assert "".join(thoughts) == "".join(THOUGHT)


def test_after_so_many_connections_the_answer_fails_and_is_stopped_over_there(
    demo: ServerAddress, dial: Dial, alice: Person, bob: Person
) -> None:
    with relayed(demo.http, uamp_socket.RESUMES + 1) as relay:
        origin = f"http://127.0.0.1:{relay.server_address[1]}"
        remote_agent(f"{origin}/agents/slow", protocol="uamp", key=bob.key, model="slow")
        client = dial(alice)
        client.create_session(agent="far")
        client.ask("count")
        error = client.until("response.error")[-1]["error"]
        assert error["code"] == "agent_offline"
        # The relay lets the next connection pass.
        slow = Agent.objects.get(name="slow")
        wait_until(lambda: states_of(slow) == ["cancelled"])
