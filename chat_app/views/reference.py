"""The reference pages of REST: the OpenAPI document and its reader, and the list of problems."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from drf_spectacular.settings import spectacular_settings

import uamp
from chat_app.problems import PROBLEMS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    generator: Any = spectacular_settings.DEFAULT_GENERATOR_CLASS()
    document: dict[str, Any] = generator.get_schema(request=None, public=True)
    return document


@require_safe
def schema(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 the interface's
    """Return the OpenAPI document; it is the same for everybody and made once per process."""
    return JsonResponse(_schema())


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    """Return what each problem's code means: the places that `type` points to (RFC 9457 §3.1.1).

    The HTTP transports of the protocol answer with its own codes; they are listed below ours.
    """
    protocol = {code: row for code, row in uamp.ERROR_CODES.items() if code not in PROBLEMS}
    return render(request, "chat_app/problems.html", {"problems": PROBLEMS, "protocol": protocol})
