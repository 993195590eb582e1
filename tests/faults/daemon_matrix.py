"""`python -m tests.faults.daemon_matrix`: kill what an answer of a connected agent stands on.

Two servers on PostgreSQL and Redis, and one or two daemons of an agent that has a price. At each
point some clients ask; at a random time a daemon, the server that holds it, the server that was
asked, or a worker is killed and started again. When everything has settled each response has one
end, what it said is what the daemon said, and the money is right. In every second turn the daemon
has a worker run a long tool before it answers. Seeded, as `kill_matrix`.
"""

from __future__ import annotations

import argparse
import random
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from tests.faults.kill_checks import State, check_logs, is_settled
from tests.faults.kill_clients import Asker, new_tag
from tests.faults.kill_daemons import AGENT, ANSWER, PREPARE, RestlessDaemon
from tests.faults.kill_matrix import JOIN_SECONDS, SETTLE_SECONDS
from tests.faults.kill_money import check_money
from tests.faults.kill_servers import running_servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.client import Frame
    from tests.faults.kill_servers import ServerGroup

TURNS: Final = 3
LENGTH: Final = 1.3
VICTIMS: Final = ("daemon", "holder", "asked", "worker", "daemons")
ENDS: Final = {"completed", "interrupted", "agent_offline"}


@dataclass(frozen=True, kw_only=True)
class DaemonPoint:
    """The victim of a kill, the seconds after the first answer began, and the time it is away."""

    number: int
    victim: str
    after: float
    pause: float
    spare: bool


@dataclass
class DaemonOutcome:
    """The outcome of a point."""

    point: DaemonPoint
    ends: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def make_plan(points: int, seed: int) -> list[DaemonPoint]:
    """Return the points of a run: each victim in turn, with and without a second daemon."""
    chance = random.Random(seed)  # noqa: S311 it has to be the same again
    return [
        DaemonPoint(
            number=number,
            victim=VICTIMS[number % len(VICTIMS)],
            after=chance.choice([0.0, chance.uniform(0, LENGTH * 1.1)]),
            pause=chance.uniform(0, 1.0),
            spare=chance.random() < 0.7,
        )
        for number in range(points)
    ]


class DaemonFixture:
    """The daemons of a group: the first one is always there, the second one for some points."""

    def __init__(self, group: ServerGroup) -> None:
        self.group = group
        self.token = group.run(PREPARE).split()[-1]
        self.daemons: list[RestlessDaemon] = []

    def have(self, count: int, *, first: int) -> None:
        """Have so many registered daemons; the first one at a server, the second at another."""
        self.stop()
        servers = len(self.group.ports)
        self.daemons = [
            RestlessDaemon(self.group, (first + n) % servers, self.token) for n in range(count)
        ]
        for daemon in self.daemons:
            daemon.start()
        for daemon in self.daemons:
            if not daemon.registered.wait(SETTLE_SECONDS):
                raise TimeoutError(f"{daemon.name} was not registered")

    def stop(self) -> None:
        """End the daemons."""
        for daemon in self.daemons:
            daemon.stop()
        for daemon in self.daemons:
            daemon.join(SETTLE_SECONDS)
        self.daemons = []


def run_point(group: ServerGroup, fixture: DaemonFixture, point: DaemonPoint) -> DaemonOutcome:
    """Ask, kill, let it settle, and check everything."""
    began = time.monotonic()
    outcome = DaemonOutcome(point)
    asked_server = point.number % len(group.ports)
    fixture.have(2 if point.spare else 1, first=(asked_server + 1) % len(group.ports))
    has_begun = threading.Event()

    def watch(_asker: Asker, frame: Frame) -> None:
        if frame["type"] == "response.created":
            has_begun.set()

    askers = [
        Asker(group, asked_server, agent=AGENT, tag=new_tag(n), watch=watch) for n in range(TURNS)
    ]
    for asker in askers:
        asker.start()
        asker.ready.wait(SETTLE_SECONDS)
    for asker in askers:
        asker.ask()
    has_begun.wait(SETTLE_SECONDS)
    time.sleep(point.after)
    _kill(group, fixture, point, asked_server)
    for asker in askers:
        asker.join(JOIN_SECONDS)
    _check(group, askers, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def _kill(
    group: ServerGroup, fixture: DaemonFixture, point: DaemonPoint, asked_server: int
) -> None:
    if point.victim.startswith("daemon"):
        several = point.victim == "daemons"
        for daemon in fixture.daemons if several else fixture.daemons[:1]:
            daemon.kill(point.pause)
    elif point.victim == "worker":
        group.kill_worker(group.worker_pids()[0])
    else:
        server = asked_server if point.victim == "asked" else (asked_server + 1) % len(group.ports)
        group.kill_server(server)
        time.sleep(point.pause)
        group.restart_server(server)


def _check(group: ServerGroup, askers: Sequence[Asker], outcome: DaemonOutcome) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    while not is_settled(group):
        if time.monotonic() > deadline:
            outcome.wrong.append("it did not settle")
            break
        time.sleep(0.1)
    state = State(group)
    outcome.wrong += check_logs(state)
    outcome.wrong += check_money(group, state)
    called = any(state.calls_of(asker.response_id) for asker in askers)
    if outcome.point.victim == "worker" and not called:
        outcome.wrong.append("no tool was called, so that no worker took part")
    for asker in askers:
        if asker.failure is not None:
            outcome.wrong.append(f"{asker.name}: {asker.failure!r}")
        response = state.responses.get(asker.response_id, {})
        code = asker.end.get("error", {}).get("code", "")
        end = code or str(response.get("status", "no response"))
        outcome.ends.append(end)
        text = str(response.get("text", ""))
        if end not in ENDS:
            outcome.wrong.append(f"{asker.name} ended as {end}")
        if (text != ANSWER) if end == "completed" else not ANSWER.startswith(text):
            outcome.wrong.append(f"{asker.name} ({end}) said {text!r}")
        if end == "completed" and asker.story.texts.get(asker.response_id) != ANSWER:
            received_text = asker.story.texts.get(asker.response_id)
            outcome.wrong.append(f"{asker.name} received {received_text!r}")


def run_daemon_matrix(*, points: int, seed: int, only: Sequence[int] = ()) -> list[DaemonOutcome]:
    """Run a plan on servers of its own; returns what became of each point."""
    plan = [point for point in make_plan(points, seed) if not only or point.number in only]
    outcomes = []
    with running_servers("postgres", {"UAMP_DAEMON_ANSWERS": "8"}) as group:
        fixture = DaemonFixture(group)
        try:
            for point in plan:
                outcomes.append(run_point(group, fixture, point))
                _print(outcomes[-1])
        finally:
            fixture.stop()
    return outcomes


def _print(outcome: DaemonOutcome) -> None:
    point = outcome.point
    daemons = "2 daemons" if point.spare else "1 daemon"
    sys.stdout.write(
        f"{point.number:>3} {point.victim:8} {daemons:9} {point.after:.2f} s"
        f" {outcome.seconds:5.1f} s  {', '.join(outcome.ends):45}"
        f" {'WRONG' if outcome.wrong else 'ok'}\n"
    )
    for line in outcome.wrong:
        sys.stdout.write(f"      {line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.daemon_matrix")
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", default=(), help="points of the plan")
    chosen = parser.parse_args(arguments)
    outcomes = run_daemon_matrix(points=chosen.points, seed=chosen.seed, only=chosen.only)
    ends = Counter(end for outcome in outcomes for end in outcome.ends)
    wrong = sum(bool(outcome.wrong) for outcome in outcomes)
    sys.stdout.write(
        f"seed {chosen.seed}: {len(outcomes)} points, {sum(ends.values())} turns: {dict(ends)};"
        f" {wrong} points wrong\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
