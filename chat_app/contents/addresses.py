"""The addresses of stored contents, with and without a signature (UAMP §8.4.2).

A signed address says for whom it was made. It is read as long as they may read the content: a
deletion, and a right that is lost, reach addresses that were given out before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self
from urllib.parse import urlencode

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner

_SALT: Final = "content reader"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContentReader:
    """For whom an address is: a person, those who hear of a chat, or an operator in the admin.

    What a person is sent of a chat that they are in has both; without both it is for a program that
    the server has no more of, and read while a chat shows the content.
    """

    user_id: int | None = None
    chat_id: str = ""
    is_operator: bool = False

    def __str__(self) -> str:
        """Return it as it stands in an address."""
        user = "" if self.user_id is None else str(self.user_id)
        return f"{'o' if self.is_operator else 'p'}.{user}.{self.chat_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the reader of an address whose signature is good."""
        kind, user, chat_id = text.split(".", 2)
        return cls(user_id=int(user) if user else None, chat_id=chat_id, is_operator=kind == "o")


def content_url(content_id: object) -> str:
    """Return the path under which a content is read."""
    return f"/api/content/{content_id}"


def signed_url(content_id: object, reader: ContentReader) -> str:
    """Return a path that any client may read for UAMP_CONTENT_URL_SECONDS, while `reader` may."""
    value = f"{content_id}:{reader}"
    signature = TimestampSigner(salt=_SALT).sign(value)[len(value) + 1 :]
    return f"{content_url(content_id)}?{urlencode({'for': str(reader), 'signature': signature})}"


def reader_of(content_id: object, reader: str, signature: str) -> ContentReader | None:
    """Return for whom an address was signed; None where it is not ours, or too old."""
    signer = TimestampSigner(salt=_SALT)
    try:
        signer.unsign(
            f"{content_id}:{reader}:{signature}", max_age=settings.UAMP_CONTENT_URL_SECONDS
        )
    except BadSignature:
        return None
    return ContentReader.parse(reader)
