"""A page of a shared chat, as the server signs it (docs/links.md)."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from uamp.client.errors import ExportCutError
from uamp.client.exports.reading import object_of, objects_of
from uamp.signatures import (
    SHARED_TYPE,
    SHARES,
    BadSignature,
    SharedPageClaims,
    distrust,
    open_signature,
    sha256_of,
)

PAGE_BYTES_MAX: Final = 20_000_000
"""The maximum size of a page, in bytes."""

_BEGIN: Final = b'{"shared":'


class CheckedPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is unchanged since the server signed it.

    ``answers`` counts the results of the server's own check of the signatures of answers.
    """

    title: str
    messages: int
    answers: dict[str, int]
    claims: SharedPageClaims


def begins_shared_page(line: bytes) -> bool:
    """Return whether a first line starts a page."""
    return line.startswith(_BEGIN)


def check_shared_page(text: bytes, keys: Iterable[Mapping[str, Any]]) -> CheckedPage:
    """Check a page with the keys of its server.

    Raises ExportCutError if it differs from what one of them signed.
    """
    if len(text) > PAGE_BYTES_MAX:
        raise ExportCutError("The page is too large.", code="no_export")
    value = object_of(text, "The page")
    page = value.get("shared")
    if not isinstance(page, dict):
        raise ExportCutError("It is not a shared page.", code="no_export")
    messages = objects_of(page.get("messages"), "messages")
    try:
        claims, key = open_signature(
            value.get("document"), keys, typ=SHARED_TYPE, claims=SharedPageClaims
        )
        distrusted = distrust(key, owner=SHARES, at=claims.iat)
        if distrusted is not None:
            raise BadSignature(distrusted)
        if claims.page_hash != sha256_of(page):
            raise BadSignature("The page does not match the server's signature.")
    except ValueError as error:
        raise ExportCutError(f"The page: {error}", code="export_changed") from None
    answers = Counter(str(message["signature"]) for message in messages if message.get("signature"))
    return CheckedPage(
        title=str(page.get("title") or ""),
        messages=len(messages),
        answers=dict(answers),
        claims=claims,
    )
