"""Reads the `data` of server-sent events out of bytes as they come (WHATWG HTML §9.2.6).

Bytes in any pieces give the same events. Only `data` is kept: the servers that we talk to
say everything in it.
"""

import codecs

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""An event longer than this is no model's answer."""


class EventTooLongError(Exception):
    """One event has more than MAX_EVENT_BYTES."""


class EventReader:
    """Turns chunks of bytes into the data of events, in linear time."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._began = False
        self._after_cr = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that this chunk completes.

        Raises EventTooLongError for an event of more than MAX_EVENT_BYTES, in however many pieces
        it comes.
        """
        # A line ends with LF, CRLF or CR; the LF of a CRLF may be the first byte of a chunk.
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or chunk.endswith(b"\r")
        rest, *lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for line in lines:
            # Only the first line of a chunk has a beginning in an earlier one.
            self._rest += rest
            event = self._line(bytes(self._rest))
            self._rest.clear()
            rest = line
            if event is not None:
                events.append(event)
        self._rest += rest
        self._bound(len(self._rest))
        return events

    def end(self) -> list[bytes]:
        """Return the data of an event that no empty line ended."""
        return self.feed(b"\n\n")

    def _line(self, line: bytes) -> bytes | None:
        if not self._began:
            self._began = True
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        if line.startswith(b"data:"):
            value = line[5:].removeprefix(b" ")
            self._bound(len(value) + 1)
            self._data.append(value)
            self._size += len(value) + 1
        return None

    def _bound(self, more: int) -> None:
        if self._size + more > MAX_EVENT_BYTES:
            raise EventTooLongError


class TextReader:
    """Takes an answer that is one text and no stream, as one event at its end."""

    def __init__(self) -> None:
        self._text = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Keep a piece; raises EventTooLongError past MAX_EVENT_BYTES."""
        self._text += chunk
        if len(self._text) > MAX_EVENT_BYTES:
            raise EventTooLongError
        return []

    def end(self) -> list[bytes]:
        """Return the text; nothing where there is none."""
        return [bytes(self._text)] if self._text.strip() else []
