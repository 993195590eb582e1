"""The text of an answer for protocols whose clients can only append to it."""

from __future__ import annotations


class TextReplacedError(Exception):
    """The answer was written anew, and its client cannot take back what it has."""


class AppendedText:
    """The text that a client has of one response; `text` counts in code points, as offsets do."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self.length = 0

    @property
    def text(self) -> str:
        """The whole text so far."""
        self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def append(self, text: str, offset: int | None) -> str:
        """Return the part of a delta that the client does not have yet.

        A delta at offset 0 replaces all text (`response.delta`). Raises TextReplacedError where it
        differs from what the client has.
        """
        at = self.length if offset is None else offset
        if at < self.length:
            overlap = min(self.length - at, len(text))
            if self.text[at : at + overlap] != text[:overlap]:
                raise TextReplacedError
            text = text[overlap:]
        elif at > self.length:
            raise TextReplacedError
        if text:
            self._pieces.append(text)
            self.length += len(text)
        return text

    def replace(self, text: str, offset: int | None) -> str:
        """Take a delta that `append` refused; return the whole text, to be sent anew."""
        at = self.length if offset is None else offset
        whole = self.text[:at] + text
        self._pieces, self.length = [whole], len(whole)
        return whole
