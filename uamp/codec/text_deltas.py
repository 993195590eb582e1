"""The text deltas of one response as frames; what they share is encoded once (UAMP §6.6)."""

import msgspec

from uamp.errors import LocalProtocolError

_encoder = msgspec.json.Encoder()
# The last group of a UUID: it numbers the deltas of a response.
_NUMBERED = 12


class TextDeltas:
    """Makes the frames of the text deltas of one response, without an event for each.

    `event_id` is a UUID of the caller's; each frame has one that begins alike and ends in a number.
    """

    def __init__(self, response_id: str, *, event_id: str) -> None:
        begins = event_id[:-_NUMBERED]
        self._head = f'{{"type":"response.delta","event_id":"{begins}'
        encoded_id = _encoder.encode(response_id).decode()
        self._middle = f',"response_id":{encoded_id},"delta":{{"type":"text","text":'
        self._number = 0

    def frame(self, text: str, *, offset: int, timestamp: int) -> tuple[str, str]:
        """Return the two parts of the frame of a delta, between which a stamp names the session.

        Raises LocalProtocolError for text that JSON cannot hold.
        """
        self._number = number = self._number + 1
        try:
            encoded = _encoder.encode(text).decode()
        except ValueError as error:
            raise LocalProtocolError(f"response.delta is not JSON: {error}") from error
        return (
            f'{self._head}{number:012x}","timestamp":{timestamp}',
            f'{self._middle}{encoded}}},"offset":{offset}}}',
        )
