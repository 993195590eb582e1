"""Files in a conversation, read from the server that the agent is connected to."""

import re
import uuid
from collections.abc import Sequence

import httpx2

from uamp.types.content import MediaUrl, Message, content_id_of, media_of
from uap.uamp_adapter.media import MEDIA_BYTES

_SECONDS = 30.0
_PATH = re.compile(r"(https?://[^/?#]+)?(/[^#]*)")
_SIGNED = re.compile(r"[?&]signature=.")


class ServerContents:
    """Loads contents by id, from the URLs in the messages of a turn.

    It only contacts the server at `origin`, whatever a message says: others write the messages, and
    the daemon may run in a network that they cannot reach. The token is only sent when fetching by
    id; signed URLs are fetched without it.
    """

    def __init__(
        self, http: httpx2.AsyncClient, origin: str, token: str, messages: Sequence[Message]
    ) -> None:
        self._http = http
        self._origin = origin
        self._token = token
        self._paths = dict(_paths(messages, origin))

    async def load(self, content_id: str) -> tuple[bytes, str]:
        """Return the bytes and the MIME type; raises LookupError if the server has no such file."""
        try:
            content_id = str(uuid.UUID(content_id))
        except ValueError:
            # Others write the messages: the id could be a path of their choice.
            raise LookupError(content_id) from None
        path = self._paths.get(content_id)
        headers = {}
        if path is None or _SIGNED.search(path) is None:
            headers["Authorization"] = f"Bearer {self._token}"
        path = path or f"/api/content/{content_id}"
        data = bytearray()
        try:
            async with self._http.stream(
                "GET", f"{self._origin}{path}", headers=headers, timeout=_SECONDS
            ) as response:
                if response.status_code != httpx2.codes.OK:
                    raise LookupError(content_id)
                async for piece in response.aiter_bytes():
                    data += piece
                    if len(data) > MEDIA_BYTES:
                        raise LookupError(content_id)
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            raise LookupError(content_id) from error
        kind = response.headers.get("content-type", "application/octet-stream")
        return bytes(data), kind.partition(";")[0].strip()


def _paths(messages: Sequence[Message], origin: str) -> list[tuple[str, str]]:
    """Return the contents in messages with their paths, including signatures."""
    paths = []
    for message in messages:
        for item in message.content_items or ():
            medium = media_of(item)
            if not isinstance(medium, MediaUrl):
                continue
            content_id, place = content_id_of(medium.url), _PATH.fullmatch(medium.url)
            if content_id is not None and place is not None and place[1] in {None, origin}:
                paths.append((content_id, place[2]))
    return paths
