"""A write of several turns, and what is tried again when it raises.

One bad turn fails alone, because a group that raises is tried again turn by turn. Only data errors
are final: an operational error may hide a commit, so it is tried again with the same ids, which the
bodies recognise. A group that a time limit of the database ended is not tried as a group again: it
would take as long.
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
"""Expected conflicts of a turn; anything else is a defect."""

Turn = TypeVar("Turn")
Outcome = TypeVar("Outcome")


def write_each(
    write: Callable[[Sequence[Turn]], list[Outcome]], turns: Sequence[Turn]
) -> list[Outcome | Failed]:
    """Write turns together, or one by one when that raises; retry what a broken line may hide.

    The connection is the thread's, which keeps it while turns follow and no write raises.
    """
    try:
        return [*_with_retries(write, turns)]
    except Exception as error:
        # Whatever one of them raises, the others of its batch are not to blame.
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
            return database.kept(write, turns)
        except IntegrityError:
            # The same event on another process shows as a duplicate key: a second reading finds
            # what the first one wrote. Any other broken key stays broken.
            if attempt > 1 or len(turns) > 1:
                raise
        except OperationalError as error:
            # Who waited for a lock in vain lets others write before it waits again.
            is_in_vain = is_lock_timeout(error) or (len(turns) > 1 and is_timeout(error))
            if attempt == TRIES or is_in_vain:
                raise
            logger.warning("writing %d turns failed, trying again", len(turns), exc_info=True)
            time.sleep(0.05 * attempt)
    raise AssertionError("unreachable")
