"""UAMP's types in the OpenAPI document: their schemas, and fields that refer to them.

`add_types` (a drf-spectacular hook) adds the schemas, whose names begin with `Uamp`.
"""

from __future__ import annotations

from functools import cache, reduce
from operator import or_
from typing import Any, Final

import msgspec
from drf_spectacular.drainage import set_override
from rest_framework import serializers

import uamp
from chat_app.log.history import LOG_TYPES
from uamp.events import SERVER_EVENTS
from uamp.events.server import ToolProgress

_PREFIX: Final = "Uamp"
_REFERENCE: Final = f"#/components/schemas/{_PREFIX}{{name}}"
_NAMED: Final[dict[str, Any]] = {
    "ContentItem": uamp.ContentItem,
    "UsageStats": uamp.UsageStats,
    "ToolProgress": ToolProgress,
}


class ErrorSerializer(serializers.Serializer[Any]):
    """Why a response failed, with the error code of `response.error`."""

    code = serializers.CharField()
    message = serializers.CharField()


class ReferenceField(serializers.DictField):
    """An object whose schema is defined elsewhere in the document, by its name there."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(**options)
        set_override(self, "field", {"$ref": f"#/components/schemas/{name}"})


class UampField(ReferenceField):
    """An object of UAMP: `ContentItem`, `UsageStats`, `ToolProgress`, or the `Event` of a log."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(f"{_PREFIX}{name}", **options)


def add_types(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the schemas of UAMP's types that fields refer to."""
    schemas = result["components"]["schemas"]
    schemas.update(_schemas())
    result["components"]["schemas"] = dict(sorted(schemas.items()))
    return result


@cache
def _schemas() -> dict[str, Any]:
    logged = reduce(or_, (SERVER_EVENTS[name] for name in LOG_TYPES))
    types = {**_NAMED, "Event": logged}
    found, parts = msgspec.json.schema_components(list(types.values()), ref_template=_REFERENCE)
    named = {f"{_PREFIX}{name}": schema for name, schema in parts.items()}
    for name, schema in zip(types, found, strict=True):
        named.setdefault(f"{_PREFIX}{name}", schema)
    return named
