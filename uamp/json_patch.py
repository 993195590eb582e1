"""JSON Patch (RFC 6902) with JSON Pointers (RFC 6901) on JSON values; nothing changes in place.

Clients and models send patches, and each `copy` may double a document, so its growth is bounded
while a patch is applied.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgspec

PatchOperation: TypeAlias = Mapping[str, Any]
"""One operation: ``op``, ``path``, and ``value`` or ``from`` if the operation has one."""

_WITH_VALUE: Final = ("add", "replace", "test")
_WITH_FROM: Final = ("move", "copy")
_MISSING: Final = object()


class PatchError(ValueError):
    """A patch cannot be applied; the message names the operation and the reason."""


def apply_patch(document: Any, patch: Sequence[PatchOperation], *, max_bytes: int) -> Any:
    """Apply a patch to a document, entirely or not at all, and return the new document.

    Raises PatchError for an operation that RFC 6902 does not define, for a path that does not
    exist, for a `test` that fails, and if copies exceed ``max_bytes`` of JSON.
    """
    remaining = max_bytes
    for number, operation in enumerate(patch):
        try:
            document, copied = _apply(document, operation)
        except PatchError as error:
            raise PatchError(f"Operation {number}: {error}") from None
        remaining -= copied
        if remaining < 0:
            raise PatchError(f"Operation {number}: the copies exceed {max_bytes} bytes.")
    return document


def make_patch(before: Any, after: Any) -> list[dict[str, Any]]:
    """Return a patch that turns `before` into `after`; an empty one if they are equal.

    Objects are compared member by member. An array that differs is replaced, unless items were only
    appended to it.
    """
    return list(_differences(before, after, ""))


def _differences(before: Any, after: Any, path: str) -> Any:
    if same_json(before, after):
        return
    if isinstance(before, dict) and isinstance(after, dict):
        for name in before.keys() - after.keys():
            yield {"op": "remove", "path": f"{path}/{_escape(name)}"}
        for name, value in after.items():
            below = f"{path}/{_escape(name)}"
            if name in before:
                yield from _differences(before[name], value, below)
            else:
                yield {"op": "add", "path": below, "value": value}
        return
    if isinstance(before, list) and isinstance(after, list):
        length = len(before)
        if same_json(before, after[:length]):
            yield from (
                {"op": "add", "path": f"{path}/-", "value": item} for item in after[length:]
            )
            return
    yield {"op": "replace", "path": path, "value": after}


def same_json(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; numbers compare by value, never with booleans."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            same_json(value, right[name]) for name, value in left.items()
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def _apply(document: Any, operation: PatchOperation) -> tuple[Any, int]:
    """Return the changed document and the number of bytes copied within it."""
    op, path = operation.get("op"), _pointer(operation, "path")
    if op in _WITH_VALUE:
        if "value" not in operation:
            raise PatchError(f"`{op}` needs a `value`.")
        value = operation["value"]
        if op == "add":
            return _add(document, path, value), 0
        if op == "replace":
            _value_at(document, path)
            return _replace(document, path, value), 0
        if not same_json(_value_at(document, path), value):
            raise PatchError(f"the value at `{operation['path']}` is different.")
        return document, 0
    if op in _WITH_FROM:
        source = _pointer(operation, "from")
        value = _value_at(document, source)
        if op == "copy":
            return _add(document, path, value), len(msgspec.json.encode(value))
        if len(path) > len(source) and path[: len(source)] == source:
            raise PatchError("a value cannot be moved into itself.")
        return _add(_remove(document, source), path, value), 0
    if op == "remove":
        _value_at(document, path)
        return _remove(document, path), 0
    raise PatchError("`op` must be add, remove, replace, move, copy or test.")


def _pointer(operation: PatchOperation, name: str) -> tuple[str, ...]:
    """Split a JSON Pointer into unescaped tokens; the empty pointer is the whole document."""
    text = operation.get(name)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(f"`{name}` must be a JSON Pointer, such as `/items/0`.")
    tokens = text.split("/")[1:]
    if any("~" in token.replace("~0", "").replace("~1", "") for token in tokens):
        raise PatchError(f"`{name}` has a `~` that is neither `~0` nor `~1`.")
    return tuple(token.replace("~1", "/").replace("~0", "~") for token in tokens)


def _value_at(document: Any, path: Sequence[str]) -> Any:
    for depth, token in enumerate(path):
        document = _child(document, token)
        if document is _MISSING:
            raise PatchError(f"there is nothing at `{_pointer_text(path[: depth + 1])}`.")
    return document


def _child(value: Any, token: str) -> Any:
    if isinstance(value, dict):
        return value.get(token, _MISSING)
    if isinstance(value, list) and (at := _index(token)) is not None and at < len(value):
        return value[at]
    return _MISSING


def _index(token: str) -> int | None:
    """Return the array index that a token names: digits without leading zeros."""
    is_index = token.isascii() and token.isdigit() and (token == "0" or token[0] != "0")  # noqa: S105 - a token of a JSON Pointer
    return int(token) if is_index and len(token) < len("1000000") else None


def _add(document: Any, path: Sequence[str], value: Any) -> Any:
    if not path:
        return value
    parent, token = _value_at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        return _replace(document, path[:-1], {**parent, token: value})
    if isinstance(parent, list):
        at = len(parent) if token == "-" else _index(token)  # noqa: S105 - a token of a JSON Pointer
        if at is not None and at <= len(parent):
            return _replace(document, path[:-1], [*parent[:at], value, *parent[at:]])
    raise PatchError(f"nothing can be added at `{_pointer_text(path)}`.")


def _remove(document: Any, path: Sequence[str]) -> Any:
    if not path:
        return None
    parent, token = _value_at(document, path[:-1]), path[-1]
    if isinstance(parent, dict):
        remaining: Any = {name: value for name, value in parent.items() if name != token}
    else:
        at = int(token)
        remaining = [*parent[:at], *parent[at + 1 :]]
    return _replace(document, path[:-1], remaining)


def _replace(document: Any, path: Sequence[str], value: Any) -> Any:
    """Return the document with the value at an existing path replaced."""
    if not path:
        return value
    below = _replace(_child(document, path[0]), path[1:], value)
    if isinstance(document, dict):
        return {**document, path[0]: below}
    at = int(path[0])
    return [*document[:at], below, *document[at + 1 :]]


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _pointer_text(path: Sequence[str]) -> str:
    return "".join(f"/{_escape(token)}" for token in path)
