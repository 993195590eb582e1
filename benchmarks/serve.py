"""`python -m benchmarks.serve server|floor PORT`: uvicorn, one process, as in production.

With BENCH_PROFILE=FILE the calls of the event loop's thread are counted and written to FILE, those
of the turn store's writer thread to FILE.turns (for `pstats`).
"""

from __future__ import annotations

import cProfile
import os
import resource
import signal
import sys
import threading
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Callable

APPLICATIONS = {
    "server": "uamp_project.asgi:application",
    "floor": "benchmarks.floor:application",
}


def profiled(run: Callable[[], None], path: str) -> None:
    """Call a function and write down where its thread spent its time."""
    profile = cProfile.Profile()
    try:
        profile.runcall(run)
    finally:
        profile.dump_stats(path)


def main() -> None:
    """Serve until SIGTERM."""
    kind, port = sys.argv[1:]
    # 1,000 sockets need as many descriptors.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    config = uvicorn.Config(
        APPLICATIONS[kind],
        host="127.0.0.1",
        port=int(port),
        http="h11" if kind == "floor" else "uamp_project.servers.uvicorn_protocols:HttpProtocol",
        ws="wsproto"
        if kind == "floor"
        else "uamp_project.servers.uvicorn_protocols:WebSocketProtocol",
        lifespan="off" if kind == "floor" else "on",
        log_level="warning",
        backlog=4096,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    path = os.environ.get("BENCH_PROFILE")
    if not path or kind == "floor":
        server.run()
        return
    plain_run = threading.Thread.run

    def run(self: threading.Thread) -> None:
        if self.name == "turns":
            profiled(lambda: plain_run(self), f"{path}.turns")
        else:
            plain_run(self)

    # uvicorn raises the signal again when it has stopped, which must not end the process yet.
    signal.signal(signal.SIGTERM, lambda *_: None)
    threading.Thread.run = run  # type: ignore[method-assign]  # a thread is profiled from inside
    profiled(server.run, path)


if __name__ == "__main__":
    main()
