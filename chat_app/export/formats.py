"""The formats of an exported chat. Each ends with the number of messages.

NDJSON and JSON add a SHA-256 over the lines of messages, each including its line feed. Answers are
signed by their agents and receipts by the server; the `keys` at the end verify both.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

from signing_app.published import keys_named, kid_of
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from chat_app.models import Chat

    Pages = Iterable[list[dict[str, Any]]]
    Write = Callable[[Chat, Pages], Iterator[bytes]]

_SPECIAL: Final = re.compile(r"([\\`*_{}\[\]<>()#+\-.!|~])")
_FILES: Final = frozenset({"image", "audio", "video", "file"})


def ndjson(chat: Chat, pages: Pages, log: Iterable[bytes] = ()) -> Iterator[bytes]:
    """Yield a line for the chat, one for each message, and one with their count and SHA-256.

    The lines of the log (`log_lines`) come before the last one.
    """
    yield _line({"type": "chat", **_chat(chat)})
    count, digest, keys = 0, hashlib.sha256(), _Keys()
    for page in pages:
        keys.note(page)
        lines = b"".join(_line({"type": "message", **message}) for message in page)
        count += len(page)
        digest.update(lines)
        yield lines
    yield from log
    yield _line({"type": "end", "count": count, "sha256": digest.hexdigest(), **keys.published()})


def json(chat: Chat, pages: Pages, log: Iterable[bytes] | None = None) -> Iterator[bytes]:
    """Yield one JSON object: the chat, its messages, their count and SHA-256.

    The lines of the log (`log_lines`) become the member `log`, if requested.
    """
    yield b'{"chat":' + msgspec.json.encode(_chat(chat)) + b',"messages":['
    count, digest, keys = 0, hashlib.sha256(), _Keys()
    for page in pages:
        keys.note(page)
        lines = [single_lines(msgspec.json.encode(message)) for message in page]
        digest.update(b"".join(line + b"\n" for line in lines))
        yield (b",\n" if count else b"\n") + b",\n".join(lines)
        count += len(page)
    if log is not None:
        yield b'\n],"log":['
        begun = False
        for piece in log:
            lines = piece.splitlines()
            yield (b",\n" if begun else b"\n") + b",\n".join(lines)
            begun = True
    end = {"count": count, "sha256": digest.hexdigest(), **keys.published()}
    yield b"\n]," + msgspec.json.encode(end)[1:] + b"\n"


def markdown(chat: Chat, pages: Pages) -> Iterator[bytes]:
    """Yield a heading, the messages under their senders, and a line with their count."""
    yield f"# {_escaped(chat.title or chat.pk)}\n\n".encode()
    if (origin := _origin(chat)) is not None:
        source = _escaped(origin["title"] or "another chat")
        several = f"the first {origin['messages']} messages are copies"
        copied = "the first message is a copy" if origin["messages"] == 1 else several
        yield f"A fork of {source}: {copied}.\n\n".encode()
    count = 0
    for page in pages:
        count += len(page)
        yield "".join(_section(message) for message in page).encode()
    yield f"---\n\n{count} {'message' if count == 1 else 'messages'}.\n".encode()


FORMATS: Final[dict[str, tuple[Write, str, str]]] = {
    "markdown": (markdown, "text/markdown; charset=utf-8", "md"),
    "json": (json, "application/json", "json"),
    "ndjson": (ndjson, "application/x-ndjson", "ndjson"),
}
"""The function of each format, its media type, and its file extension."""


class _Keys:
    """The published keys that verify the signatures of an export."""

    def __init__(self) -> None:
        self._kids: set[str] = set()

    def note(self, messages: Iterable[dict[str, Any]]) -> None:
        """Collect the key ids of a page of messages."""
        for message in messages:
            receipt = message.get("receipt") or {}
            signed = [message.get("signature"), receipt.get("document")]
            signed += [work.get("document") for work in receipt.get("delegated", ())]
            self._kids |= {kid_of(signature) for signature in signed if isinstance(signature, str)}

    def published(self) -> dict[str, Any]:
        """Return the final `keys` member; a file without signatures has none."""
        return keys_named(sorted(self._kids)) if self._kids else {}


def _chat(chat: Chat) -> dict[str, Any]:
    data = {"id": chat.pk, "title": chat.title, "created_at": chat.created_at}
    origin = _origin(chat)
    return data if origin is None else {**data, "forked_from": origin}


def _origin(chat: Chat) -> dict[str, Any] | None:
    """Return the origin of a fork, reading it from the database; None for other chats."""
    origin = getattr(chat, "origin", None)
    if origin is None:
        return None
    return {
        "title": origin.source_title,
        "message_id": origin.source_message,
        "messages": origin.messages,
        "forked_at": origin.forked_at,
    }


def _line(value: dict[str, Any]) -> bytes:
    return single_lines(msgspec.json.encode(value)) + b"\n"


def _section(message: dict[str, Any]) -> str:
    at = message["created_at"].strftime("%Y-%m-%d %H:%M:%S UTC")
    edited = ", edited" if message["revision"] else ""
    place = ", in a thread" if message["thread"] else ""
    receipt = message.get("receipt")
    paid = f", {receipt['amount']} {receipt['currency']}" if receipt else ""
    made = "" if message["digital_source_type"] is None else "made by AI, "
    facts = f"{made}{at}{place}{edited}{paid}"
    head = f"## {_escaped(message['name'] or message['role'])} ({facts})\n\n"
    if message["deleted_at"] is not None:
        return f"{head}*Deleted.*\n\n"
    # A quote ends with the message, whatever block its text has opened.
    quoted = "".join(f"> {line}\n" for line in message["content"].splitlines())
    files = [_file(item) for item in message["content_items"] if item.get("type") in _FILES]
    failed = [_failure(failure) for failure in message.get("failed_answers", ())]
    return "".join([head, f"{quoted}\n" if quoted else "", *files, *failed])


def _failure(answer: dict[str, Any]) -> str:
    reason = str((answer["error"] or {}).get("message") or "")
    words = f"{_escaped(answer['agent'])}: {answer['status']}. {_escaped(reason)}".strip()
    return f"*{words}*\n\n"


def _file(item: dict[str, Any]) -> str:
    kind, name = str(item["type"]), str(item.get("filename") or "")
    return f"*{kind}: {_escaped(name)}*\n\n" if name else f"*{kind}*\n\n"


def _escaped(text: str) -> str:
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))
