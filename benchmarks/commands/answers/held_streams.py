"""The memory of streams of deltas that are open, because their readers acknowledge nothing.

One socket has 50 streams, each with a window of 1: its question is answered, its first delta is
sent, and the rest waits in the server. Memory is the growth of the process's proportional set size,
per stream. Each round has a server of its own, which has opened and closed 50 streams before.
"""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from typing import TYPE_CHECKING, Final

from benchmarks import gauges, results
from benchmarks.clients.envelopes import AskingPeer, open_streams
from benchmarks.commands.answers.envelopes import plain_server
from benchmarks.rounds import spread
from benchmarks.turn_runs import TEXT

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.commands.answers.envelopes import MeasuredTarget

STREAMS_A_SOCKET: Final = 50


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure each database, with one server after the other."""
    parser = results.parser("held_streams", __doc__)
    parser.add_argument("--streams", type=int, default=1000, metavar="N", help="at once (1000)")
    parser.set_defaults(rounds=3)
    options = parser.parse_args(arguments)
    peer = AskingPeer(TEXT)
    with results.Results("held_streams", options.results) as report:
        for database in results.databases_of(options):
            sizes = []
            for _ in range(options.rounds):
                with ExitStack() as stack:
                    target = plain_server(database, results.settings_of(options), peer, stack)
                    sizes.append(asyncio.run(_size(target, peer, options.streams)))
            figure = spread(sizes)
            print(f"{database}: {figure} KiB for each of {options.streams} streams", flush=True)
            report.add(f"held_streams.{database}.stream", figure, "KiB")


async def _size(target: MeasuredTarget, peer: AskingPeer, streams: int) -> float:
    """Return the memory of a stream in KiB."""
    (server,) = target.gauge.servers
    async with await open_streams(target.place, peer, [STREAMS_A_SOCKET]):
        pass
    full_sockets, rest = divmod(streams, STREAMS_A_SOCKET)
    counts = [STREAMS_A_SOCKET] * full_sockets + [rest] * bool(rest)
    before = gauges.pss_bytes(server.pid)
    async with await open_streams(target.place, peer, counts):
        return (gauges.pss_bytes(server.pid) - before) / streams / 1024
