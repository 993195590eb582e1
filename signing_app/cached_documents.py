"""Public documents, the same for every client, cached for seconds rather than built per request."""

from __future__ import annotations

import hashlib
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from django.http import HttpResponse
from django.utils.cache import get_conditional_response

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

Document = TypeVar("Document")


class CachedDocument(Generic[Document]):
    """The result of `make`, cached for some seconds. Any thread may call its methods.

    One thread rebuilds it; others get the previous one meanwhile, and wait only if there is none.
    """

    def __init__(self, make: Callable[[], Document], *, seconds: float) -> None:
        """Store `make`, which is called on a thread that may use the database."""
        self.seconds = seconds
        self._make = make
        self._cached: tuple[Document, float] | None = None
        self._times_forgotten = 0
        self._making = threading.Lock()
        _all.add(self)

    def fresh(self) -> Document | None:
        """Return the document if it is cached and fresh; never blocks."""
        cached = self._cached
        return cached[0] if cached is not None and time.monotonic() < cached[1] else None

    def read(self) -> Document:
        """Return the document, rebuilding it if it is stale."""
        document = self.fresh()
        if document is not None:
            return document
        cached = self._cached
        if not self._making.acquire(blocking=cached is None) and cached is not None:
            return cached[0]
        try:
            document = self.fresh()
            return self._made() if document is None else document
        finally:
            self._making.release()

    def forget(self) -> None:
        """Rebuild the document on the next read."""
        self._times_forgotten += 1
        self._cached = None

    def _made(self) -> Document:
        before = self._times_forgotten
        made = self._make()
        # If it was forgotten while being built, it may lack what was written then.
        if before == self._times_forgotten:
            self._cached = made, time.monotonic() + self.seconds
        return made


_all: Final[weakref.WeakSet[CachedDocument[Any]]] = weakref.WeakSet()


def forget_all() -> None:
    """Forget every cached document of this process, because a key in it may have changed."""
    for document in list(_all):
        document.forget()


def public_answer(
    request: HttpRequest, body: bytes, *, media_type: str, max_age: int
) -> HttpResponseBase:
    """Return a document that any client may read, or 304 if it is unchanged (RFC 9110 §13.1.2)."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    made = HttpResponse(body, content_type=media_type)
    answer = get_conditional_response(request, etag=etag, response=made) or made
    answer["ETag"] = etag
    answer["Cache-Control"] = f"public, max-age={max_age}"
    return answer
