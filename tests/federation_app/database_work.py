"""Counts what an envelope adds to a turn: its statements, and its calls on database threads."""

from __future__ import annotations

import contextvars
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from django.db.backends.utils import CursorWrapper

from federation_app.exchange.receiver import EnvelopeReceiver
from sessions_app import database
from sessions_app.handlers.turns import input as turn_inputs
from sessions_app.turn.start import start_response

if TYPE_CHECKING:
    import pytest


@dataclass
class DatabaseWork:
    """The statements and the names of the functions that ran on database threads.

    They are those of the tasks that receive envelopes and send their deltas, without what
    `start_response` and the run do for any client, and without periodic jobs.
    """

    statements: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def forget(self) -> None:
        """Count from here."""
        self.statements.clear()
        self.calls.clear()

    def __str__(self) -> str:
        return "\n".join([*self.calls, *self.statements])


def counted(monkeypatch: pytest.MonkeyPatch) -> DatabaseWork:
    """Count until the end of the test."""
    work = DatabaseWork()
    is_counted = contextvars.ContextVar("is_counted", default=False)
    take: Any = EnvelopeReceiver.take
    run, start = database.run, start_response
    execute = CursorWrapper.execute

    async def counted_take(receiver: EnvelopeReceiver, raw: bytes, **options: Any) -> Any:
        # The tasks that begin from here are counted, too.
        is_counted.set(True)
        return await take(receiver, raw, **options)

    async def uncounted_start(*args: Any) -> Any:
        token = is_counted.set(False)
        try:
            return await start(*args)
        finally:
            is_counted.reset(token)

    async def counted_run(function: Any, *args: Any, **kwargs: Any) -> Any:
        if is_counted.get():
            work.calls.append(_name(function))
        return await run(function, *args, **kwargs)

    def counted_execute(cursor: CursorWrapper, sql: str, params: Any = None) -> Any:
        if is_counted.get() and not sql.startswith("BEGIN"):
            work.statements.append(sql)
        return execute(cursor, sql, params)

    monkeypatch.setattr(EnvelopeReceiver, "take", counted_take)
    monkeypatch.setattr(turn_inputs, "start_response", uncounted_start)
    monkeypatch.setattr(database, "run", counted_run)
    monkeypatch.setattr(CursorWrapper, "execute", counted_execute)
    return work


def _name(function: Any) -> str:
    while isinstance(function, partial):
        function = function.func
    return str(function.__name__)
