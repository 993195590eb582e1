"""Every field of every REST request, found in the server's own OpenAPI schema.

The schema is made from the serializers, so that a new field is in. Texts are fields too: amounts
are decimal strings.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from drf_spectacular.generators import SchemaGenerator

if TYPE_CHECKING:
    from collections.abc import Iterator

_METHODS: Final = ("get", "post", "put", "patch", "delete")
_TEXTS: Final = {
    "agent": "paid",
    "amount": "0.01",
    "currency": "USD",
    "payer": "asker",
    "period": "day",
    "type": "text",
}


@dataclass(frozen=True)
class RestPlace:
    """One field of one request: in the path, the query or the body."""

    method: str
    path: str
    kind: str
    steps: tuple[str, ...]
    body: dict[str, Any] | None

    def __repr__(self) -> str:
        return f"{self.method.upper()} {self.path} {self.kind} {'.'.join(self.steps)}"

    def request(self, value: Any, ids: dict[str, str]) -> tuple[str, dict[str, str], Any]:
        """Return the path, the query and the body of a request with this field's value."""
        path, query, body = self.path, {}, self.body
        if self.kind == "path":
            path = path.replace(f"{{{self.steps[0]}}}", quote(str(value) or "x", safe=""))
        elif self.kind == "query":
            query = {self.steps[0]: str(value)}
        elif body is not None:
            body = _placed(body, self.steps, value)
        for name, row_id in ids.items():
            path = path.replace(f"{{{name}}}", row_id)
        return path.replace("{", "").replace("}", ""), query, body


def rest_places() -> list[RestPlace]:
    """Return the fields of all REST requests, in a steady order."""
    generator: Any = SchemaGenerator
    schema = generator().get_schema(request=None, public=True)
    places: list[RestPlace] = []
    for path, operations in sorted(schema["paths"].items()):
        for method in _METHODS:
            if method in operations:
                places += _of_operation(method, path, operations[method], schema)
    return places


def _of_operation(
    method: str, path: str, operation: dict[str, Any], schema: dict[str, Any]
) -> Iterator[RestPlace]:
    content = operation.get("requestBody", {}).get("content", {})
    shape = content.get("application/json", {}).get("schema")
    body = None if shape is None else _minimal(shape, schema)
    for parameter in operation.get("parameters", []):
        if parameter["in"] in {"path", "query"}:
            yield RestPlace(method, path, parameter["in"], (parameter["name"],), body)
    if shape is not None:
        for steps in _steps(shape, schema):
            yield RestPlace(method, path, "body", steps, body)


def _resolved(shape: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "allOf" in shape:
        return _resolved(shape["allOf"][0], schema)
    if "oneOf" in shape:
        return _resolved(shape["oneOf"][0], schema)
    reference = shape.get("$ref")
    if reference is None:
        return shape
    definition: dict[str, Any] = schema["components"]["schemas"][reference.rpartition("/")[2]]
    return _resolved(definition, schema)


def _steps(shape: dict[str, Any], schema: dict[str, Any]) -> Iterator[tuple[str, ...]]:
    shape = _resolved(shape, schema)
    for name, inner in shape.get("properties", {}).items():
        yield (name,)
        inner = _resolved(inner, schema)  # noqa: PLW2901 the shape behind the name
        if inner.get("type") == "array":
            yield (name, "[]")
            yield from ((name, "[]", *steps) for steps in _steps(inner["items"], schema))
        else:
            yield from ((name, *steps) for steps in _steps(inner, schema))


def _minimal(shape: dict[str, Any], schema: dict[str, Any], name: str = "") -> Any:
    shape = _resolved(shape, schema)
    if "enum" in shape:
        return shape["enum"][0]
    match shape.get("type"):
        case "object":
            properties = shape.get("properties", {})
            return {
                key: _minimal(properties[key], schema, key) for key in shape.get("required", [])
            }
        case "array":
            return []
        case "integer" | "number":
            return 1
        case "boolean":
            return True
    return _TEXTS.get(name, "x")


def _placed(body: Any, steps: tuple[str, ...], value: Any) -> Any:
    if not steps:
        return value
    step, *rest = steps
    if step == "[]":
        return [_placed({}, tuple(rest), value)]
    inner = body.get(step) if isinstance(body, dict) else None
    if rest and not isinstance(inner, dict):
        inner = {}
    members = body if isinstance(body, dict) else {}
    return {**members, step: _placed(inner, tuple(rest), value)}
