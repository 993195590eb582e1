"""Makes text safe for every database and codec: no NUL, no lone surrogates (docs/transports.md)."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from uamp.types.content import ContentItem


def storable(text: str) -> str:
    """Replace NUL and lone surrogates, which some databases and codecs reject."""
    if text.isascii() and "\0" not in text:
        return text
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")


def storable_json(value: Any) -> Any:
    """Return JSON whose strings are `storable`, including the names of members."""
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, Mapping):
        return {storable(str(key)): storable_json(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [storable_json(inner) for inner in value]
    return value


def storable_items(items: Sequence[ContentItem]) -> tuple[ContentItem, ...]:
    """Return content items with `storable` text; raises ValueError for an invalid item."""
    if not items:
        return ()
    return msgspec.convert(storable_json(msgspec.to_builtins(items)), tuple[ContentItem, ...])
