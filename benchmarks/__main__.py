"""`make bench`: run the parts, print a table of each. docs/benchmarks.md says how to read it."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from typing import TYPE_CHECKING

from benchmarks import AGENT, PAID_AGENT, parts, servers

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.parts import Turns
    from benchmarks.servers import Data, Server

PARTS = ("turns", "paid", "memory", "opening")
SOCKETS = (1, 32)
TURN_HEAD = (
    f"{'':22}{'sockets':>8}{'CPU ms/turn':>12}{'web':>7}{'db':>7}{'x floor':>8}"
    f"{'turns/s':>9}{'p50 ms':>8}{'p95':>8}{'1st delta p50':>14}{'p95':>8}"
)


def read_arguments(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what to run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("parts", nargs="*", metavar="part", help=f"of {', '.join(PARTS)}; or all")
    parser.add_argument("--long", action="store_true", help="10 s a cell, not 3; two rounds")
    parser.add_argument("--database", choices=["sqlite", "postgresql"], help="only this one")
    parser.add_argument(
        "--server", choices=["uvicorn", "daphne"], default="uvicorn", help="daphne: embedded mode"
    )
    parser.add_argument("--sockets", type=int, nargs="+", default=SOCKETS, metavar="N")
    parser.add_argument("--idle", type=int, default=1000, metavar="N", help="idle sessions")
    parser.add_argument("--messages", type=int, default=100_000, metavar="N", help="in the chat")
    parser.add_argument(
        "--set", action="append", default=[], metavar="NAME=VALUE", help="setting of the server"
    )
    parser.add_argument("--profile", metavar="FILE", help="write the server's cProfile data")
    chosen = parser.parse_args(arguments)
    if unknown := set(chosen.parts) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}")
    chosen.parts = chosen.parts or list(PARTS)
    return chosen


def main(arguments: Sequence[str] | None = None) -> None:
    """Run what was asked for."""
    chosen = read_arguments(arguments)
    settings = dict(pair.split("=", 1) for pair in chosen.set)
    if chosen.profile:
        settings["BENCH_PROFILE"] = os.path.abspath(chosen.profile)  # noqa: PTH100 a string anyway
    print(f"Python {platform.python_version()}, {os.cpu_count()} cores, {chosen.server}")
    print("A turn: 2 frames in, 22 out, 2 messages and 4 events stored in 2 commits.")
    databases = [chosen.database] if chosen.database else ["sqlite", "postgresql"]
    if not chosen.database and servers.postgres_url() is None:
        print("No PostgreSQL answers; set TEST_DATABASE_URL to measure it too.")
        databases.remove("postgresql")
    for database in databases:
        long_chat = chosen.messages if "opening" in chosen.parts else 1
        with servers.data(database, long_chat, settings) as data:
            run(chosen, database, data)


def run(chosen: argparse.Namespace, database: str, data: Data) -> None:
    """Run the chosen parts on one database."""
    print(f"\n{database}")
    if "turns" in chosen.parts:
        with servers.serving(chosen.server, data.environment) as server:
            print_turns(chosen, server, data)
    if "paid" in chosen.parts:
        with servers.serving(chosen.server, data.environment) as server:
            print_paid(chosen, server, data)
    if "memory" in chosen.parts:
        with servers.serving(chosen.server, data.environment) as server:
            grown = parts.idle_memory(server, data, chosen.idle)
        print(f"memory: {grown * 1000 / 2**20:.1f} MiB (PSS) for 1,000 idle sessions")
    if "opening" in chosen.parts:
        with servers.serving(chosen.server, data.environment) as server:
            print_opening(server, data)


def print_turns(chosen: argparse.Namespace, server: Server, data: Data) -> None:
    """Print the cells of the turn table, each beside its floor."""
    print(TURN_HEAD)
    seconds = 10.0 if chosen.long else 3.0
    frames = parts.record_turn(server, data)
    for _ in range(2 if chosen.long else 1):
        floors = parts.run_floor(frames, data, chosen.sockets, seconds)
        for count in chosen.sockets:
            order = parts.order_for(server, data, text=parts.TEXT, sockets=count, seconds=seconds)
            turns = parts.run_turns(server, data, order)
            floor = floors[count]
            print_row(f"{len(frames)} frames, stored", turns, turns.cpu / floor.cpu)
            print_row(f"{len(frames)} frames, floor", floor, 1.0)


def print_paid(chosen: argparse.Namespace, server: Server, data: Data) -> None:
    """Print what a paid turn costs beside a free one, in turns about."""
    seconds = 10.0 if chosen.long else 3.0
    print(f"{'':22}{'sockets':>8}{'CPU ms/turn':>12}{'web':>7}{'db':>7}{'x free':>8}{'turns/s':>9}")
    for count in chosen.sockets:
        cells: dict[str, list[Turns]] = {AGENT: [], PAID_AGENT: []}
        for _ in range(3):
            for agent, found in cells.items():
                order = parts.order_for(
                    server, data, agent=agent, text=parts.TEXT, sockets=count, seconds=seconds
                )
                found.append(parts.run_turns(server, data, order))
        free, paid = (min(found, key=lambda turns: turns.cpu) for found in cells.values())
        for name, turns in (("free", free), ("paid", paid)):
            print_row(name, turns, turns.cpu / free.cpu)


def print_row(name: str, turns: Turns, ratio: float) -> None:
    """Print one line of the turn table."""
    print(
        f"{name:22}{turns.sockets:>8}{turns.cpu:>12.2f}{turns.web_cpu:>7.2f}"
        f"{turns.database_cpu:>7.2f}{ratio:>8.1f}{turns.per_second:>9.0f}"
        f"{turns.p50:>8.1f}{turns.p95:>8.1f}{turns.first_p50:>14.1f}{turns.first_p95:>8.1f}"
    )
    sys.stdout.flush()


def print_opening(server: Server, data: Data) -> None:
    """Print what opening a chat takes, and how that grows with its length."""
    print(
        f"{'opening a chat of':22}{'':>8}{'REST p50 ms':>12}{'p95':>7}{'session p50':>13}{'p95':>7}"
    )
    first: tuple[float, float] | None = None
    for count, chat_id in sorted(data.chats.items()):
        history = parts.open_history(server, data, chat_id)
        session = parts.open_session(server, data, chat_id)
        first = first or (history["p50"], session["p50"])
        print(
            f"{count:>9,} messages{'':>13}{history['p50']:>12.1f}{history['p95']:>7.1f}"
            f"{session['p50']:>13.1f}{session['p95']:>7.1f}"
            f"   x {history['p50'] / first[0]:.2f}, x {session['p50'] / first[1]:.2f}"
        )


if __name__ == "__main__":
    main()
