"""Generates JSON Schemas of all events from their types (UAMP §15).

Nothing is written by hand, so a schema always matches what is decoded. A schema describes the
shapes of the specification, not the other spellings that are also accepted.
"""

from inspect import cleandoc
from typing import Any

import msgspec

from uamp.events import CLIENT_EVENTS, SERVER_EVENTS, SYSTEM_EVENTS
from uamp.events.base import Event

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_CLASSES: dict[str, type[Event]] = {**CLIENT_EVENTS, **SERVER_EVENTS, **SYSTEM_EVENTS}


def schema_names() -> list[str]:
    """Return the sorted wire types that have a schema."""
    return sorted(_CLASSES)


def event_schema(type_name: str) -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of one event; KeyError for an unknown type."""
    schema = msgspec.json.schema(_CLASSES[type_name])
    for definition in schema["$defs"].values():
        definition["description"] = cleandoc(definition["description"])
    return {"$schema": _DIALECT, "$id": f"/schemas/uamp/1.0/{type_name}.json", **schema}
