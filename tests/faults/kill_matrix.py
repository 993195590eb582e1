"""`python -m tests.faults.kill_matrix`: kill processes at many points of turns, see what is left.

Seeded: the same seed makes the same plan. At each point some turns run at once; when the first of
them comes to the point, a server or a worker is killed (SIGKILL) and started again, and when
everything has settled the rows, REST and what the clients received must agree.
Prints a line a point; the exit status is 0 when nothing was wrong.
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

from tests.faults.kill_checks import State, check_logs, check_turn, is_settled
from tests.faults.kill_clients import Asker, Listener, new_tag
from tests.faults.kill_money import check_money
from tests.faults.kill_script import IDEMPOTENT, TOOLS_OF
from tests.faults.kill_servers import running_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.client import Frame
    from tests.faults.kill_servers import ServerGroup

TURNS: Final = 3
SETTLE_SECONDS: Final = 45.0
JOIN_SECONDS: Final = 90.0
# How long a turn takes when nothing is killed.
LENGTH: Final = {"teller": 0.8, "stepper": 2.4, "sender": 1.8, "asker": 1.6, "pair": 2.0}
LONG: Final = [name for name, tools in TOOLS_OF.items() if set(tools) & set(IDEMPOTENT)]


@dataclass(frozen=True, kw_only=True)
class Point:
    """The time and victim of a kill; `second` is a kill of the other kind, seconds later."""

    number: int
    victim: str
    agents: Sequence[str]
    trigger: str
    after: float
    second: float | None
    pause: float


@dataclass
class Outcome:
    """The outcome of a point."""

    point: Point
    killed: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def make_plan(points: int, seed: int) -> list[Point]:
    """Return the points of a run: servers and workers in turn, uniform in time or at an event."""
    chance = random.Random(seed)  # noqa: S311 it has to be the same again
    plan = []
    for number in range(points):
        victim = ("server", "worker")[number % 2]
        first = chance.choice(list(TOOLS_OF) if victim == "server" else LONG)
        agents = [first, *chance.choices(list(TOOLS_OF), k=TURNS - 1)]
        trigger = "time" if chance.random() < 0.5 else chance.choice(_triggers(first, victim))
        plan.append(
            Point(
                number=number,
                victim=victim,
                agents=agents,
                trigger=trigger,
                after=chance.uniform(0, LENGTH[first] * 1.05) if trigger == "time" else 0.0,
                second=chance.uniform(0.2, 3.0) if chance.random() < 0.25 else None,
                pause=chance.uniform(0, 1.0),
            )
        )
    return plan


def _triggers(agent: str, victim: str) -> list[str]:
    if victim == "worker":
        return ["call", "progress", "effect", "effect", "result"]
    tools = {"teller": (), "asker": ("call",)}.get(agent, ("call", "progress", "effect", "result"))
    return ["created", "almost", "end", *tools]


def _is_at(trigger: str, frame: Frame) -> bool:
    """Return whether a frame is the event of a trigger."""
    delta = frame.get("delta")
    kind = delta.get("type") if isinstance(delta, dict) else None
    text = frame["delta"]["text"] if kind == "text" else ""
    matches: dict[str, bool] = {
        "created": frame["type"] == "response.created",
        "call": frame["type"] == "tool.call" or kind == "tool_call",
        "progress": frame["type"] == "progress",
        # The tool has had an effect and has not ended.
        "effect": frame["type"] == "progress" and (frame["percent"] or 0) >= 60,
        "result": kind == "tool_result",
        "almost": "almost" in text,
        "end": "end." in text,
    }
    return matches.get(trigger, False)


class Killer:
    """Kills at one point, and starts again what it killed."""

    def __init__(self, group: ServerGroup, point: Point, outcome: Outcome) -> None:
        self._group = group
        self._point = point
        self._outcome = outcome
        self._begun = threading.Event()
        self._reached = threading.Event()
        self._first: Asker | None = None
        self._thread = threading.Thread(target=self._run, name="killer", daemon=True)

    def watch(self, asker: Asker, frame: Frame) -> None:
        """Look at what the first asker receives."""
        if asker is not self._first:
            return
        if frame["type"] == "response.created":
            self._begun.set()
        if _is_at(self._point.trigger, frame):
            self._reached.set()

    def start(self, first: Asker) -> None:
        """Wait for the point."""
        self._first = first
        self._thread.start()

    def finish(self) -> None:
        """Wait until everything that was killed runs again."""
        self._thread.join(JOIN_SECONDS)
        if self._thread.is_alive():
            self._outcome.wrong.append("what was killed did not start again")

    def _run(self) -> None:
        point = self._point
        if point.trigger == "time":
            self._begun.wait(SETTLE_SECONDS)
            time.sleep(point.after)
        elif not self._reached.wait(SETTLE_SECONDS):
            self._outcome.wrong.append(f"the point {point.trigger} never came")
            return
        again = self._kill(point.victim)
        if point.second is not None:
            time.sleep(point.second)
            other = "worker" if point.victim == "server" else "server"
            if other == "server" or self._group.worker_pids():
                self._restart(self._kill(other))
        time.sleep(point.pause)
        self._restart(again)

    def _kill(self, victim: str) -> int | None:
        """Kill the server of the first asker, or the worker that has its call."""
        if self._first is None:
            raise RuntimeError("no client asked")
        if victim == "server":
            number = self._first.server
            self._group.kill_server(number)
            self._outcome.killed.append(f"server{number}")
            return number
        lines = self._group.journal(self._first.tag)
        busy = [self._group.worker_of(int(line[3])) for line in lines]
        pid = next(filter(None, reversed(busy)), None) or self._group.worker_pids()[0]
        self._group.kill_worker(pid)
        self._outcome.killed.append("worker")
        return None

    def _restart(self, server: int | None) -> None:
        if server is not None:
            self._group.restart_server(server)


def run_point(group: ServerGroup, point: Point) -> Outcome:
    """Run the turns of one point, kill, let it settle, and check everything."""
    began = time.monotonic()
    outcome = Outcome(point)
    killer = Killer(group, point, outcome)
    servers = len(group.ports)
    askers = [
        Asker(group, point.number // 2 % servers, agent=agent, tag=new_tag(n), watch=killer.watch)
        for n, agent in enumerate(point.agents)
    ]
    listeners = []
    for asker in askers:
        asker.start()
        asker.ready.wait(SETTLE_SECONDS)
        listener = Listener(group, (asker.server + 1) % servers, asker)
        listener.start()
        listener.ready.wait(SETTLE_SECONDS)
        listeners.append(listener)
    killer.start(askers[0])
    for asker in askers:
        asker.ask()
    killer.finish()
    for client in (*askers, *listeners):
        client.join(JOIN_SECONDS)
    _settle(group, outcome)
    state = State(group)
    outcome.wrong += check_logs(state)
    outcome.wrong += check_money(group, state)
    for asker, listener in zip(askers, listeners, strict=True):
        outcome.wrong += check_turn(group, state, asker, listener)
        response = state.responses.get(asker.response_id, {})
        calls = state.calls_of(asker.response_id)
        unknown = any(call["status"] == "unknown" for call in calls)
        error = asker.end.get("error", {}).get("code", "")
        outcome.ends.append(
            error or f"{response.get('status', 'no response')}{'?' if unknown else ''}"
        )
    outcome.seconds = time.monotonic() - began
    return outcome


def _settle(group: ServerGroup, outcome: Outcome) -> None:
    deadline = time.monotonic() + SETTLE_SECONDS
    while not is_settled(group):
        if time.monotonic() > deadline:
            outcome.wrong.append("it did not settle")
            return
        time.sleep(0.1)


def run_matrix(
    database: str,
    *,
    points: int,
    seed: int,
    only: Sequence[int] = (),
    copy_migrated: Callable[[Path], None] | None = None,
) -> list[Outcome]:
    """Run a plan on servers of its own; returns what became of each point.

    `copy_migrated` is that of `running_servers`.
    """
    plan = [point for point in make_plan(points, seed) if not only or point.number in only]
    outcomes = []
    with running_servers(database, copy_migrated=copy_migrated) as group:
        for point in plan:
            outcomes.append(run_point(group, point))
            _print(outcomes[-1])
    return outcomes


def _print(outcome: Outcome) -> None:
    point = outcome.point
    when = f"{point.after:.2f} s" if point.trigger == "time" else point.trigger
    ends = ", ".join(
        f"{agent} {end}" for agent, end in zip(point.agents, outcome.ends, strict=False)
    )
    killed = "+".join(outcome.killed)
    sys.stdout.write(
        f"{point.number:>3} {killed:15} {when:9} {outcome.seconds:5.1f} s  {ends:60} "
        f"{'WRONG' if outcome.wrong else 'ok'}\n"
    )
    for line in outcome.wrong:
        sys.stdout.write(f"      {line}\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what was asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.kill_matrix", description=__doc__)
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--database", choices=["sqlite", "postgres"], default="sqlite")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, nargs="+", default=(), help="points of the plan")
    chosen = parser.parse_args(arguments)
    outcomes = run_matrix(chosen.database, points=chosen.points, seed=chosen.seed, only=chosen.only)
    ends = Counter(end for outcome in outcomes for end in outcome.ends)
    wrong = sum(bool(outcome.wrong) for outcome in outcomes)
    kills = sum(len(outcome.killed) for outcome in outcomes)
    sys.stdout.write(
        f"{chosen.database}, seed {chosen.seed}: {len(outcomes)} points, {kills} kills,"
        f" {sum(ends.values())} turns: {dict(ends)}; {wrong} points wrong\n"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
