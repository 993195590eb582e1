"""The addresses of stored contents, with and without a signature (UAMP §8.4.2).

A signed address names the reader for whom it was made, and works only while they may read the
content: deletions and lost rights also affect addresses handed out earlier.
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
    """The reader of an address: a person, the recipients of a chat's events, or an operator.

    An address about a chat that is sent to a member names both, and is for what that chat shows.
    One of them is always named: an address without a reader could not lose its
    right. Raises ValueError otherwise.
    """

    user_id: int | None = None
    chat_id: str = ""
    is_operator: bool = False

    def __post_init__(self) -> None:
        if self.user_id is None and not self.chat_id:
            raise ValueError("A reader must be a person, a chat's recipients, or both.")

    def __str__(self) -> str:
        """Return the reader's form in an address."""
        user = "" if self.user_id is None else str(self.user_id)
        return f"{'o' if self.is_operator else 'p'}.{user}.{self.chat_id}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Return the reader from an address whose signature was verified; raises ValueError."""
        kind, user, chat_id = text.split(".", 2)
        return cls(user_id=int(user) if user else None, chat_id=chat_id, is_operator=kind == "o")


def content_url(content_id: object) -> str:
    """Return the path of a content."""
    return f"/api/content/{content_id}"


def signed_url(content_id: object, reader: ContentReader) -> str:
    """Return a path that any client may read for UAMP_CONTENT_URL_SECONDS, while `reader` may."""
    value = f"{content_id}:{reader}"
    signature = TimestampSigner(salt=_SALT).sign(value)[len(value) + 1 :]
    return f"{content_url(content_id)}?{urlencode({'for': str(reader), 'signature': signature})}"


def reader_of(content_id: object, reader: str, signature: str) -> ContentReader | None:
    """Return the reader for whom an address was signed; None if it is not ours, or too old."""
    signer = TimestampSigner(salt=_SALT)
    try:
        signer.unsign(
            f"{content_id}:{reader}:{signature}", max_age=settings.UAMP_CONTENT_URL_SECONDS
        )
        return ContentReader.parse(reader)
    except (BadSignature, ValueError):
        return None
