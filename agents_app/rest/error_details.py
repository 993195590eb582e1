"""Conversion of Django REST framework's error details to pairs of a pointer and a message."""

from __future__ import annotations

from typing import Any


def flatten(detail: Any, pointer: str = "") -> list[tuple[str, str]]:
    """Return the messages of a DRF error detail, each with its JSON pointer (RFC 6901)."""
    if isinstance(detail, dict):
        return [
            pair
            for name, inner in detail.items()
            for pair in flatten(
                inner, pointer if name == "non_field_errors" else f"{pointer}/{_escape(name)}"
            )
        ]
    if isinstance(detail, list):
        return [
            pair
            for index, inner in enumerate(detail)
            for pair in flatten(
                inner, f"{pointer}/{index}" if isinstance(inner, dict | list) else pointer
            )
        ]
    return [(pointer, str(detail))]


def _escape(name: object) -> str:
    return str(name).replace("~", "~0").replace("/", "~1")
