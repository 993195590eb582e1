"""The server's records of a question: usage and cost of its responses, the log of its chat."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from chat_app.models import ChatEvent, Message
from payments_app import selectors as ledger_rows
from payments_app import services as ledger
from sessions_app.models import Response
from tests.client import wait_until
from tests.sessions_app.billing.paid_agents import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_app.models import Agent
    from payments_app.money import Money

# Ids of rows, of sessions and of events.
_ID = re.compile(
    r"\b(?:[a-z]+_[0-9a-f]{16,}|[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\b"
)
# Times, the name of the route, the id that a client gave its message, and what is random or signed.
_OWN = frozenset(
    {"timestamp", "created_at", "duration_ms", "transport", "client_event_id", "signature", "salt"}
)


def earned(agent: Agent) -> Money:
    """Return an agent's earnings so far, once nothing is held."""
    wait_until(clean)
    return ledger_rows.balance(ledger.account_of_agent(agent.pk).id).posted


def usage_of(responses: Iterable[Response]) -> dict[str, Any]:
    """Return the usage of responses, of which counts and amounts are added."""
    total: dict[str, Any] = {}
    for response in responses:
        _add(total, response.usage or {})
    return total


def _add(total: dict[str, Any], used: dict[str, Any]) -> None:
    for name, value in used.items():
        if isinstance(value, dict):
            _add(total.setdefault(name, {}), value)
        elif isinstance(value, str):
            total[name] = value
        else:
            total[name] = round(total.get(name, 0) + value, 9)


def log_of(chat_id: str) -> list[dict[str, Any]]:
    """Return the messages and events of a chat in their order.

    Ids are numbered as they come, so that logs of several chats can be compared. Times, the name
    of the route and the ids that clients gave their messages are left out.
    """
    entries: list[tuple[int, dict[str, Any]]] = [
        (
            message.seq,
            {
                "message": message.role,
                "content": message.content,
                "items": message.content_items,
                "name": message.name,
                "response": message.response_id,
                "status": message.status,
                "id": message.pk,
            },
        )
        for message in Message.objects.filter(chat_id=chat_id)
    ]
    entries += [
        (event.seq, {"event": event.type, "response": event.response_id, **event.payload})
        for event in ChatEvent.objects.filter(chat_id=chat_id)
    ]
    names: dict[str, str] = {}
    ordered = sorted(entries, key=lambda entry: entry[0])
    return [{"seq": seq, **_plain(entry, names)} for seq, entry in ordered]


def _plain(value: Any, names: dict[str, str]) -> Any:
    if isinstance(value, dict):
        return {k: _plain(value[k], names) for k in sorted(value) if k not in _OWN}
    if isinstance(value, list):
        return [_plain(item, names) for item in value]
    if isinstance(value, str):
        return _ID.sub(lambda match: names.setdefault(match[0], f"id{len(names) + 1}"), value)
    return value


def new_responses(seen_ids: set[str]) -> Iterator[Response]:
    """Yield the responses that were not known, the oldest first, and know them."""
    for response in Response.objects.exclude(pk__in=seen_ids).order_by("created_at"):
        seen_ids.add(response.pk)
        yield response
