"""Builders of oversized and deeply nested frames."""

import json
from typing import Any


def text_event(**fields: Any) -> str:
    """Return an `input.text` as JSON text."""
    return json.dumps({"type": "input.text", "event_id": "e", "text": "x", **fields})


def image_frame_of(size: int) -> str:
    """Return an `input.image` frame of exactly so many bytes."""
    empty = json.dumps({"type": "input.image", "event_id": "e", "image": "", "format": "png"})
    return empty.replace('"image": ""', f'"image": "{"A" * (size - len(empty))}"')


def nested(depth: int) -> dict[str, Any]:
    """Return objects in each other."""
    value: dict[str, Any] = {}
    for _ in range(depth - 1):
        value = {"a": value}
    return value
