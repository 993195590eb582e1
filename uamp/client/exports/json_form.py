"""Reads an export as JSON, part by part.

The server writes each message and each line of the log on a line of its own, and such a file is
read line by line. The same document in another layout, as tools write it, is read as a whole.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Final, Literal, NamedTuple

import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports.reading import object_of, objects_of
from uamp.codec.single_lines import single_lines

_MESSAGES: Final = b',"messages":[\n'
_LOG: Final = b'],"log":[\n'
_BEFORE: Final = frozenset({"chat", "messages", "log"})


class ExportPart(NamedTuple):
    """The facts about the chat, a message, a line of the log, or the end, as objects.

    ``line`` is the line of a message that the checksum covers.
    """

    kind: Literal["chat", "message", "log", "end"]
    value: dict[str, Any]
    line: bytes = b""


def begins_json(line: bytes) -> bool:
    """Return whether a first line starts a JSON export; each line of NDJSON names its type."""
    return line.lstrip()[:1] == b"{" and not line.startswith(b'{"type":')


def parts_of(first: bytes, lines: Iterable[bytes]) -> Iterator[ExportPart]:
    """Yield the parts of an export, given its first line and the others with their line feeds.

    Raises ExportCutError.
    """
    if first.endswith(_MESSAGES):
        return _by_line(first, lines)
    return _parts(object_of(b"".join([first, *lines]), "The file"))


def _parts(document: dict[str, Any]) -> Iterator[ExportPart]:
    yield ExportPart("chat", _chat(document))
    for message in objects_of(document.get("messages"), "messages"):
        line = single_lines(msgspec.json.encode(message)) + b"\n"
        yield ExportPart("message", message, line)
    for entry in objects_of(document.get("log", []), "log"):
        yield ExportPart("log", entry)
    yield ExportPart("end", document)


def _by_line(first: bytes, lines: Iterable[bytes]) -> Iterator[ExportPart]:
    """Read the layout of the server, and refuse any deviation from it."""
    head = object_of(first.removesuffix(_MESSAGES) + b"}", "Line 1")
    if head.keys() != {"chat"}:
        raise ExportCutError("The file is not an export of a chat.", code="no_export")
    yield ExportPart("chat", _chat(head))
    kind: Literal["message", "log"] = "message"
    # Whether another item has to follow; None at the beginning of an array.
    goes_on: bool | None = None
    numbered = enumerate(lines, 2)
    for number, line in numbered:
        if line.startswith(b"{") and goes_on is not False:
            item = line.removesuffix(b"\n").removesuffix(b",")
            goes_on = line.endswith(b",\n")
            yield ExportPart(kind, object_of(item, f"Line {number}"), item + b"\n")
        elif line == _LOG and kind == "message" and not goes_on:
            kind, goes_on = "log", None
        elif line.startswith(b"],") and not goes_on:
            end = object_of(b"{" + line.removeprefix(b"],"), f"Line {number}")
            if end.keys() & _BEFORE:
                break
            if any(rest.strip() for _, rest in numbered):
                raise ExportCutError(
                    "The file continues after its last line.", code="export_changed"
                )
            yield ExportPart("end", end)
            return
        else:
            break
    else:
        raise ExportCutError("The file is not JSON: it ends early.", code="export_changed")
    raise ExportCutError(f"Line {number} is not a part of an export.", code="export_changed")


def _chat(document: dict[str, Any]) -> dict[str, Any]:
    chat = document.get("chat")
    if not isinstance(chat, dict):
        raise ExportCutError("The file is not an export of a chat.", code="no_export")
    return chat
