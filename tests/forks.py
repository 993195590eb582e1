"""The fork server's own process: imports libraries, then forks for each order of the tests.

A fork becomes the process that was ordered, with its command, environment and streams.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import threading
import time
import warnings
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, NoReturn

from tests.fork_server import ANSWER_SECONDS, HEADER, READY, receive, server, use

UNSAFE: Final = ("grpc", "twisted.internet.reactor")


def serve() -> None:
    """Import libraries, then fork for each order until the tests close the connection."""
    connection = socket.socket(fileno=int(sys.argv[1]))
    names = json.loads(receive(connection, *HEADER.unpack(receive(connection, HEADER.size))))
    _preload(names)
    if threading.active_count() > 1 or any(name in sys.modules for name in UNSAFE):
        raise SystemExit("the libraries have become unfit for a fork")
    gc.collect()
    gc.freeze()
    connection.sendall(READY)
    _take_orders(connection)


def _take_orders(connection: socket.socket) -> None:
    """Fork for each order until the other side closes the connection; a fork never returns."""
    _show_command(["fork", "server", "of", "the", "tests"])
    # Ctrl-C is for the tests, which then close the connection.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        header, fds, _, _ = socket.recv_fds(connection, HEADER.size, 4)
        if not header:
            return
        order = json.loads(receive(connection, *HEADER.unpack(header)))
        pid = _fork(has_own_session=order["has_own_session"])
        if pid is None:
            break
        for fd in fds:
            os.close(fd)
        connection.sendall(HEADER.pack(pid))
    connection.close()
    go, *streams = fds
    if not os.read(go, 1):
        os._exit(1)
    os.close(go)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _become(order, streams)


def _preload(names: list[str]) -> None:
    limit = sys.getrecursionlimit()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            # Some Django modules need settings.
            with suppress(Exception):
                importlib.import_module(name)
    sys.setrecursionlimit(limit)


def _fork(*, has_own_session: bool) -> int | None:
    """Return the id of a new, orphaned process; in that process, None."""
    reading, writing = os.pipe()
    middle = os.fork()
    if middle == 0:
        if os.fork() > 0:
            os._exit(0)
        os.close(reading)
        if has_own_session:
            os.setsid()
        os.write(writing, HEADER.pack(os.getpid()))
        os.close(writing)
        return None
    os.close(writing)
    _wait(middle)
    readable, _, _ = select.select([reading], [], [], ANSWER_SECONDS)
    (pid,) = HEADER.unpack(os.read(reading, HEADER.size) if readable else b"")
    os.close(reading)
    return int(pid)


def _wait(pid: int) -> None:
    """Wait for a child to end."""
    watched = os.pidfd_open(pid)
    select.select([watched], [], [], ANSWER_SECONDS)
    os.close(watched)
    os.waitpid(pid, os.WNOHANG)


def _begin_another(streams: list[int]) -> None:
    """Start another fork server for the workers that this process starts."""
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        # A reader of this process's output waits until every process that holds it has ended.
        for fd in streams:
            os.close(fd)
        _take_orders(theirs)
        os._exit(0)
    theirs.close()
    server.connect(ours)
    use()


def _become(order: dict[str, Any], streams: list[int]) -> NoReturn:
    """Turn into the process that was ordered."""
    match order["arguments"][1:]:
        case ["manage.py", "serve", *options] if "--no-worker" not in options:
            _begin_another(streams)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    os.chdir(order["cwd"])
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    sys.dont_write_bytecode = bool(os.environ.get("PYTHONDONTWRITEBYTECODE"))
    if os.environ.get("PYTHONUNBUFFERED"):
        sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text stream
    _show_command(order["arguments"])
    program, *arguments = order["arguments"][1:]
    if program == "-m":
        sys.path[0] = order["cwd"]
        sys.argv = arguments
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
        sys.exit()
    main = sys.modules["__main__"] = ModuleType("__main__")
    if program == "-c":
        sys.path[0] = ""
        code, *arguments = arguments
        file = "<string>"
    else:
        file = main.__file__ = str(Path(program).resolve())
        sys.path[0] = str(Path(file).parent)
        code = Path(file).read_text(encoding="utf-8")
    sys.argv = [program, *arguments]
    exec(compile(code, file, "exec"), main.__dict__)  # noqa: S102 as the interpreter does
    sys.exit()


def _show_command(command: list[str]) -> None:
    """Make `ps` and psutil show a command for this process.

    The kernel shows a single string if the last byte of the arguments' memory is not zero.
    """
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    # Fields 48 and 49 of proc_pid_stat(5); the list starts at field 3.
    start, end = int(fields[45]), int(fields[46])
    size = end - start
    if size > 0:
        text = " ".join(command).encode()[: size - 2]
        ctypes.memmove(start, text.ljust(size - 1, b"\0") + b".", size)
