"""The A2A versions and extensions that a client names in headers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from gateway_app.a2a.tasks import payments
from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponseBase

HEADER: Final = "A2A-Version"
VERSIONS: Final = ("1.0", "0.3")
_EXTENSIONS: Final = ("A2A-Extensions", "X-A2A-Extensions")


def check_version(request: HttpRequest, spoken: Literal["1.0", "0.3", ""] = "") -> None:
    """Refuse a version that is unknown, or that differs from the one `spoken`.

    A client that names no version may use any. Raises TaskRefused.
    """
    named = request.headers.get(HEADER) or request.GET.get(HEADER) or ""
    version = ".".join(named.split(".")[:2])
    if not named or version == spoken or (not spoken and version in VERSIONS):
        return
    raise TaskRefused(
        TaskErrorReason.VERSION_NOT_SUPPORTED,
        f"{HEADER} {named[:20]!r} does not match the method. Supported: {', '.join(VERSIONS)}.",
    )


def activate(request: HttpRequest, response: HttpResponseBase) -> None:
    """Name the requested extensions that are active in the response."""
    for header in _EXTENSIONS:
        extensions = [name.strip() for name in request.headers.get(header, "").split(",")]
        if payments.EXTENSION in extensions:
            response[header] = payments.EXTENSION
