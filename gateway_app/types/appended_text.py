"""The text of an answer for protocols whose clients can only append."""

from __future__ import annotations


class TextReplacedError(Exception):
    """The answer was rewritten, and its client cannot take back what it has received."""


class AppendedText:
    """The text that a client has of one response, with offsets in code points."""

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

        A delta at offset 0 replaces all text (`response.delta`). Raises TextReplacedError if it
        differs from the client's text.
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
        """Apply a delta that `append` rejected; return the whole text, to be sent again."""
        at = self.length if offset is None else offset
        whole = self.text[:at] + text
        self._pieces, self.length = [whole], len(whole)
        return whole
