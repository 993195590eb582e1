"""CSV that no spreadsheet mistakes for formulas: the statement of an account, and tables."""

from __future__ import annotations

import csv
from functools import partial
from typing import TYPE_CHECKING, Final

from asgiref.sync import sync_to_async

from payments_app import selectors

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterable, Iterator, Sequence

    from payments_app.selectors import StatementRow

STATEMENT_HEAD: Final = (
    "entry", "transfer", "at", "kind", "amount", "asset", "memo", "response", "chat", "agent",
    "protocol", "reverses",
)  # fmt: skip
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""Characters that start a formula in spreadsheets, including full-width signs."""


class _Line:
    """A file for the csv module that returns each line."""

    def write(self, line: str) -> str:
        return line


def statement_pages(account_id: int) -> Iterator[str]:
    """Yield a statement as CSV, page by page as it is read."""
    writer = csv.writer(_Line())
    yield writer.writerow(STATEMENT_HEAD)
    before = None
    while page := selectors.statement(account_id, before=before, limit=selectors.PAGE_MAX):
        yield "".join(writer.writerow(_cells(row)) for row in page)
        before = page[-1].entry_id


async def sent_page_by_page(pages: Iterator[str]) -> AsyncIterator[str]:
    """Yield pages asynchronously: an ASGI server would first exhaust a plain iterator.

    Each is read on the thread of the request, whose connection is closed with it.
    """
    read = sync_to_async(partial(next, pages, None))
    while (page := await read()) is not None:
        yield page


def _cells(row: StatementRow) -> list[object]:
    words = (
        row.memo, row.response_id, row.chat_id, row.agent_id, row.protocol, row.reverses_id or "",
    )  # fmt: skip
    facts = (
        row.entry_id, row.transfer_id, row.at.isoformat(), row.kind, row.amount, row.amount.asset,
    )  # fmt: skip
    return [*facts, *map(plain_cell, words)]


def csv_text(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table as CSV; texts in its rows are made plain."""
    writer = csv.writer(_Line())
    cells = ([plain_cell(c) if isinstance(c, str) else c for c in row] for row in rows)
    return "".join(map(writer.writerow, [head, *cells]))


def plain_cell(text: str) -> str:
    """Return a text that no spreadsheet mistakes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
