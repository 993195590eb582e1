"""Writing several turns together, and retries after errors.

A group that fails is retried turn by turn, so that one bad turn fails alone. Only data errors are
final: an operational error may hide a commit, so the write is repeated with the same ids, which the
bodies recognise. A group that hit a database time limit is not retried as a group, which would take
as long again.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Final, TypeVar

from django.db import DataError, IntegrityError, OperationalError

from sessions_app import database
from sessions_app.store.lock_wait import is_lock_timeout, is_timeout
from sessions_app.store.records import Failed

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

logger = logging.getLogger(__name__)

TRIES: Final = 3
FAILURES: Final = (IntegrityError, DataError, ValueError, OperationalError, KeyError)
"""Expected failures of a turn; anything else is a bug."""

Turn = TypeVar("Turn")
Outcome = TypeVar("Outcome")


def write_each(
    write: Callable[[Sequence[Turn]], list[Outcome]], turns: Sequence[Turn]
) -> list[Outcome | Failed]:
    """Write turns together, or one by one if that fails; retry errors that may hide a commit.

    Uses the thread's connection, which stays open between writes until one raises.
    """
    try:
        return [*_with_retries(write, turns)]
    except Exception as error:
        # Whatever one turn raises must not affect the others in its batch.
        if len(turns) == 1:
            if not isinstance(error, FAILURES):
                logger.exception("a turn could not be written")
            return [Failed(error)]
    singly: list[Outcome | Failed] = []
    for turn in turns:
        alone = write_each(write, [turn])
        singly.extend(alone)
    return singly


def _with_retries(
    write: Callable[[Sequence[Turn]], list[Outcome]], turns: Sequence[Turn]
) -> list[Outcome]:
    for attempt in range(1, TRIES + 1):
        try:
            return database.on_persistent_connection(write, turns)
        except IntegrityError:
            # The same event in another process shows up as a duplicate key; reading again finds
            # what it wrote. Any other violated constraint remains violated.
            if attempt > 1 or len(turns) > 1:
                raise
        except OperationalError as error:
            # After a lock timeout, let other turns go first before waiting again.
            is_in_vain = is_lock_timeout(error) or (len(turns) > 1 and is_timeout(error))
            if attempt == TRIES or is_in_vain:
                raise
            logger.warning("writing %d turns failed, trying again", len(turns), exc_info=True)
            time.sleep(0.05 * attempt)
    raise AssertionError("unreachable")
