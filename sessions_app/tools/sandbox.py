"""A separate process for each long tool call, which can be killed at any time.

A tool that hangs, loops, uses up memory or ends its process affects only its own call. Its process
holds no lease or claim: the worker does everything that a ToolContext does, replies over a pipe,
and kills the process. On Linux it dies with the fork server, which dies with the worker.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from contextlib import suppress
from dataclasses import dataclass, replace
from multiprocessing import forkserver
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.db import connections
from django.utils.module_loading import import_string

import uamp
from agents_app.tools.registry import (
    ServerTool,
    ToolCancelled,
    ToolError,
    ToolOutcome,
    server_tools,
)
from uamp.storable_text import storable, storable_items

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.context import ForkServerProcess

    from agents_app.tools.registry import FoundMessage, ReadContent, ToolContext

logger = logging.getLogger(__name__)

# How often the worker checks whether the tool has to stop.
LOOK_SECONDS: Final = 0.1
# How long a tool may take to stop on its own.
GRACE_SECONDS: Final = 1.0
KILL_SECONDS: Final = 10.0
# How much of an oversized result the model still reads.
EXCERPT_CHARS: Final = 2000
_METHODS: Final = frozenset({"progress", "read_content", "write_content", "search_messages"})
_PR_SET_PDEATHSIG: Final = 1
_MIB: Final = 1024 * 1024

_context = multiprocessing.get_context("forkserver")
_start_lock = threading.Lock()


class ToolKilled(Exception):
    """The tool did not stop in time and was killed."""


class ToolDied(Exception):
    """The tool's process ended before the tool did; the message says how."""


class ToolBroke(Exception):
    """The tool raised an unexpected error: its traceback, for the log, and the error's class."""

    def __init__(self, log_text: str, error_class: str) -> None:
        super().__init__(log_text, error_class)
        self.log_text = log_text
        self.error_class = error_class


class ToolTooLarge(Exception):
    """The tool needed more memory than its process may have."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A job for a process; `path` is the import path of the tool if it comes from the settings."""

    name: str
    path: str | None
    call_id: str
    arguments: dict[str, Any]
    memory_mb: int


@dataclass(frozen=True)
class _Ask:
    method: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]


@dataclass(frozen=True)
class _Reply:
    value: Any = None
    error: Exception | None = None


@dataclass(frozen=True)
class _End:
    outcome: ToolOutcome | None = None
    error: Exception | None = None


# --- In the worker ---


def run_tool(
    tool: ServerTool,
    context: ToolContext,
    arguments: dict[str, Any],
    *,
    must_stop: Callable[[], bool],
) -> ToolOutcome:
    """Run a tool in its own process; return its outcome, cut down to fit a row.

    `context` serves the tool from this thread. Once `must_stop` returns True, the tool has
    GRACE_SECONDS. Raises the tool's ToolCancelled and ToolError, as well as ToolKilled, ToolDied,
    ToolBroke and ToolTooLarge.
    """
    if tool.in_worker:
        return _fit(tool.name, context, tool.run(context, arguments))
    job = Job(
        name=tool.name,
        path=_path_of(tool),
        call_id=context.call_id,
        arguments=arguments,
        memory_mb=settings.UAMP_TOOL_MEMORY_MB,
    )
    ours, theirs = _context.Pipe()
    process = _context.Process(target=_main, args=(theirs,), name=f"tool-{tool.name}", daemon=True)
    with _start_lock:
        forkserver.set_forkserver_preload([f"{__package__}.sandbox_preload"])
        process.start()
    theirs.close()
    try:
        with ours:
            ours.send(job)
            end = _serve(process, ours, context, must_stop)
    except (EOFError, OSError):
        process.join(GRACE_SECONDS)
        raise ToolDied(_how(process.exitcode)) from None
    finally:
        _kill(process)
        process.join(KILL_SECONDS)
        if process.is_alive():
            logger.error("process %d of %s could not be killed", process.pid, tool.name)
        else:
            process.close()
    if end.error is not None:
        raise end.error
    if end.outcome is None:
        raise ToolDied("it said nothing")
    return end.outcome


def _path_of(tool: ServerTool) -> str | None:
    """Return the import path of a tool that comes from the settings, or None."""
    paths = settings.UAMP_SERVER_TOOLS
    return next((path for path in paths if import_string(path) is tool), None)


def _serve(
    process: ForkServerProcess,
    pipe: Connection,
    context: ToolContext,
    must_stop: Callable[[], bool],
) -> _End:
    """Serve the tool until it ends; raises EOFError or OSError if its process is gone."""
    kill_at: float | None = None
    while True:
        if pipe.poll(LOOK_SECONDS):
            message: _Ask | _End = pipe.recv()
            if isinstance(message, _End):
                return message
            pipe.send(_answer(context, message))
        elif not process.is_alive():
            # A program started by the tool may still hold the pipe open.
            raise EOFError
        if kill_at is None and must_stop():
            kill_at = time.monotonic() + GRACE_SECONDS
        if kill_at is not None and time.monotonic() >= kill_at:
            raise ToolKilled


def _answer(context: ToolContext, request: _Ask) -> _Reply:
    if request.method not in _METHODS:
        raise ValueError(f"a tool asked for {request.method!r}")
    try:
        return _Reply(getattr(context, request.method)(*request.args, **request.kwargs))
    except (ToolCancelled, ToolError) as error:
        return _Reply(error=error)
    except Exception:
        logger.exception("tool call %s: %s failed", context.call_id, request.method)
        return _Reply(error=ToolError("Internal server error. The server's log has the details."))


def _how(exitcode: int | None) -> str:
    if exitcode is not None and exitcode < 0:
        with suppress(ValueError):
            return f"killed by {signal.Signals(-exitcode).name}"
    return f"exit status {exitcode}"


def _kill(process: ForkServerProcess) -> None:
    """Kill a tool's process and the programs that it started."""
    if process.pid is not None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
    # The process may not have created its own group yet.
    process.kill()


# --- In the tool's process ---


def _main(pipe: Connection) -> None:
    """Run the tool of one job, report how it ended, and wait to be killed."""
    _begin()
    job: Job = pipe.recv()
    end = _run(job, _Remote(job.call_id, pipe))
    connections.close_all()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    pipe.send(end)
    while True:
        # The worker kills the whole group, including whatever the tool left running.
        signal.pause()


def _begin() -> None:
    """Leave the worker's group, and die with the fork server, which dies with the worker."""
    os.setsid()
    # The fork server lives as long as any process holds this pipe. Its children inherit the pipe
    # for their own children, so a hanging tool would keep it alive.
    server = vars(forkserver._forkserver)  # noqa: SLF001 there is no public access
    if (alive := server.get("_forkserver_alive_fd")) is not None:
        os.close(alive)
        server["_forkserver_alive_fd"] = None
    if sys.platform == "linux":
        import ctypes  # noqa: PLC0415 only on platforms with this call

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _run(job: Job, context: _Remote) -> _End:
    try:
        tool = server_tools()[job.name] if job.path is None else import_string(job.path)
        _limit_memory(job.memory_mb)
        return _End(outcome=_fit(job.name, context, tool.run(context, job.arguments)))
    except MemoryError:
        return _End(error=ToolTooLarge())
    except ToolCancelled as error:
        # Pass on only the message: a subclass's other data may not survive the pipe.
        return _End(error=ToolCancelled(*map(str, error.args)))
    except ToolError as error:
        return _End(error=ToolError(*map(str, error.args), cause=str(error.cause)))
    except BaseException as error:  # noqa: BLE001 SystemExit and KeyboardInterrupt do not end the call
        return _End(error=ToolBroke(storable(traceback.format_exc()), type(error).__name__))


def _limit_memory(megabytes: int) -> None:
    """Limit what the process may allocate beyond its present memory; 0 means no limit."""
    if not megabytes or sys.platform != "linux":
        return
    import resource  # noqa: PLC0415 only on platforms with this call

    with open("/proc/self/statm") as statm:  # noqa: PTH123 a Path is no simpler here
        pages = int(statm.read().split()[5])
    limit = pages * resource.getpagesize() + megabytes * _MIB
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _fit(name: str, context: ToolContext, outcome: ToolOutcome) -> ToolOutcome:
    """Return an outcome that fits a row and a model; oversized results become files."""
    text, items = storable(outcome.result), storable_items(outcome.content_items)
    data = text.encode()
    if len(data) <= uamp.DEFAULT_LIMITS.tool_result_bytes:
        return replace(outcome, result=text, content_items=items)
    item = context.write_content(data, mime_type="text/plain", filename=f"{name}-result.txt")
    return replace(
        outcome,
        result=f"The result has {len(data)} bytes, too many to show here. All of it is in the "
        f"attached file {name}-result.txt. It begins:\n\n{text[:EXCERPT_CHARS]}",
        content_items=(*items, item),
    )


class _Remote:
    """The tool's ToolContext, whose methods are executed by the worker.

    Any thread of the tool may call it; a lock lets one at a time use the pipe.
    """

    def __init__(self, call_id: str, pipe: Connection) -> None:
        self.call_id = call_id
        self._pipe = pipe
        # Tools may use threads.
        self._lock = threading.Lock()

    def _ask(self, method: str, *args: Any, **kwargs: Any) -> Any:
        with self._lock:
            self._pipe.send(_Ask(method, args, kwargs))
            reply: _Reply = self._pipe.recv()
        if reply.error is not None:
            raise reply.error
        return reply.value

    def progress(
        self,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        stage: str | None = None,
        message: str | None = None,
    ) -> None:
        """See ToolContext."""
        self._ask(
            "progress",
            percent=percent,
            step=step,
            total_steps=total_steps,
            stage=stage,
            message=message,
        )

    def read_content(self, content_id: str) -> ReadContent:
        """See ToolContext."""
        read: ReadContent = self._ask("read_content", content_id)
        return read

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> uamp.ContentItem:
        """See ToolContext. Oversized data is not sent."""
        if len(data) > settings.UAMP_UPLOAD_BYTES:
            raise ToolError(f"The file is larger than {settings.UAMP_UPLOAD_BYTES} bytes.")
        item: uamp.ContentItem = self._ask(
            "write_content", data, mime_type=mime_type, filename=filename
        )
        return item

    def search_messages(self, words: Sequence[str], *, limit: int) -> Sequence[FoundMessage]:
        """See ToolContext."""
        messages: Sequence[FoundMessage] = self._ask("search_messages", words, limit=limit)
        return messages
