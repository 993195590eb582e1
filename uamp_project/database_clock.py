"""The clock of this machine, compared with the database's, which other machines share."""

from __future__ import annotations

import logging
import time
from typing import Final

from django.db import DatabaseError, connection

TOLERANCE_SECONDS: Final = 2.0
"""Leases last for only a few seconds."""

logger = logging.getLogger(__name__)


def clock_problem() -> str:
    """Describe how far this machine's clock is from PostgreSQL's; '' within the tolerance.

    A SQLite database has no clock of its own. Raises DatabaseError.
    """
    if connection.vendor != "postgresql":
        return ""
    # So that the time to connect does not count as a difference that may be the network's.
    connection.ensure_connection()
    with connection.cursor() as cursor:
        before = time.time()
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())")
        (row,) = cursor.fetchone()
        after = time.time()
    seconds = _difference(before, float(row), after)
    if abs(seconds) <= TOLERANCE_SECONDS:
        return ""
    direction = "ahead of" if seconds > 0 else "behind"
    return (
        f"This machine's clock is {abs(seconds):.0f} seconds {direction} that of the database."
        " Synchronize both, for example with NTP: otherwise processes take over each other's"
        " answers too early or too late, and keys expire at the wrong time."
    )


def warn_of_clock() -> None:
    """Log a difference between the clocks; a database that does not answer is logged, too."""
    try:
        problem = clock_problem()
    except DatabaseError as error:
        logger.warning("the clock could not be compared with the database's: %s", error)
        return
    if problem:
        logger.warning(problem)


def _difference(before: float, database: float, after: float) -> float:
    """Return by how many seconds we are certainly ahead, or behind if negative.

    The database read its clock at some time between `before` and `after`.
    """
    if before > database:
        return before - database
    return min(after - database, 0.0)
