"""The reference pages of REST: the OpenAPI document, its viewer, and the list of problems."""

from __future__ import annotations

import hashlib
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec
from django.http import HttpResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.views.decorators.cache import cache_control
from django.views.decorators.http import condition, require_safe
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.renderers import BaseRenderer, JSONRenderer

import uamp
from agents_app.rest.problem_kinds import PROBLEMS

if TYPE_CHECKING:
    from django.http import HttpRequest
    from rest_framework.request import Request

SCHEMA_SECONDS: Final = 300
"""How long clients may use the OpenAPI document without asking whether it changed."""
_generating: Final = threading.Lock()


class _Document(NamedTuple):
    body: bytes
    etag: str


def _schema() -> _Document:
    # Generating it takes seconds of CPU: concurrent first requests wait for one of them.
    with _generating:
        return _generated()


@lru_cache(maxsize=1)
def _generated() -> _Document:
    generator: Any = spectacular_settings.DEFAULT_GENERATOR_CLASS()
    body = msgspec.json.encode(generator.get_schema(request=None, public=True))
    return _Document(body, f'"{hashlib.sha256(body).hexdigest()[:32]}"')


class ApiDocsView(SpectacularSwaggerSplitView):
    """The viewer of the OpenAPI document; it answers only GET and HEAD."""

    url_name = "schema"
    template_name = "chat_app/api_docs.html"
    http_method_names = ["get", "head"]  # noqa: RUF012 as in the base class
    # A refusal is a problem in JSON, as everywhere below /api.
    renderer_classes = [  # noqa: RUF012 as above
        *SpectacularSwaggerSplitView.renderer_classes,
        JSONRenderer,
    ]

    def perform_content_negotiation(
        self,
        request: Request,
        force: bool = False,  # noqa: ARG002, FBT001, FBT002 required by the interface
    ) -> tuple[BaseRenderer, str]:
        """Return the page for GET and HEAD, and JSON for everything else."""
        if request.method in {"GET", "HEAD"}:
            return super().perform_content_negotiation(request, force=True)
        return JSONRenderer(), JSONRenderer.media_type


def _etag(request: HttpRequest) -> str:  # noqa: ARG001 required by the interface
    return _schema().etag


@require_safe
@cache_control(public=True, max_age=SCHEMA_SECONDS)
@condition(etag_func=_etag)
def schema(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 required by the interface
    """Return the OpenAPI document, the same for every client and encoded once per process."""
    return HttpResponse(_schema().body, content_type="application/json")


@require_safe
def problems(request: HttpRequest) -> HttpResponse:
    """Return the page that documents each problem code, as linked by `type` (RFC 9457 §3.1.1).

    The HTTP transports of the protocol have their own codes, which are listed below ours.
    """
    ours = [
        (code, kind.status, _with_code(f"{kind.title} {kind.remedy}"))
        for code, kind in PROBLEMS.items()
    ]
    protocol = [
        (code, _with_code(f"{row.when} {row.what_to_do}"))
        for code, row in uamp.ERROR_CODES.items()
        if code not in PROBLEMS
    ]
    return render(request, "chat_app/problems.html", {"problems": ours, "protocol": protocol})


def _with_code(text: str) -> str:
    """Return a text as HTML, with text between backticks as code."""
    parts = enumerate(text.split("`"))
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if n % 2 else part,) for n, part in parts)
    )
