"""Parses the JSON of exports, without ambiguity.

Duplicate member names are refused: another reader may show the first value, while the last one is
verified.
"""

import json
from math import isinf
from typing import Any, Final, NoReturn

from uamp.client.errors import ExportCutError

DEPTH_MAX: Final = 200
"""The deepest nesting of objects and arrays that a server writes."""


def object_of(text: bytes, subject: str) -> dict[str, Any]:
    """Parse a JSON object; return {} for any other value. Raises ExportCutError."""
    try:
        value = json.loads(
            text.decode(), object_pairs_hook=_object, parse_float=_float, parse_constant=_refuse
        )
        if b"\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()
        if text.count(b"{") + text.count(b"[") > DEPTH_MAX:
            _check_depth(value)
    except (ValueError, RecursionError) as error:
        raise ExportCutError(f"{subject} is not JSON: {error}", code="export_changed") from None
    return value if isinstance(value, dict) else {}


def objects_of(value: Any, subject: str) -> list[dict[str, Any]]:
    """Return the objects of an array. Raises ExportCutError if it is not an array of objects."""
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise ExportCutError(f"The file has no {subject}.", code="export_changed")
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("an object has a duplicate member")
    return members


def _float(digits: str) -> float:
    value = float(digits)
    if isinf(value):
        raise ValueError("a number is too large for a double")
    return value


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _check_depth(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(DEPTH_MAX):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        if not inner:
            return
        level = inner
    raise ValueError(f"it is nested more than {DEPTH_MAX} levels deep")
