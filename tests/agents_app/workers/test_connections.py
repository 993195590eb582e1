"""The threads of an event loop leave no database connection behind."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.db import connections

from tests.sessions_app.response.running import process

if TYPE_CHECKING:
    from sessions_app.process.registry import Process

__all__ = ["process"]


def used(*, fails: bool = False) -> Any:
    """Connect to the database, and return or raise the connection, which may not be kept."""
    connection = connections["default"]
    connection.ensure_connection()
    connection.close_at = time.monotonic() - 1
    if fails:
        raise LookupError(connection)
    return connection


@pytest.mark.django_db(transaction=True)
async def test_a_job_on_a_thread_of_the_loop_leaves_no_connection(process: Process) -> None:
    del process
    first = await asyncio.to_thread(used)
    # Django renders the pages of errors so.
    second = await sync_to_async(used, thread_sensitive=False)()
    with pytest.raises(LookupError) as failed:
        await asyncio.to_thread(used, fails=True)
    assert [job.connection for job in (first, second, *failed.value.args)] == [None] * 3
