"""UAMP's types in the OpenAPI document: their schemas, and fields that refer to them.

`add_types` (a drf-spectacular hook) adds the schemas, whose names begin with `Uamp`.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

import msgspec
from drf_spectacular.drainage import set_override
from rest_framework import serializers

import uamp
from chat_app.log.history import LOG_TYPES
from uamp.events.server import ToolProgress

_PREFIX: Final = "Uamp"
_REFERENCE: Final = f"#/components/schemas/{_PREFIX}{{name}}"
_NAMED: Final[dict[str, Any]] = {"UsageStats": uamp.UsageStats, "ToolProgress": ToolProgress}
# Content items and events are described, not defined: their whole schemas contain each other, and
# viewers of the document that resolve every reference do not come to an end.
_DESCRIBED: Final[dict[str, Any]] = {
    "ContentItem": {
        "type": "object",
        "description": "A content item (UAMP §8.4). The member with the name of its type has the"
        " medium, the call or its result.",
        "properties": {
            "type": {
                "type": "string",
                "description": "text, image, audio, video, file, tool_call, tool_result, thinking",
            },
            "text": {"type": "string"},
            "content_id": {"type": "string"},
        },
        "required": ["type"],
    },
    "Event": {
        "type": "object",
        "description": "An event of UAMP; `/schemas/uamp/1.0/{type}.json` has its members.",
        "properties": {
            "type": {"type": "string", "enum": list(LOG_TYPES)},
            "event_id": {"type": "string"},
            "timestamp": {"type": "integer", "description": "Unix milliseconds."},
        },
        "required": ["type"],
    },
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
    _, parts = msgspec.json.schema_components(list(_NAMED.values()), ref_template=_REFERENCE)
    return {f"{_PREFIX}{name}": schema for name, schema in (parts | _DESCRIBED).items()}
