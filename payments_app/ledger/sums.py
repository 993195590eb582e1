"""Sums of amounts that cannot overflow, whatever the rows contain.

PostgreSQL adds up 64-bit integers as numerics. SQLite's SUM() fails when a partial sum leaves
64 bits. There the upper and lower 32 bits of each amount are added separately: the result is exact
within 64 bits, and a float beyond, which differs from every valid balance.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.db import connection
from django.db.models import Sum

if TYPE_CHECKING:
    from django.db.backends.base.base import BaseDatabaseWrapper
    from django.db.models.sql.compiler import SQLCompiler


def total(amount: str) -> str:
    """Return the SQL aggregate that adds up an expression."""
    return f"SUM({amount})" if connection.vendor == "postgresql" else _by_halves(amount)


class Total(Sum):
    """The same aggregate for querysets."""

    def as_sqlite(
        self,
        compiler: SQLCompiler,
        connection: BaseDatabaseWrapper,  # noqa: ARG002 required by the interface
        **_: Any,
    ) -> tuple[str, tuple[str | int, ...]]:
        """Return the SQL and its parameters."""
        amount, params = compiler.compile(self.get_source_expressions()[0])
        return _by_halves(amount), (*params, *params)


def _by_halves(amount: str) -> str:
    return f"(SUM(({amount}) >> 32) * 4294967296 + SUM(({amount}) & 4294967295))"
