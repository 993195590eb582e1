"""The JSON Schemas of all events, generated from the protocol's types (UAMP §4)."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

from django.http import Http404, JsonResponse
from django.views.decorators.cache import cache_control
from django.views.decorators.http import require_safe

import uamp
from uamp.documents.schema import event_schema, schema_names

if TYPE_CHECKING:
    from django.http import HttpRequest

MEDIA_TYPE = "application/schema+json"

_cached_schema = lru_cache(maxsize=None)(event_schema)


@require_safe
@cache_control(public=True, max_age=3600)
def index(_request: HttpRequest) -> JsonResponse:
    """Return the path of each event's schema by event type."""
    schemas = {name: f"/schemas/uamp/1.0/{name}.json" for name in schema_names()}
    return JsonResponse({"uamp_version": uamp.VERSION, "schemas": schemas})


@require_safe
@cache_control(public=True, max_age=3600)
def event(_request: HttpRequest, type_name: str) -> JsonResponse:
    """Return the schema of one event; raises Http404 for an unknown type."""
    try:
        schema: dict[str, Any] = _cached_schema(type_name)
    except KeyError as error:
        raise Http404 from error
    return JsonResponse(schema, content_type=MEDIA_TYPE)
