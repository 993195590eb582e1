"""The check of the rows of responses against the log of their chat (docs/log-chain.md).

Synchronous. Protocols whose clients come back to a response read its row, not the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chat_app.log.deletions import deleted_answers
from chat_app.log.verification import entries_after
from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENDS = ("response.done", "response.error", "response.cancelled")


def changed_answers(chat_id: str, *, last_seq: int) -> Iterator[int]:
    """Yield the places of ends of responses whose row has another output or usage.

    Rows that are gone or whose answer was deleted, and entries covered by a digest alone, are
    skipped.
    """
    for page in entries_after(chat_id, 0, last_seq):
        ends = {
            entry.response_id: entry
            for entry in page
            if entry.type in ENDS and entry.erased_digest is None
        }
        rows = Response.objects.filter(pk__in=ends, finished_at__isnull=False)
        stored = {pk: facts for pk, *facts in rows.values_list("pk", "output", "usage")}
        deleted = deleted_answers(stored)
        for response_id, entry in ends.items():
            if response_id not in stored or response_id in deleted:
                continue
            if tuple(stored[response_id]) != _logged(entry.payload):
                yield entry.seq


def _logged(payload: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the output and the usage in the entry that ends a response."""
    response = payload.get("response")
    if response is not None:
        return response.get("output", []), response.get("usage")
    return payload.get("partial_output", []), payload.get("usage")
