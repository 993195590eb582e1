"""Reads the `data` of server-sent events out of bytes as they come (WHATWG HTML §9.2.6).

The law: bytes in any pieces give the same events. Only `data` is kept: the servers that we talk to
say everything in it.
"""

import codecs

MAX_EVENT_BYTES = 4 * 1024 * 1024
"""An event longer than this is no model's answer."""


class EventTooLongError(Exception):
    """One event has more than MAX_EVENT_BYTES."""


class EventReader:
    """Turns chunks of bytes into the data of events."""

    def __init__(self) -> None:
        self._rest = b""
        self._data: list[bytes] = []
        self._size = 0
        self._began = False

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the data of the events that this chunk completes; raises EventTooLongError."""
        # A line ends with LF, CRLF or CR; a CR at the end may have its LF in the next chunk.
        text = self._rest + chunk
        held = text.endswith(b"\r")
        if held:
            text = text[:-1]
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = lines.pop() + (b"\r" if held else b"")
        events = [event for line in lines if (event := self._line(line)) is not None]
        if len(self._rest) + self._size > MAX_EVENT_BYTES:
            raise EventTooLongError
        return events

    def _line(self, line: bytes) -> bytes | None:
        if not self._began:
            self._began = True
            line = line.removeprefix(codecs.BOM_UTF8)
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        if line.startswith(b"data:"):
            value = line[5:].removeprefix(b" ")
            self._data.append(value)
            self._size += len(value) + 1
        return None
