"""The statement of an account as CSV, for spreadsheets that take nothing in it for a formula."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING, Final

from payments_app import selectors

if TYPE_CHECKING:
    from collections.abc import Iterator

STATEMENT_HEAD: Final = (
    "entry", "transfer", "at", "kind", "amount", "asset", "memo", "response", "chat", "agent",
    "protocol", "reverses",
)  # fmt: skip
FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


class _Line:
    """What csv writes into: it gives the line back."""

    def write(self, line: str) -> str:
        return line


def statement_lines(account_id: int) -> Iterator[str]:
    """Yield the lines of a statement as CSV, read page by page."""
    writer = csv.writer(_Line())
    yield writer.writerow(STATEMENT_HEAD)
    before = None
    while page := selectors.statement(account_id, before=before, limit=selectors.PAGE_MAX):
        for row in page:
            words = (
                row.memo, row.response_id, row.chat_id, row.agent_id, row.protocol,
                row.reverses_id or "",
            )  # fmt: skip
            facts = (
                row.entry_id, row.transfer_id, row.at.isoformat(), row.kind, row.amount,
                row.amount.asset,
            )  # fmt: skip
            yield writer.writerow([*facts, *map(_plain, words)])
        before = page[-1].entry_id


def _plain(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return f"'{text}" if text.startswith(FORMULA) else text
