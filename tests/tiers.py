"""The tests that `make test` leaves to `make test-all`.

A test is marked `long` if it

* runs several server processes where `test_two_processes.py` covers the same at less cost;
* kills, fills or repeats until a fault would appear by chance;
* repeats for many places (screens, points of a stream, commands) what a few of them show;
* costs more than five seconds of CPU for what another test shows of the same code;
* shows a detail of a page (focus, width, a refusal, a second tab) beside the journey of that page;
* sends audio between browsers, which arrives too late on a busy machine.

For a test marked `sampled`, which has several `parametrize`, `make test` runs as many combinations
as show each parameter once; of one marked `sampled(3)`, three of these, evenly spread.

On PostgreSQL, `make test` runs the tests marked `postgres` and those in the folders below, where
rows are locked, SQL is specific to each database, or several writers compete. The others run there
in `make test-all`. A test given by its path always runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from _pytest.mark import ParameterSet

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

ON_POSTGRESQL: Final = (
    "audit_app",
    "chat_app/log",
    "chat_app/search",
    "payments_app/ledger",
    "payments_app/ledger/holds",
    "payments_app/spending",
    "payments_app/tokens",
    "sessions_app/connected",
    "sessions_app/process",
    "sessions_app/response",
    "sessions_app/response/approval",
    "sessions_app/response/signatures",
    "sessions_app/store",
    "sessions_app/tools",
)
"""Folders below tests/, without their subfolders."""


def has_nothing_for(
    path: Path, root: Path, vendor: str, *, only_browser: bool, short: bool
) -> bool:
    """Return whether a test module has no test for a run, so that it need not be imported.

    Tests in a browser name the fixture `chromium`.
    """
    if only_browser:
        return b"chromium" not in path.read_bytes()
    if not short or vendor != "postgresql" or _folder_of(path, root) in ON_POSTGRESQL:
        return False
    return b"mark.postgres" not in path.read_bytes()


def is_sampled(item: pytest.Function) -> bool:
    """Return whether a combination of parameters is one of those that `make test` runs."""
    places = [_place(item, mark) for mark in item.iter_markers("parametrize")]
    index, size = max(places, key=lambda place: place[1])
    if any(place != index % other for place, other in places):
        return False
    mark = item.get_closest_marker("sampled")
    limit = mark.args[0] if mark and mark.args else size
    return bool(index * limit // size != (index - 1) * limit // size)


def _place(item: pytest.Function, mark: pytest.Mark) -> tuple[int, int]:
    """Return the position of a test's values in a `parametrize`, and the number of positions."""
    names, rows = mark.args[0], list(mark.args[1])
    if isinstance(names, str):
        names = [name.strip() for name in names.split(",")]
    own_values = [item.callspec.params[name] for name in names]

    def is_own(row: Any) -> bool:
        if isinstance(row, ParameterSet):
            values: Sequence[Any] = row.values
        else:
            values = row if len(names) > 1 else (row,)
        return all(value is other for value, other in zip(values, own_values, strict=True))

    return next(index for index, row in enumerate(rows) if is_own(row)), len(rows)


def _folder_of(path: Path, root: Path) -> str:
    return path.parent.relative_to(root / "tests").as_posix()


def is_short(item: pytest.Item, root: Path, vendor: str) -> bool:
    """Return whether a test is part of `make test` on a database."""
    if item.get_closest_marker("long"):
        return False
    is_marked = item.get_closest_marker("sampled") is not None
    if is_marked and isinstance(item, pytest.Function) and not is_sampled(item):
        return False
    if vendor != "postgresql" or item.get_closest_marker("postgres"):
        return True
    return _folder_of(item.path, root) in ON_POSTGRESQL
