"""`/.well-known/jwks.json`: the keys that verify what this server signs (RFC 7517)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from django.views.decorators.http import require_safe

from signing_app.cached_documents import CachedDocument, public_answer
from signing_app.published import all_keys, keys_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

CACHE_SECONDS: Final = 300
"""How long a reader may cache the set, and so the longest that a withdrawn key is trusted."""

MAX_KIDS: Final = 50

KEPT_SECONDS: Final = 2.0
"""How long a process serves the set of all keys from its cache, unless it changes a key itself."""


@require_safe
def published_keys(request: HttpRequest) -> HttpResponseBase:
    """Return the newest keys, or those that `?kid=` names, the same for every client."""
    kids = request.GET.getlist("kid")[:MAX_KIDS]
    body = _encoded(keys_named(kids)) if kids else every_key.read()
    answer = public_answer(request, body, media_type="application/json", max_age=CACHE_SECONDS)
    answer["Access-Control-Allow-Origin"] = "*"
    return answer


def _encoded(keys: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(keys)


every_key: Final = CachedDocument(lambda: _encoded(all_keys()), seconds=KEPT_SECONDS)
