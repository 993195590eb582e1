"""The addresses of stored contents, with and without a signature (UAMP §8.4.2)."""

from __future__ import annotations

from django.conf import settings
from django.core.signing import BadSignature, TimestampSigner


def content_url(content_id: object) -> str:
    """Return the path under which a content is read."""
    return f"/api/content/{content_id}"


def signed_url(content_id: object) -> str:
    """Return a path that any client may read for UAMP_CONTENT_URL_SECONDS."""
    signature = TimestampSigner(salt="content").sign(str(content_id)).split(":", 1)[1]
    return f"{content_url(content_id)}?signature={signature}"


def signature_is_good(content_id: object, signature: str) -> bool:
    """Return whether a signature is ours, for this content, and not too old."""
    signer = TimestampSigner(salt="content")
    try:
        signer.unsign(f"{content_id}:{signature}", max_age=settings.UAMP_CONTENT_URL_SECONDS)
    except BadSignature:
        return False
    return True
