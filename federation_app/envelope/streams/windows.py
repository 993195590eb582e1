"""The delta windows of both sides (envelope §5), and the text that deltas carry."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed
from federation_app.envelope.streams.deltas import TERMINAL, DeltaType

if TYPE_CHECKING:
    from federation_app.envelope.streams.deltas import StreamDelta


class SendWindow:
    """The window of a producer, which sends at most `size` unacknowledged deltas.

    Acknowledgements are cumulative. `after` is the last delta that the consumer has.
    """

    def __init__(self, size: int, *, after: int = -1) -> None:
        self.size = size
        self.acknowledged = after
        self.next = after + 1

    @property
    def has_room(self) -> bool:
        """Whether the next delta may be sent."""
        return self.next <= self.acknowledged + self.size

    def take(self, *, is_end: bool = False) -> int:
        """Return the number of the next delta; raises RuntimeError if the window is full.

        An end that cannot wait is sent beyond the window.
        """
        if not self.has_room and not is_end:
            raise RuntimeError("the window is full")
        self.next += 1
        return self.next - 1

    def acknowledge(self, delta_seq: int) -> None:
        """Process an acknowledgement; an older one has no effect.

        Raises EnvelopeError malformed for a delta that was not sent.
        """
        if delta_seq >= self.next:
            raise malformed(f"The last delta that was sent is {self.next - 1}.", detail="ack")
        self.acknowledged = max(self.acknowledged, delta_seq)


class ReceiveWindow:
    """A consumer's view of one stream: its deltas in order, and the text that they carry.

    `length` is the length of the text; the first terminal delta sets `has_ended`. Not safe for use
    by several tasks.
    """

    def __init__(self, size: int, *, after: int = -1, text: str = "") -> None:
        self.size = size
        self.last = after
        self.has_ended = False
        self.length = len(text)
        self._pieces = [text]
        self._acknowledged = after

    @property
    def text(self) -> str:
        """The text that the deltas carry."""
        if len(self._pieces) > 1:
            self._pieces = ["".join(self._pieces)]
        return self._pieces[0]

    def take(self, delta: StreamDelta) -> bool:
        """Apply a delta; return whether it is new.

        Raises EnvelopeError 4.09 with the missing number, and malformed for text that does not
        continue the text so far.
        """
        if delta.delta_seq <= self.last or self.has_ended:
            return False
        if delta.delta_seq != self.last + 1:
            raise EnvelopeError(
                EnvelopeCode.CONFLICT,
                f"Delta {self.last + 1} is missing.",
                detail="delta_seq",
                expected=self.last + 1,
            )
        if delta.type in {DeltaType.CHUNK, DeltaType.PATCH}:
            self._keep(delta)
        self.last = delta.delta_seq
        self.has_ended = delta.type in TERMINAL
        return True

    def _keep(self, delta: StreamDelta) -> None:
        text = delta.payload.get("text")
        if text is None:
            # A chunk of something else, such as `chunk_b64` of a picture.
            return
        offset = 0 if delta.type is DeltaType.PATCH else delta.payload.get("offset", self.length)
        if not isinstance(text, str) or offset not in (0, self.length):
            raise malformed("The text does not continue the previous text.", detail="offset")
        if offset == 0:
            self._pieces, self.length = [text], len(text)
        else:
            self._pieces.append(text)
            self.length += len(text)

    @property
    def ack(self) -> int | None:
        """The acknowledgement that is due now, returned once; None if none is.

        It is due at half the window, so that the producer need not stop.
        """
        if self.last - self._acknowledged < math.ceil(self.size / 2):
            return None
        self._acknowledged = self.last
        return self.last
