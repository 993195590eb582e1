"""The live part of a timeline as server-sent events, for as long as its reader may see it.

The rows are read again every second while an answer runs, less often otherwise, and the part is
sent if it has changed. Each reading checks the reader's sign-in and rights anew.
"""

from __future__ import annotations

import asyncio
import copy
import json
import time
from collections import Counter
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from django.conf import settings
from django.contrib.auth import get_user
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, StreamingHttpResponse

from sessions_app import database
from sessions_app.process import registry

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from django.http import HttpRequest
    from django.http.response import HttpResponseBase

RUNNING_SECONDS: Final = 1.0
IDLE_SECONDS: Final = 5.0
QUIET_SECONDS: Final = 15.0
"""After this long without an event, a comment shows whether the reader is still there."""
MAX_SECONDS: Final = 600.0
"""A stream ends after this long; the browser opens another one."""
MAX_TAILS: Final = 8
"""How many timelines one person may follow at once in a process."""

_tails: Counter[int] = Counter()


def tail_of(
    request: HttpRequest, part: Callable[[HttpRequest], dict[str, Any]]
) -> HttpResponseBase:
    """Return a stream of the parts that `part` reads; 429 if a person has too many.

    `part` may use the database, and raises PermissionDenied and Http404.
    """
    reader = request.user.pk or 0
    if _tails[reader] >= MAX_TAILS:
        return HttpResponse(status=429, headers={"Retry-After": "10"})
    first = part(request)
    return StreamingHttpResponse(
        _frames(request, part, first, reader),
        content_type="text/event-stream",
        headers={"Cache-Control": "no-cache, no-transform", "X-Accel-Buffering": "no"},
    )


async def _frames(
    request: HttpRequest,
    part: Callable[[HttpRequest], dict[str, Any]],
    first: Mapping[str, Any],
    reader: int,
) -> AsyncIterator[bytes]:
    _tails[reader] += 1
    try:
        yield b"retry: 3000\n\n" + _event(first)
        current, sent_at = first, time.monotonic()
        end = sent_at + MAX_SECONDS
        while time.monotonic() < end and not _is_draining():
            await asyncio.sleep(RUNNING_SECONDS if current["is_running"] else IDLE_SECONDS)
            latest = await database.run(_read_again, request, part)
            if latest is None:
                yield b"event: gone\ndata: {}\n\n"
                return
            if latest != current:
                yield _event(latest)
            elif time.monotonic() - sent_at >= QUIET_SECONDS:
                yield b":\n\n"
            else:
                continue
            current, sent_at = latest, time.monotonic()
    finally:
        _tails[reader] -= 1
        if not _tails[reader]:
            del _tails[reader]


def _read_again(
    request: HttpRequest, part: Callable[[HttpRequest], dict[str, Any]]
) -> dict[str, Any] | None:
    """Return the part as the reader may see it now; None if they may no longer see it."""
    again = copy.copy(request)
    engine: Any = import_module(settings.SESSION_ENGINE)
    again.session = engine.SessionStore(request.session.session_key)
    again.user = get_user(again)
    if not (again.user.is_active and again.user.is_staff):
        return None
    try:
        return part(again)
    except (PermissionDenied, Http404):
        return None


def _is_draining() -> bool:
    process = registry.current_or_none()
    return process is not None and process.draining


def _event(part: Mapping[str, Any]) -> bytes:
    return f"data: {json.dumps(part)}\n\n".encode()
