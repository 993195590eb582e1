"""The check of the rows of responses against the log of their chat (docs/log-chain.md).

Synchronous. Protocols whose clients come back to a response read its row, not the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chat_app.log.deletions import deleted_answers, is_output_erased
from chat_app.log.verification import entries_after
from sessions_app.models import Response

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ENDS = ("response.done", "response.error", "response.cancelled")


def changed_answers(chat_id: str, *, last_seq: int) -> Iterator[int]:
    """Yield the places of ends of responses whose row has another output or usage.

    Rows that are gone or whose answer was deleted, and entries whose output was erased, are
    skipped.
    """
    for page in entries_after(chat_id, 0, last_seq):
        ends = {
            entry.response_id: entry
            for entry in page
            if entry.type in ENDS and not is_output_erased(entry)
        }
        rows = Response.objects.filter(pk__in=ends, finished_at__isnull=False)
        stored = {pk: facts for pk, *facts in rows.values_list("pk", "output", "usage")}
        deleted = deleted_answers(stored)
        for response_id, entry in ends.items():
            if response_id not in stored or response_id in deleted:
                continue
            is_changed = tuple(stored[response_id]) != _logged(entry.payload)
            if is_changed and not _was_erased_meanwhile(chat_id, entry.seq):
                yield entry.seq


def _was_erased_meanwhile(chat_id: str, seq: int) -> bool:
    """Return whether the output in an entry was erased after it was read."""
    return any(
        is_output_erased(entry) for page in entries_after(chat_id, seq - 1, seq) for entry in page
    )


def _logged(payload: Mapping[str, Any]) -> tuple[Any, Any]:
    """Return the output and the usage in the entry that ends a response."""
    response = payload.get("response")
    if response is not None:
        return response.get("output", []), response.get("usage")
    return payload.get("partial_output", []), payload.get("usage")
