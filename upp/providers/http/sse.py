"""Incremental parsing of the `data` of server-sent events (WHATWG HTML §9.2.6).

The result does not depend on how the bytes are split. Only `data` is kept: the servers that we talk
to put everything in it.
"""

import codecs

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""A longer event cannot be a model's answer."""


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
        """Return the data of the events completed by this chunk.

        Raises EventTooLongError for an event of more than MAX_EVENT_BYTES, however it is split.
        """
        # A line ends with LF, CRLF or CR; the LF of a CRLF may be the first byte of a chunk.
        if self._after_cr and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._after_cr = False
        self._after_cr = self._after_cr or chunk.endswith(b"\r")
        rest, *lines = chunk.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        events = []
        for line in lines:
            # Only the first line of a chunk may have started in an earlier one.
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
        """Return the data of an event that was not terminated by an empty line."""
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

    def _bound(self, size: int) -> None:
        if self._size + size > MAX_EVENT_BYTES:
            raise EventTooLongError


class TextReader:
    """Collects a text answer that is not a stream, and returns it as one event at its end."""

    def __init__(self) -> None:
        self._text = bytearray()

    def feed(self, chunk: bytes) -> list[bytes]:
        """Append a piece; raises EventTooLongError past MAX_EVENT_BYTES."""
        self._text += chunk
        if len(self._text) > MAX_EVENT_BYTES:
            raise EventTooLongError
        return []

    def end(self) -> list[bytes]:
        """Return the text, or nothing if it is empty."""
        return [bytes(self._text)] if self._text.strip() else []
