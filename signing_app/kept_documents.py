"""Public documents, the same for every client: made once in some seconds, not for each request."""

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


class KeptDocument(Generic[Document]):
    """The result of `make`, kept for so many seconds. Any thread may call its methods.

    One thread makes it anew; others get the one before meanwhile, and wait only where there is
    none.
    """

    def __init__(self, make: Callable[[], Document], *, seconds: float) -> None:
        """`make` is called by a thread that may use the database."""
        self.seconds = seconds
        self._make = make
        self._kept: tuple[Document, float] | None = None
        self._times_forgotten = 0
        self._making = threading.Lock()
        _all.add(self)

    def fresh(self) -> Document | None:
        """Return it where it is kept and young enough; this never blocks."""
        kept = self._kept
        return kept[0] if kept is not None and time.monotonic() < kept[1] else None

    def read(self) -> Document:
        """Return it, and make it anew where it is too old."""
        found = self.fresh()
        if found is not None:
            return found
        kept = self._kept
        if not self._making.acquire(blocking=kept is None) and kept is not None:
            return kept[0]
        try:
            found = self.fresh()
            return self._made() if found is None else found
        finally:
            self._making.release()

    def forget(self) -> None:
        """Make it anew when it is asked for next."""
        self._times_forgotten += 1
        self._kept = None

    def _made(self) -> Document:
        before = self._times_forgotten
        made = self._make()
        # One that was forgotten while it was made may lack what was written then.
        if before == self._times_forgotten:
            self._kept = made, time.monotonic() + self.seconds
        return made


_all: Final[weakref.WeakSet[KeptDocument[Any]]] = weakref.WeakSet()


def forget_all() -> None:
    """Forget every kept document of this process: a key that it may have was changed."""
    for document in list(_all):
        document.forget()


def public_answer(
    request: HttpRequest, body: bytes, *, media_type: str, max_age: int
) -> HttpResponseBase:
    """Return a document that every client may have, or 304 where it has it (RFC 9110 §13.1.2)."""
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    made = HttpResponse(body, content_type=media_type)
    answer = get_conditional_response(request, etag=etag, response=made) or made
    answer["ETag"] = etag
    answer["Cache-Control"] = f"public, max-age={max_age}"
    return answer
