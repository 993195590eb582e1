"""The tests that `make test` leaves to `make test-all`.

A test is marked `long` if it

* runs several server processes where `test_two_processes.py` covers the same at less cost;
* kills, fills or repeats until a fault would appear by chance;
* repeats for many places (screens, points of a stream, commands) what a few of them show;
* sends audio between browsers, which arrives too late on a busy machine.

On PostgreSQL, `make test` runs the tests marked `postgres` and those in the folders below, where
rows are locked, SQL is specific to each database, or several writers compete. The others run there
in `make test-all`. A test given by its path always runs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

ON_POSTGRESQL: Final = (
    "audit_app",
    "chat_app/log",
    "chat_app/search",
    "payments_app/ledger",
    "payments_app/spending",
    "payments_app/tokens",
    "sessions_app/connected",
    "sessions_app/process",
    "sessions_app/response",
    "sessions_app/store",
    "sessions_app/tools",
)
"""Folders below tests/, without their subfolders."""


def is_short(item: pytest.Item, root: Path, vendor: str) -> bool:
    """Return whether a test is part of `make test` on a database."""
    if item.get_closest_marker("long"):
        return False
    if vendor != "postgresql" or item.get_closest_marker("postgres"):
        return True
    return item.path.parent.relative_to(root / "tests").as_posix() in ON_POSTGRESQL
