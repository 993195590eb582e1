"""The reference pages of REST: the OpenAPI document, its viewer, and the list of problems."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.http import JsonResponse
from django.shortcuts import render
from django.utils.html import format_html, format_html_join
from django.views.decorators.http import require_safe
from drf_spectacular.settings import spectacular_settings
from drf_spectacular.views import SpectacularSwaggerSplitView
from rest_framework.renderers import BaseRenderer, JSONRenderer

import uamp
from agents_app.rest.problem_kinds import PROBLEMS

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse
    from rest_framework.request import Request


@lru_cache(maxsize=1)
def _schema() -> dict[str, Any]:
    generator: Any = spectacular_settings.DEFAULT_GENERATOR_CLASS()
    document: dict[str, Any] = generator.get_schema(request=None, public=True)
    return document


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


@require_safe
def schema(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 required by the interface
    """Return the OpenAPI document, the same for every client and built once per process."""
    return JsonResponse(_schema())


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
        "", "{}", ((format_html("<code>{}</code>", one) if n % 2 else one,) for n, one in parts)
    )
