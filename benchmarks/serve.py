"""`serve.py server|floor|broadcast|proxy PORT`: uvicorn with one process, as in production.

Threads write their names to /proc, so that the CPU time of the turn store's writer can be read
there. BENCH_PROFILE=FILE profiles the event loop's thread to FILE and the writer to FILE.turns (for
`pstats`).
"""

from __future__ import annotations

import cProfile
import os
import resource
import signal
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn

if TYPE_CHECKING:
    from collections.abc import Callable

APPLICATIONS = {
    "server": "uamp_project.asgi:application",
    "floor": "benchmarks.stubs.floor:application",
    "broadcast": "benchmarks.stubs.broadcast:application",
    "proxy": "benchmarks.stubs.proxy:application",
}


PROTOCOLS = (
    "uamp_project.servers.uvicorn_protocols:HttpProtocol",
    "uamp_project.servers.uvicorn_protocols:WebSocketProtocol",
)
# Their place in commits before 09409bf, which can be measured too.
EARLIER_PROTOCOLS = ("uamp_project.asgi_protocols:Requests", "uamp_project.asgi_protocols:Sockets")


def profiled(run: Callable[[], None], path: str) -> None:
    """Call a function and write a profile of its thread."""
    profile = cProfile.Profile()
    try:
        profile.runcall(run)
    finally:
        profile.dump_stats(path)


def name_threads(profile: str | None) -> None:
    """Have every thread write its name to /proc; profile the writer if requested."""
    plain_run = threading.Thread.run

    def run(self: threading.Thread) -> None:
        Path(f"/proc/self/task/{threading.get_native_id()}/comm").write_text(self.name[:15])
        if profile and self.name == "turns":
            profiled(lambda: plain_run(self), f"{profile}.turns")
        else:
            plain_run(self)

    threading.Thread.run = run  # type: ignore[method-assign]  # a thread names itself from inside


def main() -> None:
    """Serve until SIGTERM."""
    kind, port = sys.argv[1:]
    # 1,000 sockets need as many descriptors.
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    is_ours = kind == "server"
    is_earlier = Path("uamp_project/asgi_protocols.py").exists()
    http, websocket = EARLIER_PROTOCOLS if is_earlier else PROTOCOLS
    config = uvicorn.Config(
        APPLICATIONS[kind],
        host="127.0.0.1",
        port=int(port),
        http=http if is_ours else "h11",
        ws=websocket if is_ours else "wsproto",
        lifespan="on" if is_ours else "off",
        log_level="warning",
        backlog=4096,
        timeout_graceful_shutdown=5,
    )
    server = uvicorn.Server(config)
    path = os.environ.get("BENCH_PROFILE") if is_ours else None
    name_threads(path)
    if not path:
        server.run()
        return
    # uvicorn raises the signal again after it has stopped, which must not end the process yet.
    signal.signal(signal.SIGTERM, lambda *_: None)
    profiled(server.run, path)


if __name__ == "__main__":
    main()
