"""Encodes the text deltas of one response, the shared part only once (UAMP §6.6)."""

import msgspec

from uamp.errors import LocalProtocolError

_encoder = msgspec.json.Encoder()
# The length of a UUID's last group, which numbers the deltas of a response.
_NUMBERED = 12


class TextDeltas:
    """Makes the frames of a response's text deltas without an event for each.

    The caller supplies `event_id`, a UUID; the id of each frame has the same beginning and ends in
    a number.
    """

    def __init__(self, response_id: str, *, event_id: str) -> None:
        begins = event_id[:-_NUMBERED]
        self._head = f'{{"type":"response.delta","event_id":"{begins}'
        encoded_id = _encoder.encode(response_id).decode()
        self._middle = f',"response_id":{encoded_id},"delta":{{"type":"text","text":'
        self._number = 0

    def frame(self, text: str, *, offset: int, timestamp: int) -> tuple[str, str]:
        """Return the two parts of a delta's frame, to be joined by a stamp that names the session.

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
