"""The lines that a test's code logs, with the ids that `AddFields` gives them."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from telemetry.log_fields import AddFields

if TYPE_CHECKING:
    import logging
    from collections.abc import Iterator

    import pytest


@contextmanager
def with_ids(caplog: pytest.LogCaptureFixture, level: int) -> Iterator[list[Any]]:
    """Log from a level on, and yield the records, which have the ids of their work."""
    ids = AddFields()
    caplog.handler.addFilter(ids)
    try:
        with caplog.at_level(level):
            records: list[logging.LogRecord] = caplog.records
            yield records
    finally:
        caplog.handler.removeFilter(ids)
