"""`Idempotency-Key` of REST requests: the identity of a request, and its stored answer."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, Final

from cryptography.fernet import InvalidToken
from django.core.files.uploadedfile import UploadedFile
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.renderers import JSONRenderer
from rest_framework.response import Response

from agents_app.rest.problem_kinds import PROBLEMS
from agents_app.rest.problems import Problem
from agents_app.rest.rights import ALL
from agents_app.rest.views import caller, rights_of
from chat_app import repeats

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http.response import HttpResponseBase
    from rest_framework.request import Request

    from chat_app.models import RepeatedRequest

HEADER: Final = "Idempotency-Key"
KEY_CHARS: Final = 128
RETRY_SECONDS: Final = 1
_REFUSED: Final = 400
# The headers that say what an upload is.
_HEADERS: Final = ("Upload-Length", "Upload-Metadata")


class RepeatableRequest:
    """A request with a key, from its arrival to its answer."""

    def __init__(self, request: Request, row: RepeatedRequest) -> None:
        self._request = request
        self._row = row

    @classmethod
    def of(cls, request: Request) -> RepeatableRequest | None:
        """Claim the key of a request; None if it has none. Raises Problem."""
        key = request.headers.get(HEADER)
        if key is None or not request.user.is_authenticated:
            return None
        if not 0 < len(key) <= KEY_CHARS:
            message = f"The header {HEADER} must have 1 to {KEY_CHARS} characters."
            raise Problem("invalid", message, errors=[{"header": HEADER, "detail": message}])
        try:
            return cls(request, repeats.claim(caller(request).pk, key, _digest(request)))
        except repeats.KeyConflict as error:
            raise _problem("idempotency_conflict") from error
        except repeats.KeyInUse as error:
            raise _problem("idempotency_key_in_use", retry_after=RETRY_SECONDS) from error

    @property
    def is_repeated(self) -> bool:
        """Whether the first request with the key has been answered."""
        return self._row.status is not None

    def replay(
        self, *args: Any, current: Callable[..., Response] | None = None, **kwargs: Any
    ) -> Response:
        """Return the answer to the first request, or what `current` answers in its place.

        Raises Problem if the first answer showed a secret.
        """
        if current is not None:
            done = current(*args, **kwargs)
            done["Idempotency-Replayed"] = "true"
            return done
        location = {"Location": self._row.location} if self._row.location else {}
        try:
            body = repeats.stored_body(self._row) if self._row.answer else b""
        except InvalidToken:
            body = b""
        if not body:
            raise _problem("secret_shown_once", location=self._row.location)
        headers = {**location, "Idempotency-Replayed": "true"}
        return Response(json.loads(body), status=self._row.status, headers=headers)

    def answered(self, response: HttpResponseBase, *, shows_secret: bool) -> None:
        """Store the answer, without one that shows a secret; release the key of a refused one."""
        if self.is_repeated:
            return
        if response.status_code >= _REFUSED or not isinstance(response, Response):
            repeats.release(self._row)
            return
        body = b"" if shows_secret else JSONRenderer().render(response.data) or b"null"
        location = response.get("Location", "")
        repeats.answer(self._row, status=response.status_code, location=location, body=body)


def _problem(code: str, **members: Any) -> Problem:
    return Problem(code, PROBLEMS[code].remedy, members=members)


def _digest(request: Request) -> str:
    """Return the digest by which two requests are the same: path, body, credential and its rights.

    A token of another issuer has no name of its own and may be renewed between two attempts, so its
    rights stand for it: a token with the same rights may read the answer.
    """
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    digest.update(str(getattr(request.auth, "credential", "")).encode())
    rights = rights_of(request)
    if rights != ALL:
        digest.update(f"\n{rights.digest}".encode())
    for name in _HEADERS:
        digest.update(f"\n{request.headers.get(name, '')}".encode())
    try:
        members = dict(request.data or {})
    except UnsupportedMediaType:
        # The view reads no body, or refuses this one.
        members = {}
    # The order of members does not matter.
    for name, value in sorted(members.items()):
        digest.update(f"\n{name}=".encode())
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, UploadedFile):
                digest.update(f"{item.name} {item.content_type}\n".encode())
                for chunk in item.chunks():
                    digest.update(chunk)
                item.seek(0)
            else:
                digest.update(json.dumps(item, sort_keys=True).encode())
    return digest.hexdigest()
