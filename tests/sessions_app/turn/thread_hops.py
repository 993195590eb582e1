"""Records each time that a turn waits for another thread, and the line that waits."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from sessions_app.store.turn_writer import TurnWriter

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

ROOT: Final = Path(__file__).parents[3]
_POOL: Final = "sessions_app/database.py"
# These follow the clock and not a turn; the polls of logs share their reads in tasks of their own.
_ROUNDS: Final = {
    "sessions_app/process/periodic.py",
    "sessions_app/process/heartbeat.py",
    "sessions_app/process/shared_reads.py",
}


@contextmanager
def recorded() -> Iterator[list[str]]:
    """Record the jobs that the event loop passes to other threads, as `file:line function`."""
    hops: list[str] = []
    submit, put = ThreadPoolExecutor.submit, TurnWriter.put

    def note(frame: FrameType | None, name: str = "") -> None:
        line, is_round = "", False
        while frame is not None:
            path = _path_of(frame)
            if path == _POOL:
                name = name or _name_of(frame.f_locals.get("function", ""))
            elif path is not None:
                line = line or f"{path}:{frame.f_lineno}"
                is_round = is_round or path in _ROUNDS
            frame = frame.f_back
        if line and not is_round:
            hops.append(f"{line} {name}".rstrip())

    def submitted(executor: Any, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        note(sys._getframe(1))
        return submit(executor, function, *args, **kwargs)

    def queued(writer: TurnWriter, job: Any) -> bool:
        note(sys._getframe(1), _name_of(job.write))
        return put(writer, job)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ThreadPoolExecutor, "submit", submitted)
        patch.setattr(TurnWriter, "put", queued)
        yield hops


def _path_of(frame: FrameType) -> str | None:
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT) or path.is_relative_to(ROOT / ".venv"):
        return None
    relative = path.relative_to(ROOT).as_posix()
    return None if relative.startswith(("tests/", "sessions_app/store/group")) else relative


def _name_of(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(getattr(function, "__qualname__", function))
