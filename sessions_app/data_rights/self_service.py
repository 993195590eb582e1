"""The form on the account page with which people export all of their data."""

from __future__ import annotations

import asyncio
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Final

from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.utils.http import content_disposition_header
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from agents_app.rest.views import address_of, caller
from audit_app.record import AuditAction, record
from chat_app.rest.messages.export import ExportResponse
from sessions_app.access import throttles
from sessions_app.data_rights.personal_export import export_person

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from concurrent.futures import Future

    from django.contrib.auth.models import User
    from django.http import HttpRequest, HttpResponse
    from django.http.response import HttpResponseBase

_PIECE: Final = 64 * 1024
AGAIN_SECONDS: Final = 60
"""When to retry while another export of the person is running."""
# Exports run one at a time: each may take minutes, while the requests of all clients need the event
# loop's threads.
_maker: Final = ThreadPoolExecutor(1, thread_name_prefix="personal-export")


class PersonalExport:
    """A person's export in this process, running from `begin` to `end`."""

    _lock: Final = threading.Lock()
    _people: Final[set[int]] = set()

    def __init__(self, user_id: int) -> None:
        self._user_id = user_id
        self._is_held = False

    def begin(self) -> bool:
        """Start the export; return False if the person already has one running."""
        with self._lock:
            if self._user_id in self._people:
                return False
            self._people.add(self._user_id)
            self._is_held = True
            return True

    def end(self) -> None:
        """Allow the person another export. Idempotent."""
        with self._lock:
            if self._is_held:
                self._is_held = False
                self._people.discard(self._user_id)


class PersonalExportResponse(ExportResponse):
    """Streams a person's file; a dedicated thread builds it before the first piece.

    The export ends once the response is closed and nothing more is being built.
    """

    def __init__(self, pieces: Iterator[bytes], export: PersonalExport, **kwargs: Any) -> None:
        self._export = export
        self._first: Future[bytes] | None = None
        super().__init__(pieces, **kwargs)

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self._first = _maker.submit(self._next)
        piece = await asyncio.wrap_future(self._first)
        while piece:
            yield piece
            piece = await asyncio.to_thread(self._next)

    def close(self) -> None:
        """Close the file, at the latest once its first piece has been built."""
        super().close()
        if self._first is None:
            self._export.end()
        else:
            self._first.add_done_callback(lambda _: self._export.end())


@require_POST
@never_cache
@login_required
def export_own_data(request: HttpRequest) -> HttpResponseBase:
    """Return a ZIP file of everything that the server has on the person (`personal_export`).

    An export thread builds it after the response has started. A person can run one at a time, up to
    UAMP_PERSONAL_EXPORTS_PER_DAY.
    """
    user = caller(request)
    export = PersonalExport(user.pk)
    if not export.begin():
        return _refused(request, AGAIN_SECONDS)
    try:
        return _begun(request, user, export)
    except BaseException:
        export.end()
        raise


def _begun(request: HttpRequest, user: User, export: PersonalExport) -> HttpResponseBase:
    quota = throttles.count(request, "personal exports", user.pk)
    if not quota.allowed:
        export.end()
        return _refused(request, quota.retry_after)
    record(user, AuditAction.PERSON_EXPORTED, user, address=address_of(request))
    return export_response(user, export)


def export_response(user: User, export: PersonalExport) -> PersonalExportResponse:
    """Return a person's file, of which `export` has begun."""
    name = f"{user.get_username()}.zip"
    disposition = content_disposition_header(as_attachment=True, filename=name) or "attachment"
    return PersonalExportResponse(
        _pieces(user),
        export,
        content_type="application/zip",
        headers={"Content-Disposition": disposition},
    )


def _refused(request: HttpRequest, seconds: int) -> HttpResponse:
    page = render(request, "sessions_app/too_often.html", {"seconds": seconds}, status=429)
    page["Retry-After"] = str(seconds)
    return page


def _pieces(user: User) -> Iterator[bytes]:
    with tempfile.TemporaryFile() as file:
        export_person(user, file)
        file.seek(0)
        while piece := file.read(_PIECE):
            yield piece
