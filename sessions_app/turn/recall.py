"""Restoring answers in a stateless history that ended at the client's tools. Synchronous.

Clients send back only their own calls and results. The stored answer has the rest, such as the
server's tool calls and their results.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

import uamp
from chat_app.log.deletions import deleted_answers
from sessions_app.models import ToolCall, ToolCallKind

if TYPE_CHECKING:
    from collections.abc import Sequence


def recalled(history: Sequence[uamp.Message], principal: str) -> list[uamp.Message]:
    """Return a history with the answers that this principal received made whole again.

    Answers are found by the ids of their calls, which this server generated. The client's results
    stay in place; results included in the stored answer are taken from it. Deleted answers stay as
    the client sent them.
    """
    answers = _answers({call for message in history for call in _calls_of(message)}, principal)
    if not answers:
        return list(history)
    whole: list[uamp.Message] = []
    restored: set[str] = set()
    for message in history:
        answer = next((answers[c] for c in _calls_of(message) if c in answers), None)
        if answer is None:
            whole.append(message)
        elif answer[0] not in restored:
            restored.add(answer[0])
            whole.append(
                uamp.Message(
                    role="assistant", content=uamp.text_of(answer[1]), content_items=answer[1]
                )
            )
    return whole


def has_calls(history: Sequence[uamp.Message]) -> bool:
    """Return whether the history has calls for `recalled` to look up."""
    return any(_calls_of(message) for message in history)


def _calls_of(message: uamp.Message) -> list[str]:
    if message.role != "assistant":
        return []
    items = message.content_items or ()
    return [
        *(call.id for call in message.tool_calls or ()),
        *(item.tool_call.id for item in items if isinstance(item, uamp.ToolCallContent)),
    ]


def _answers(
    call_ids: set[str], principal: str
) -> dict[str, tuple[str, tuple[uamp.ContentItem, ...]]]:
    """Return the responses that made these calls, as (id, output) by call id."""
    if not call_ids:
        return {}
    calls = ToolCall.objects.filter(
        call_id__in=call_ids,
        kind=ToolCallKind.CLIENT,
        response__session__principal=principal,
        response__request__ends_at_tools=True,
    ).values_list("call_id", "response_id", "response__output")
    rows = list(calls)
    deleted = deleted_answers(response_id for _, response_id, _ in rows)
    return {
        call_id: (response_id, msgspec.convert(output, tuple[uamp.ContentItem, ...]))
        for call_id, response_id, output in rows
        if response_id not in deleted
    }
