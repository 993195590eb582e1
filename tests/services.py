"""Finds the services that some tests need: PostgreSQL, Redis, Chromium.

The environment (TEST_DATABASE_URL, TEST_REDIS_URL, CHROMIUM) comes first, then the usual local
ports and paths. `python -m tests.services postgres` prints a URL, or nothing.
"""

import os
import secrets
import shutil
import socket
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import psycopg
import redis

from tests.programs import Program

# uvicorn as in production.
PROTOCOLS = "uamp_project.servers.uvicorn_protocols"
UVICORN = (
    "-m", "uvicorn", "uamp_project.asgi:application",
    "--http", f"{PROTOCOLS}:HttpProtocol", "--ws", f"{PROTOCOLS}:WebSocketProtocol",
)  # fmt: skip
OPTIONAL_PROGRAM = "an optional program is not installed"
"""The reason of skips that are none of a missing service."""
PORT_TIMEOUT_SECONDS = 2
# Below the ephemeral ports of Linux (net.ipv4.ip_local_port_range).
PORTS = range(20_000, 32_000)
START_TIMEOUT_SECONDS = 120
# The headless shell draws the same pages with a third of the CPU time.
HEADLESS_SHELL = "chromium-headless-shell"
BROWSER_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def postgres() -> str | None:
    """Return the URL of a PostgreSQL where databases can be created, or None."""
    if url := os.environ.get("TEST_DATABASE_URL"):
        return url
    url = "postgres://postgres@127.0.0.1:5432/postgres"
    try:
        psycopg.connect(url, connect_timeout=PORT_TIMEOUT_SECONDS).close()
    except psycopg.OperationalError:
        return None
    return url


def connection_limit(url: str) -> int:
    """Return the number of connections that a PostgreSQL accepts from ordinary users."""
    with psycopg.connect(url, connect_timeout=PORT_TIMEOUT_SECONDS) as server:
        rows = server.execute(
            "SELECT setting::int FROM pg_settings"
            " WHERE name IN ('max_connections', 'superuser_reserved_connections')"
        ).fetchall()
    limits = sorted(row[0] for row in rows)
    return int(limits[1] - limits[0])


def running_redis() -> str | None:
    """Return the URL of a running Redis, or None."""
    url = os.environ.get("TEST_REDIS_URL", "redis://127.0.0.1:6379/15")
    with redis.Redis.from_url(url, socket_connect_timeout=PORT_TIMEOUT_SECONDS) as client:
        try:
            client.ping()
        except redis.RedisError:
            return None
    return url


@contextmanager
def own_redis() -> Iterator[str | None]:
    """Start a private Redis if the program is installed; yield its URL, or None."""
    program = shutil.which("redis-server")
    if program is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="uamp-redis-") as folder:
        path = Path(folder) / "redis.sock"
        options = ["--port", "0", "--unixsocket", str(path), "--save", "", "--dir", folder]
        with Program(program, *options) as process:
            process.wait_until(path.exists)
            yield f"unix://{path}"


def chromium(*, for_calls: bool = False) -> str | None:
    """Return the path of a Chromium, or None; calls prefer a full browser if there is one."""
    if path := os.environ.get("CHROMIUM"):
        return path
    names = (*BROWSER_NAMES, HEADLESS_SHELL) if for_calls else (HEADLESS_SHELL, *BROWSER_NAMES)
    return next(filter(None, map(shutil.which, names)), None)


def node() -> str | None:
    """Return the path of node, preferably the one that the requirements install, or None."""
    beside = Path(sys.executable).with_name("node")
    return str(beside) if beside.exists() else shutil.which("node")


def wait_until_ready(origin: str, process: Program | None = None) -> None:
    """Wait until the server at an origin accepts turns.

    Raises TimeoutError if it does not in time, and ChildProcessError if its process has ended.
    """
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    # Reuse one client: each new one reads the system's certificates.
    with httpx.Client(base_url=origin, trust_env=False) as client:
        while time.monotonic() < deadline:
            if process is not None and process.poll() is not None:
                raise ChildProcessError(f"{origin} ended with {process.returncode}")
            try:
                if client.get("/readyz").status_code == httpx.codes.OK:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.05)
    raise TimeoutError(f"{origin} did not become ready")


def free_port() -> int:
    """Return a free TCP port of 127.0.0.1 for a program that binds it later.

    The kernel gives none of PORTS to connections, or to servers that bind port 0, in between.
    """
    for _ in PORTS:
        # Processes that were forked from one share the state of `random`, and would draw the same.
        port = secrets.choice(PORTS)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise OSError("no port is free")


if __name__ == "__main__":
    find = {"postgres": postgres, "redis": running_redis, "chromium": chromium}[sys.argv[1]]
    sys.stdout.write(find() or "")
