"""Decides which JSON Schemas are cheap enough to check in a thread of this process.

The size of a keyword does not bound its cost: `uniqueItems` compares every pair, and a pattern or a
reference can take exponential time. A schema is cheap only if every keyword in it is known to be.
"""

from collections.abc import Callable
from typing import Any

# Together, these limit a check to a fraction of a second.
SCHEMA_BYTES = 4_000
VALUE_BYTES = 100_000
# Bytes of the schema times bytes of the value: each keyword may be checked for each item.
_EFFORT = 400_000
_DEPTH = 20
_DIALECTS = frozenset(
    {
        "http://json-schema.org/draft-07/schema",
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    }
)
# Annotations are ignored in a check.
_ANNOTATIONS = frozenset(
    {"$comment", "default", "deprecated", "description", "readOnly", "title", "writeOnly"}
)


def is_cheap(schema: Any, schema_bytes: int, value_bytes: int) -> bool:
    """Return whether checking a value of this size takes well under a second."""
    return (
        schema_bytes <= SCHEMA_BYTES
        and value_bytes <= VALUE_BYTES
        and schema_bytes * value_bytes <= _EFFORT
        and _is_plain(schema, _DEPTH)
    )


def _is_plain(schema: Any, depth: int) -> bool:
    if isinstance(schema, bool):
        return True
    if not isinstance(schema, dict) or not depth:
        return False
    return all(_is_plain_keyword(key, value, depth - 1) for key, value in schema.items())


def _is_plain_keyword(key: str, value: Any, depth: int) -> bool:
    if key == "items":
        return _is_plain(value, depth)
    if key == "properties":
        return isinstance(value, dict) and all(_is_plain(part, depth) for part in value.values())
    return key in _ANNOTATIONS or (key in _PLAIN and _PLAIN[key](value))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _are_scalars(value: Any) -> bool:
    return isinstance(value, list) and all(map(_is_scalar, value))


def _are_names(value: Any) -> bool:
    # Names must be unique, and values that cannot be sorted would be compared pair by pair.
    return isinstance(value, list) and all(isinstance(name, str) for name in value)


_PLAIN: dict[str, Callable[[Any], bool]] = {
    "$schema": lambda value: isinstance(value, str) and value in _DIALECTS,
    "additionalProperties": lambda value: isinstance(value, bool),
    "const": _is_scalar,
    "enum": _are_scalars,
    "required": _are_names,
    "type": lambda value: isinstance(value, str) or _are_names(value),
    **dict.fromkeys(
        (
            "exclusiveMaximum", "exclusiveMinimum", "maxItems", "maxLength", "maxProperties",
            "maximum", "minItems", "minLength", "minProperties", "minimum",
        ),
        _is_scalar,
    ),
}  # fmt: skip
