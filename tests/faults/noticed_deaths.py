"""`python -m tests.faults.noticed_deaths`: how soon the death of a server is noticed.

Two servers on PostgreSQL and Redis, with the product's own leases. A person asks at one of them;
the answer is half said by a daemon of the other one, which is killed (SIGKILL). The time runs from
the kill to the terminal event at the person's socket. The exit status is 1 if one kill took longer
than five seconds.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tests.client import wait_until
from tests.faults.daemon_matrix import DaemonFixture
from tests.faults.held_daemons import HOLDER, client_of, daemon_at, end_of
from tests.faults.kill_servers import running_servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.client import Frame
    from tests.faults.kill_servers import ServerGroup

HALF: Final = "half"
NOTICED_SECONDS: Final = 5.0
BEATS_SECONDS: Final = 2.0
"""A kill comes at any place of the pause between two heartbeats."""
SETTINGS: Final = {"UAMP_LEASE_SECONDS": "60", "UAMP_SWEEP_SECONDS": "60"}
"""Without the heartbeat of the dead process, its answer would end after a minute."""


class NoticedDeath(NamedTuple):
    """The end that the person received, so many seconds after the kill."""

    end: Frame
    seconds: float


def kill_the_holder(fixture: DaemonFixture, *, after: float = 0.0) -> NoticedDeath:
    """Kill the server that holds a daemon in mid-answer, and start it again."""
    group = fixture.group
    with client_of(group) as client:
        daemon = daemon_at(fixture, HOLDER)
        client.ask("hello")
        daemon.say(daemon.turn(), HALF)
        client.until("response.delta")
        # Until its text is written, nothing was shown that another process could not repeat.
        wait_until(lambda: HALF in [row["text"] for row in _answers(group)])
        time.sleep(after)
        killed_at = time.monotonic()
        group.kill_server(HOLDER)
        end = end_of(client)
        seconds = time.monotonic() - killed_at
    group.restart_server(HOLDER)
    return NoticedDeath(end, seconds)


def _answers(group: ServerGroup) -> list[dict[str, Any]]:
    rows = group.rows("sessions_app_response", "status, text")
    return [row for row in rows if row["status"] == "in_progress"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Kill as often as asked for; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults.noticed_deaths")
    parser.add_argument("--kills", type=int, default=10)
    chosen = parser.parse_args(arguments)
    delays = []
    with running_servers("postgres", SETTINGS) as group:
        fixture = DaemonFixture(group)
        for _ in range(chosen.kills):
            after = random.uniform(0, BEATS_SECONDS)  # noqa: S311 no secret
            death = kill_the_holder(fixture, after=after)
            delays.append(death.seconds)
            code = death.end["error"]["code"]
            sys.stdout.write(f"{code} {death.seconds:.2f} s after the kill\n")
            sys.stdout.flush()
    sys.stdout.write(
        f"{len(delays)} kills: median {statistics.median(delays):.2f} s,"
        f" {min(delays):.2f} to {max(delays):.2f}\n"
    )
    return 1 if max(delays) > NOTICED_SECONDS else 0


if __name__ == "__main__":
    sys.exit(main())
