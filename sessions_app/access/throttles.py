"""The rate limits of `rates` for Django views: REST, discovery and forms."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS
from rest_framework.throttling import BaseThrottle

from sessions_app.access import rates

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request
    from rest_framework.views import APIView


def count(request: HttpRequest, kind: str, user_id: int | None, *, cost: int = 1) -> rates.Quota:
    """Count a request of a person or (with None) a visitor, and note it for the headers."""
    address = str(request.META.get("REMOTE_ADDR", ""))
    name = rates.visitors(address) if user_id is None else rates.person(user_id)
    quota = rates.limiter().hit(kind, name, cost=cost)
    if (scope := getattr(request, "scope", None)) is not None:
        rates.note(scope, quota)
    return quota


class RateThrottle(BaseThrottle):
    """Counts a REST request under the view's `throttle_scope`, or as a read or write.

    For the view's `methods_storing_text`, the request body also counts as text.
    """

    def allow_request(self, request: Request, view: APIView) -> bool:
        """Return whether the request is within the limit; otherwise `wait` returns the pause."""
        usual = "reads" if request.method in SAFE_METHODS else "writes"
        kind = getattr(view, "throttle_scope", None) or usual
        self._quota = count(request._request, kind, request.user.pk)  # noqa: SLF001 the public request has no scope
        if self._quota.allowed and request.method in getattr(view, "methods_storing_text", ()):
            self._quota = _count_text(request)
        return self._quota.allowed

    @staticmethod
    def charge(kind: str, user_id: int, cost: int) -> int | None:
        """Count what a view does for a person; return the pause in seconds if it is refused.

        The response's headers do not show it, as the limit may be another person's.
        """
        quota = rates.limiter().hit(kind, rates.person(user_id), cost=cost)
        return None if quota.allowed else quota.retry_after

    def wait(self) -> float:
        """Return the seconds until the next request may be allowed."""
        return float(self._quota.retry_after)


def _count_text(request: Request) -> rates.Quota:
    """Count a request's body as bytes of text; the view reads no body without a length."""
    length = str(request.META.get("CONTENT_LENGTH") or "")
    size = int(length) if length.isascii() and length.isdigit() else 0
    return count(request._request, "bytes of text", request.user.pk, cost=max(size, 1))  # noqa: SLF001 the public request has no scope
