"""Starts product processes as forks of a process that has already imported their libraries.

Importing them costs a process several seconds of CPU; a fork has them at once. After `use`, every
`subprocess.Popen` of `python manage.py`, of a module in FORKED, or of code that sets up Django is
handled by the fork server of this process, which starts on first use. The fork becomes a child of
this process, which waits for it and stops it like any other. The product's own modules are imported
in the fork, with its own environment. `serve` has a separate fork server for its workers.

Processes that depend on a fresh interpreter start without it, as do all processes once the fork
server has failed to respond.
"""

from __future__ import annotations

import ctypes
import inspect
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT: Final = Path(__file__).resolve().parents[1]
START_SECONDS: Final = 120.0
ANSWER_SECONDS: Final = 30.0
WORKER: Final = "uamp_project.embedded.worker"
FORKED: Final = frozenset({"celery", "tests.faults.ledger_debits", "uvicorn", WORKER})
SERVERS: Final = "tests.uamp_project.servers."
# Libraries of the product that import neither settings nor anything that starts a thread. Not gRPC,
# which does not survive a fork, nor OpenTelemetry, which reads its environment when imported.
LIBRARIES: Final = frozenset({
    "aiohttp", "asgiref", "billiard", "celery", "channels", "charset_normalizer", "click",
    "cryptography", "dateutil", "django", "httpcore", "httpx", "httpx2", "jwt", "kombu", "limits",
    "linkify_it", "markdown_it", "msgspec", "multidict", "nh3", "PIL", "prompt_toolkit", "psutil",
    "psycopg", "psycopg_pool", "pydantic", "pygments", "redis", "regex", "requests", "rfc8785",
    "rich", "servestatic", "sqlparse", "starlette", "uamp", "uap", "upp", "urllib3", "uvicorn",
    "wcwidth", "websockets", "x402", "yaml", "yarl",
})  # fmt: skip
# Daphne's, but not the reactor, whose epoll would be shared by all forks.
TWISTED: Final = (
    "autobahn.twisted.websocket", "daphne.http_protocol", "twisted.internet.asyncioreactor",
    "twisted.internet.endpoints", "twisted.web.http",
)  # fmt: skip
# Variables that Python reads at start-up and that a fork can still apply.
FOLLOWED: Final = frozenset({"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"})

PR_SET_CHILD_SUBREAPER: Final = 36
PR_GET_CHILD_SUBREAPER: Final = 37
HEADER: Final = struct.Struct("!I")
READY: Final = b"r"
# `ps` shows the command of a fork in place of the server's own arguments.
ROOM: Final = "-" * 1000
PIPES: Final = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
# The defaults passed on by `Popen`; a process started with other values is not forked.
DEFAULTS: Final = {
    "executable": None, "preexec_fn": None, "close_fds": True, "pass_fds": (), "shell": False,
    "gid": None, "gids": None, "uid": None, "umask": -1, "process_group": -1,
}  # fmt: skip

_execute = subprocess.Popen._execute_child  # type: ignore[attr-defined]  # starts every process
_PARAMETERS: Final = list(inspect.signature(_execute).parameters)[1:]


class ForkServer:
    """The fork server of this process; any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._socket: socket.socket | None = None
        self._has_failed = False

    def connect(self, connection: socket.socket) -> None:
        """Use a fork server that is already running."""
        connection.settimeout(ANSWER_SECONDS)
        self._socket = connection

    def start(self, order: dict[str, Any], fds: list[int]) -> int | None:
        """Start a process with these streams; return its id, or None without a server."""
        with self._lock:
            if self._has_failed:
                return None
            try:
                if self._socket is None:
                    self._socket = self._begin()
                return self._ask(self._socket, order, fds)
            except OSError:
                self._has_failed = True
                self._end()
                return None

    def close(self) -> None:
        """Stop the fork server; the processes it started continue."""
        with self._lock:
            self._end()

    def _begin(self) -> socket.socket:
        ours, theirs = socket.socketpair()
        ours.settimeout(START_SECONDS)
        # Without settings: imported modules must not read those of the tests.
        variables = {
            name: value
            for name, value in os.environ.items()
            if name not in {"DJANGO_SETTINGS_MODULE", "PYTHONUNBUFFERED"}
        }
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 our own interpreter
                [sys.executable, "-c", "from tests.forks import serve; serve()",
                 str(theirs.fileno()), ROOM],
                cwd=ROOT,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )  # fmt: skip
        libraries = [name for name in list(sys.modules) if name.partition(".")[0] in LIBRARIES]
        send(ours, [*libraries, *TWISTED], [])
        receive(ours, len(READY))
        self.connect(ours)
        return ours

    def _ask(self, connection: socket.socket, order: dict[str, Any], fds: list[int]) -> int:
        # The fork continues when it reads a byte, and exits if this process has given it up.
        reading, writing = os.pipe()
        try:
            with _adopting():
                send(connection, order, [reading, *fds])
                (pid,) = HEADER.unpack(receive(connection, HEADER.size))
            # Raises ChildProcessError unless the fork has become a child of this process.
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            os.write(writing, b"\0")
        finally:
            os.close(reading)
            os.close(writing)
        return int(pid)

    def _end(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=ANSWER_SECONDS)
            self._process = None


server = ForkServer()


def use() -> None:
    """Make processes of the product forks, on Linux."""
    if sys.platform == "linux":
        subprocess.Popen._execute_child = _execute_child  # type: ignore[attr-defined]  # as above


def _execute_child(process: Any, *values: Any) -> None:
    """Start a process like `Popen._execute_child`, but as a fork if it is one of the product."""
    options = dict(zip(_PARAMETERS, values, strict=True))
    environment = dict(os.environ if options["env"] is None else options["env"])
    pid = None
    if _may_fork(options, environment):
        order = {
            "arguments": list(map(os.fspath, options["args"])),
            "cwd": os.fspath(options["cwd"] or Path.cwd()),
            "environment": environment,
            "has_own_session": options["start_new_session"],
        }
        streams = (options["p2cread"], options["c2pwrite"], options["errwrite"])
        fds = [number if fd == -1 else fd for number, fd in enumerate(streams)]
        pid = server.start(order, fds)
    if pid is None:
        _execute(process, *values)
        return
    process.pid = pid
    process._child_created = True
    process._close_pipe_fds(*(options[name] for name in PIPES))


def _may_fork(options: dict[str, Any], environment: dict[str, str]) -> bool:
    """Return whether a command is one of this checkout's own programs, which may run in a fork."""
    if any(options.get(name, default) != default for name, default in DEFAULTS.items()):
        return False
    folder = Path(options["cwd"] or Path.cwd()).resolve()
    if folder != ROOT and (folder / "manage.py").exists():
        return False  # another release, and a fork has this one's libraries
    match options["args"]:
        case [sys.executable, "manage.py", *_]:
            pass
        case [sys.executable, "-m", str(name), *_] if name in FORKED or name.startswith(SERVERS):
            pass
        case [sys.executable, "-c", str(code), *_] if "django.setup()" in code:
            pass
        case _:
            return False
    read_at_start = {
        name
        for name, value in environment.items()
        if value and name.startswith("PYTHON") and name not in FOLLOWED
    }
    return not read_at_start - {"PYTHONPATH"} and environment.get("PYTHONPATH") in {
        *(None, "", str(ROOT))
    }


@contextmanager
def _adopting() -> Iterator[None]:
    """Adopt orphaned descendants for the length of a block.

    Not for longer, because this process does not wait for other orphans.
    """
    prctl = ctypes.CDLL(None).prctl
    before = ctypes.c_int()
    prctl(PR_GET_CHILD_SUBREAPER, ctypes.byref(before), 0, 0, 0)
    prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(PR_SET_CHILD_SUBREAPER, before.value, 0, 0, 0)


def send(connection: socket.socket, message: object, fds: list[int]) -> None:
    """Send a message as a big-endian uint32 length and that many bytes of JSON."""
    text = json.dumps(message).encode()
    socket.send_fds(connection, [HEADER.pack(len(text))], fds)
    connection.sendall(text)


def receive(connection: socket.socket, size: int) -> bytes:
    """Return exactly `size` bytes; raises ConnectionError if the other side has closed."""
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            raise ConnectionError("the fork server has ended")
        data += piece
    return data
