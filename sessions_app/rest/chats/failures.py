"""Answers that failed before their first word, and have no message in the chat (docs/rest.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from chat_app.conversation.versions import answers_of
from sessions_app.models import Response
from uamp import ResponseState

if TYPE_CHECKING:
    from collections.abc import Collection


def failures_of(message_ids: Collection[str]) -> dict[str, list[dict[str, Any]]]:
    """Return the failed and cancelled answers to messages that wrote nothing, by message id.

    The caller has checked that the reader may read the messages.
    """
    rows = Response.objects.filter(
        message__in=message_ids,
        finished_at__isnull=False,
        status__in=(ResponseState.FAILED.value, ResponseState.CANCELLED.value),
    )
    ended = list(rows.select_related("agent").order_by("created_at", "pk"))
    written = answers_of([row.pk for row in ended])
    failures: dict[str, list[dict[str, Any]]] = {}
    for row in ended:
        if row.pk not in written:
            failures.setdefault(row.message_id or "", []).append(
                {
                    "response_id": row.pk,
                    "agent": row.agent.name,
                    "status": row.status,
                    "error": row.error,
                    "ended_at": row.finished_at,
                }
            )
    return failures
