"""Shared pages: messages as strangers may read them. Synchronous.

A page has the messages that the chat shows now, up to the place where the link ends. Deleted
messages leave no trace, and no message shows its id, price, receipts or an agent's thoughts.
"""

from __future__ import annotations

import json
import re
import time
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner
from django.db.models import Exists, OuterRef, Q

import uamp
from agents_app.workers import connections
from chat_app import markdown
from chat_app.contents.reading_rights import ContentNotFound, in_chat
from chat_app.contents.references import content_ids
from chat_app.log.history import quotes_of
from chat_app.log.signatures import signatures_of
from chat_app.members.link_validity import in_force, keep_or_end
from chat_app.models import Content, Message, ShareLink
from signing_app.published import keys_named, kid_of
from uamp.signatures import check_answer

if TYPE_CHECKING:
    import uuid
    from collections.abc import Callable, Sequence

    from django.db.models import QuerySet

PAGE: Final = 50
"""Messages per page."""
SHOWN_CHARS: Final = 20_000
"""How many characters of the arguments and of the result of a tool call are shown."""
_MEDIA: Final = frozenset({"image", "audio", "video", "file"})
# Long lines of code must scroll by keyboard too. No text or attribute contains `"><`.
_CODE: Final = '"><pre><code>'
_CODE_BY_KEYBOARD: Final = '"><pre tabindex="0"><code>'
_OWN_ADDRESS: Final = re.compile(r'(?<=")/api/content/([0-9a-fA-F-]{36})(?=")')


class MessagePart(msgspec.Struct, frozen=True, kw_only=True):
    """One part of a message: `text` (as `html`), `tool`, `image`, `audio`, `video` or `file`."""

    kind: str
    html: str = ""
    name: str = ""
    state: str = ""
    arguments: str = ""
    result: str = ""
    url: str = ""
    media: tuple[MessagePart, ...] = ()


class SharedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A message as strangers see it; `place` is its place in the log of the chat."""

    place: int
    name: str
    is_agent: bool
    at: datetime
    is_edited: bool
    is_cut: bool
    quote: str
    parts: tuple[MessagePart, ...]
    text: str
    # The result of verifying the signature of an answer (docs/signatures.md).
    signature: str = ""


class SharedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page of messages, the oldest first; `older` and `newer` are cursors."""

    messages: tuple[SharedMessage, ...]
    older: int | None
    newer: int | None


def shared_page(
    link: ShareLink, *, before: int | None = None, after: int | None = None, asker: str = ""
) -> SharedPage:
    """Return the messages before or after a place, or the first ones.

    Rendering is shared fairly between different `asker` keys.
    """
    rows = _visible_rows(link)
    if before is not None:
        page_rows = list(rows.filter(seq__lt=before).order_by("-seq")[: PAGE + 1])
        older, newer = len(page_rows) > PAGE, rows.filter(seq__gte=before).exists()
        page_rows = page_rows[:PAGE][::-1]
    else:
        page_rows = list(rows.filter(seq__gt=after or 0).order_by("seq")[: PAGE + 1])
        newer, older = len(page_rows) > PAGE, rows.filter(seq__lte=after or 0).exists()
        page_rows = page_rows[:PAGE]
    quotes = _quotes(link, page_rows)
    signed = _signature_states(link.chat_id, page_rows)
    # Others may need the connection while this thread waits for a process.
    connections.release()
    until = time.monotonic() + markdown.PAGE_SECONDS
    messages = tuple(
        SharedMessage(
            place=row.seq,
            name=row.name or row.role,
            is_agent=row.sender_agent_id is not None,
            at=row.created_at,
            is_edited=row.edited_at is not None,
            is_cut=row.status != "completed",
            quote=markdown.plain(quotes.get(row.reply_to or "", ""), asker=asker, until=until),
            parts=tuple(_parts(link, row, asker=asker, until=until)),
            text=row.content,
            signature=signed.get(row.pk, ""),
        )
        for row in page_rows
    )
    return SharedPage(
        messages=messages,
        older=page_rows[0].seq if page_rows and older else None,
        newer=page_rows[-1].seq if page_rows and newer else None,
    )


def _signature_states(chat_id: str, rows: Sequence[Message]) -> dict[str, str]:
    """Return the results of verifying the signatures of agents' answers, by message id.

    The page has no ids for checking a signature, so the server verifies it. Copies have none, and
    neither do stopped answers that were free.
    """
    answers = [
        row
        for row in rows
        if row.response_id and row.sender_agent_id is not None and row.copied_from is None
    ]
    signatures = signatures_of(chat_id, {row.response_id for row in answers})
    keys = (
        keys_named({kid_of(signature) for signature in signatures.values()})["keys"]
        if signatures
        else []
    )
    return {
        row.pk: check_answer(
            {
                "id": row.pk,
                "role": row.role,
                "name": row.name,
                "response_id": row.response_id,
                "content": row.content,
                "content_items": row.content_items,
                "status": row.status,
                "signature": signatures.get(row.response_id),
            },
            keys,
            chat_id=chat_id,
        ).state
        for row in answers
        if row.response_id in signatures or row.status == "completed"
    }


def shared_content(content_id: uuid.UUID, *, link_id: int, place: int, signature: str) -> Content:
    """Return a content by the signed address on the page of a link.

    The link must still be active, and the message at that place must be shown and contain it.
    Raises ContentNotFound otherwise.
    """
    signer = TimestampSigner(salt="shared content")
    try:
        signed = f"{link_id}:{place}:{content_id}:{signature}"
        signer.unsign(signed, max_age=settings.UAMP_CONTENT_URL_SECONDS)
    except BadSignature as error:
        raise ContentNotFound from error
    link = in_force(ShareLink).filter(pk=link_id).first()
    if not isinstance(link, ShareLink) or not keep_or_end(link):
        raise ContentNotFound
    message = _visible_rows(link).filter(seq=place).first()
    if message is None or str(content_id) not in _named(message):
        raise ContentNotFound
    return in_chat(str(content_id), link.chat_id)


def _visible_rows(link: ShareLink) -> QuerySet[Message]:
    """Return the messages that a link shows, with answers in their version at the link's end."""
    rows = Message.objects.filter(
        chat_id=link.chat_id,
        deleted_at__isnull=True,
        thread_only__isnull=True,
        role__in=("user", "assistant"),
    )
    if link.until_seq is None:
        return rows.filter(replaced_by__isnull=True)
    later = Message.objects.filter(pk=OuterRef("replaced_by"), seq__gt=link.until_seq)
    return rows.filter(Q(replaced_by__isnull=True) | Exists(later), seq__lte=link.until_seq)


def _quotes(link: ShareLink, rows: Sequence[Message]) -> dict[str, str]:
    """Return the beginnings of the messages that are replied to, if the link shows those."""
    ids = {row.reply_to for row in rows if row.reply_to}
    if not ids:
        return {}
    visible_ids = set(_visible_rows(link).filter(pk__in=ids).values_list("pk", flat=True))
    quotes = quotes_of(link.chat_id, visible_ids)
    return {key: "\n".join(line[2:] for line in text.split("\n")) for key, text in quotes.items()}


def _named(message: Message) -> set[str]:
    """Return the ids of the contents that a message shows, in its items or in its text."""
    items = msgspec.convert(message.content_items, tuple[uamp.ContentItem, ...])
    in_text = re.findall(r"/api/content/([0-9a-fA-F-]{36})", message.content)
    return {str(content_id).lower() for content_id in (*content_ids(items), *in_text)}


def _address(link: ShareLink, place: int) -> Callable[[str], str]:
    """Return a function from content id to an address for the readers of a link."""

    def address(content_id: str) -> str:
        content_id = content_id.lower()
        value = f"{link.pk}:{place}:{content_id}"
        signature = TimestampSigner(salt="shared content").sign(value)[len(value) + 1 :]
        return f"/shared/files/{content_id}?link={link.pk}&at={place}&signature={signature}"

    return address


def _parts(link: ShareLink, row: Message, *, asker: str, until: float) -> list[MessagePart]:
    """Return the parts of a message in order (UAMP §6.13)."""
    address = _address(link, row.seq)

    def text(written: str) -> MessagePart:
        html = markdown.render(written, asker=asker, until=until)
        html = html.replace(_CODE, _CODE_BY_KEYBOARD)
        return MessagePart(
            kind="text",
            html=_OWN_ADDRESS.sub(lambda m: address(m.group(1)).replace("&", "&amp;"), html),
        )

    items: list[dict[str, Any]] = list(row.content_items or [])
    texts = [item for item in items if item.get("type") == "text"]
    parts = [text(row.content)] if row.content and not texts else []
    results = {
        item["tool_result"].get("call_id"): item["tool_result"]
        for item in items
        if item.get("type") == "tool_result"
    }
    for item in items:
        match item.get("type"):
            case "text":
                parts.append(text(row.content if len(texts) == 1 else str(item["text"])))
            case "tool_call":
                call = item["tool_call"]
                result = results.pop(call.get("id"), None)
                parts.append(_tool(call, result, row.status, address))
            case kind if kind in _MEDIA:
                parts.append(_medium(item, address))
    return parts


def _tool(
    call: dict[str, Any],
    result: dict[str, Any] | None,
    status: str,
    address: Callable[[str], str],
) -> MessagePart:
    """Return a call with its result; one without a result was stopped, or is still running."""
    output = result or {}
    state = "failed" if output.get("is_error") else "done"
    if result is None and status != "completed":
        state = "stopped"
    media = [item for item in output.get("content_items") or [] if item.get("type") in _MEDIA]
    return MessagePart(
        kind="tool",
        name=str(call.get("name") or "tool"),
        state=state,
        arguments=_laid_out(call.get("arguments")),
        result=_laid_out(output.get("result")),
        media=tuple(_medium(item, address) for item in media),
    )


def _medium(item: dict[str, Any], address: Callable[[str], str]) -> MessagePart:
    kind = str(item["type"])
    medium = item.get(kind)
    content_id = (
        uamp.content_id_of(str(medium.get("url", ""))) if isinstance(medium, dict) else None
    )
    name = str(item.get("filename") or item.get("alt_text") or item.get("description") or "")
    mime_type = str(item.get("mime_type") or item.get("format") or "")
    # A drawing can run scripts, so it is a file to download.
    is_drawing = "svg" in f"{mime_type} {name}".lower()
    if content_id is None or is_drawing:
        kind = "file"
    return MessagePart(
        kind=kind,
        name=name or kind,
        state=mime_type,
        url="" if content_id is None else address(content_id),
    )


def _laid_out(value: object) -> str:
    """Return JSON pretty-printed, cut if it is long; a text is not parsed further."""
    if value is None:
        return ""
    if isinstance(value, str):
        with suppress(msgspec.DecodeError):  # plain text is not JSON
            value = msgspec.json.decode(value)
    text = value if isinstance(value, str) else json.dumps(value, indent=2, ensure_ascii=False)
    return f"{text[:SHOWN_CHARS]}…" if len(text) > SHOWN_CHARS else text
