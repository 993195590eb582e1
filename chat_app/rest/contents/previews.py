"""REST of previews: pictures that browsers do not show, as WebP."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.permissions import AllowAny

from agents_app.rest.problems import Problem, responses
from chat_app.contents.drawing import PREVIEW_MIME, DrawingBusy
from chat_app.contents.previews import is_to_be_drawn, preview_of
from chat_app.rest.contents.contents import POLICY, requested
from chat_app.rest.edge import RestView
from uamp.digital_source import AI_HEADERS

if TYPE_CHECKING:
    import uuid

    from rest_framework.request import Request


class PreviewView(RestView):
    """The preview of a file."""

    read_scope = "chats:read"

    permission_classes = (AllowAny,)

    @property
    def throttle_scope(self) -> str | None:
        """Count a preview that has to be drawn as such, for readers of its file."""
        try:
            content = requested(self.kwargs["content_id"], self.request)
        except Http404:
            return None
        return "renders" if is_to_be_drawn(content) else None

    @extend_schema(
        operation_id="read_preview",
        parameters=[
            OpenApiParameter("for", description="From `signed_url`."),
            OpenApiParameter("signature", description="From `signed_url`; needs no sign-in."),
        ],
        responses={(200, PREVIEW_MIME): OpenApiTypes.BINARY, **responses(404, 503)},
    )
    def get(self, request: Request, content_id: uuid.UUID) -> HttpResponse:
        """Return the preview to a reader of the file; 404 for a file that has none."""
        content = requested(content_id, request)
        try:
            preview = preview_of(content)
        except DrawingBusy:
            raise Problem("unavailable", "Too many previews are being drawn. Try again.") from None
        if not preview:
            raise Http404
        headers = {
            "Content-Disposition": "inline",
            "X-Content-Type-Options": "nosniff",
            "Content-Security-Policy": POLICY,
            "ETag": f'"{hashlib.sha256(preview).hexdigest()}"',
            **(AI_HEADERS if content.is_made_by_agent else {}),
        }
        return HttpResponse(preview, content_type=PREVIEW_MIME, headers=headers)
