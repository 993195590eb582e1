"""Operations of the ledger that run at the same time."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

from django.db import connection, connections

from payments_app import services
from tests.threads import thread_pool

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def together(*operations: Callable[[], Any]) -> list[Any]:
    """Start operations at the same moment, each on a connection of its own.

    Returns their outcomes, or the refusals that they raised, in the order of the operations.
    """
    barrier = threading.Barrier(len(operations))

    def run(operation: Callable[[], Any]) -> Any:
        try:
            connection.ensure_connection()
            barrier.wait(10)
            return operation()
        except services.LedgerError as error:
            return error
        finally:
            connections.close_all()

    with thread_pool(len(operations)) as pool:
        return list(pool.map(run, operations))


def kinds(outcomes: Sequence[Any]) -> list[str]:
    return sorted(type(outcome).__name__ for outcome in outcomes)
