"""The public halves of the keys that sign payment tokens (RFC 7517)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.http import JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

from payments_app.tokens.signing_keys import jwks

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

CACHE_SECONDS = 3600


@require_safe
@cache_control(public=True, max_age=CACHE_SECONDS)
def published_keys(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 the interface's
    """Return /.well-known/jwks.json; it is the same for every client."""
    return JsonResponse(jwks())
