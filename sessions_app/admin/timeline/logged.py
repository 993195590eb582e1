"""Log entries as timeline items."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from sessions_app.admin.timeline.item import (
    Item,
    counted,
    page_link,
    response_links,
    used_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from chat_app.log.log_pages import DatedEntry
    from payments_app.reporting.movements import MovedMoney, ReservedMoney
    from sessions_app.models import PaymentRequest, Response, ToolCall

_TRACK_OF: Final[dict[str, str]] = {
    "message.read": "chat",
    "message": "messages",
    "reaction": "messages",
    "response": "responses",
    "tool": "tools",
    "payment": "money",
}
_LOG_WORDS: Final[dict[str, str]] = {
    "message.edited": "A message was edited",
    "message.deleted": "A message was deleted",
    "message.pinned": "A message was pinned",
    "message.unpinned": "A message was unpinned",
    "message.read": "Messages were read",
    "reaction.added": "A reaction was added",
    "reaction.removed": "A reaction was removed",
    "participant.joined": "A member joined",
    "participant.left": "A member left",
    "participant.updated": "A member was changed",
    "chat.updated": "The chat was changed",
    "chat.forked": "The chat was forked",
    "link.created": "A link was created",
    "link.revoked": "A link was revoked",
    "call.ended": "A call ended",
    "state.updated": "The shared state was changed",
    "agent.stopped": "An agent was stopped",
}


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The rows of a page: log entries, and the rows that belong to their responses.

    `run` are the responses that began on the page; `responses` also has those named in it.
    """

    chat_id: str
    entries: Sequence[DatedEntry]
    members: Mapping[str, str] = field(default_factory=dict)
    responses: Mapping[str, Response] = field(default_factory=dict)
    run: Sequence[Response] = ()
    delegated: Sequence[Response] = ()
    calls: Sequence[ToolCall] = ()
    requests: Sequence[PaymentRequest] = ()
    holds: Sequence[ReservedMoney] = ()
    transfers: Sequence[MovedMoney] = ()


def item_of_entry(entry: DatedEntry, rows: Sources) -> Item:
    """Convert a log entry to a timeline item."""
    track = _TRACK_OF.get(entry.type) or _TRACK_OF.get(entry.type.partition(".")[0], "chat")
    make: Callable[[DatedEntry, Sources], dict[str, Any]]
    if entry.type == "message.created":
        make = _message
    elif track == "responses":
        make = _response_event
    else:
        make = _other
    parts: dict[str, Any] = {
        "key": f"seq-{entry.seq}",
        "track": track,
        "at": entry.at,
        "seq": entry.seq,
        **make(entry, rows),
    }
    return Item(**parts)


def _message(entry: DatedEntry, rows: Sources) -> dict[str, Any]:
    # A log may contain entries of older versions, so show whatever is readable.
    message = entry.payload.get("message") or {}
    content, items = message.get("content") or "", message.get("content_items") or []
    files = sum(1 for item in items if item.get("type") != "text")
    facts = [counted(len(content), "character")]
    if files:
        facts.append(counted(files, "item"))
    if message.get("deleted_at"):
        facts = ["deleted"]
    if message.get("transport"):
        facts.append(f"over {message['transport']}")
    message_id = message.get("id", "")
    links = [page_link("Message", "chat_app.message", message_id)] if message_id else []
    if entry.response_id:
        links += response_links(entry.response_id)
    else:
        answers = [r for r in rows.responses.values() if r.message_id == message_id]
        links += [
            replace(link, label=f"Answer by {answer.agent.name}")
            for answer in answers
            for link in response_links(answer.pk)[1:]
        ]
    kind = "agent" if message.get("sender_kind") == "agent" else "user"
    sender = message.get("sender_id") or ""
    name = message.get("name") or message.get("role", "")
    return {
        "title": f"{name} wrote" + (" an answer" if kind == "agent" else ""),
        "who": f"{kind}:{sender}" if sender else "",
        "facts": ", ".join(facts),
        "text": content,
        "links": links,
    }


def _response_event(entry: DatedEntry, rows: Sources) -> dict[str, Any]:
    response = rows.responses.get(entry.response_id)
    name = response.agent.name if response else entry.payload.get("agent") or "An agent"
    payload = entry.payload
    title, facts, tone, cause = f"{name}: {entry.type}", "", "", ""
    match entry.type:
        case "response.created":
            title = f"{name} began an answer"
            facts = f"over {payload['transport']}" if payload.get("transport") else ""
            tone = "running" if response and response.finished_at is None else ""
        case "response.done":
            title, facts = f"{name} finished the answer", used_text(response)
        case "response.cancelled":
            by = payload.get("username")
            title = f"The answer by {name} was stopped" + (f" by {by}" if by else "")
        case "response.error":
            error = payload.get("error") or {}
            title = f"{name} failed: {error.get('code', 'unknown')}"
            facts, tone = str(error.get("message", "")), "failed"
            cause = (response.error_cause if response else None) or ""
    links = response_links(entry.response_id) if entry.response_id else []
    if response and response.session_id and entry.type == "response.created":
        links.append(page_link("Session", "sessions_app.session", response.session_id))
    if response and response.message_id and entry.type == "response.created":
        links.append(page_link("Asked by", "chat_app.message", response.message_id))
    return {
        "title": title,
        "who": f"agent:{response.agent_id}" if response else "",
        "facts": facts,
        "cause": cause,
        "tone": tone,
        "links": links,
        "span": entry.response_id,
    }


def _other(entry: DatedEntry, rows: Sources) -> dict[str, Any]:
    payload = entry.payload
    by = payload.get("username") or payload.get("agent") or ""
    who = f"user:{payload['user_id']}" if payload.get("user_id") else ""
    name = rows.members.get(who) or (by if isinstance(by, str) else "")
    links = response_links(entry.response_id) if entry.response_id else []
    message_id = payload.get("message_id")
    if message_id:
        links.append(page_link("Message", "chat_app.message", message_id))
    return {
        "title": _LOG_WORDS.get(entry.type, entry.type),
        "who": who,
        "facts": f"by {name}" if name else "",
        "text": str(payload.get("content") or payload.get("emoji") or ""),
        "links": links,
    }
