"""A page of a shared chat as JSON that the server signs, for `uamp verify` (docs/links.md).

It has what the page shows, without ids, prices and files: the server states that the chat shows
these texts now, and whether each answer is as its agent signed it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from django.conf import settings
from django.utils import timezone

from signing_app.owner_keys import signing_key
from uamp import signatures
from uamp.digital_source import AI_MADE

if TYPE_CHECKING:
    from chat_app.links.shared_pages import SharedPage


def shared_document(title: str, page: SharedPage) -> dict[str, Any]:
    """Return a page with the `document` that the server signed."""
    shared = {
        "title": title,
        "messages": [
            {
                "place": message.place,
                "name": message.name,
                "is_agent": message.is_agent,
                "at": message.at.isoformat().replace("+00:00", "Z"),
                "is_edited": message.is_edited,
                "is_cut": message.is_cut,
                "text": message.text,
                "signature": message.signature or None,
                "digital_source_type": AI_MADE if message.is_agent else None,
            }
            for message in page.messages
        ],
        "older": page.older,
        "newer": page.newer,
    }
    claims = signatures.SharedPageClaims(
        iss=settings.UAMP_ISSUER,
        iat=int(timezone.now().timestamp()),
        page_hash=signatures.sha256_of(shared),
    )
    key = signing_key(signatures.SHARES)
    document = key.sign(msgspec.to_builtins(claims), typ=signatures.SHARED_TYPE)
    return {"shared": shared, "document": document}
