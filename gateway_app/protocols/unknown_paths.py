"""The 404 for paths that belong to no protocol, in the format of OpenAI's clients."""

from __future__ import annotations

from typing import Final

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from gateway_app.openai.errors import ErrorBody, OpenAIError

JSON: Final = "application/json"
HTML: Final = "text/html"
METHOD_CHARS: Final = 16
PATH_CHARS: Final = 200


@csrf_exempt
async def unknown_path(request: HttpRequest) -> HttpResponse:
    """Refuse a request of any method; a client that prefers HTML gets the 404 page."""
    if request.get_preferred_type([JSON, HTML]) == HTML:
        raise Http404
    operation = f"{(request.method or '')[:METHOD_CHARS]} {request.path[:PATH_CHARS]}"
    error = OpenAIError(
        message=f"There is no {operation} here. GET /agents/<name> has the addresses of an agent.",
        type="invalid_request_error",
        code="unknown_url",
    )
    body = msgspec.json.encode(ErrorBody(error=error))
    response = HttpResponse(body, status=404, content_type=JSON)
    response["Vary"] = "Accept"
    return response
