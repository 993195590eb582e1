"""Examples of each operation's body and main response (a drf-spectacular hook).

They are generated from the schemas, so they always match: a request has its required members, or
one optional member if none is required; a response has all of its members.
"""

from __future__ import annotations

from typing import Any, Final

_METHODS: Final = ("get", "put", "post", "delete", "patch")
_JSON: Final = "application/json"
_DEPTH: Final = 6
"""The depth at which recursive responses are cut off."""
_CHAT: Final = "chat_0b1f6c2e9d8a4c7fb35d2e1a90c4f687"
_MESSAGE: Final = "msg_7d3a5e9c1b2f4068a9c4e7f1b6d03582"
_RESPONSE: Final = "resp_4c8e2a6f0b9d4137a5e1c7d3f9b06284"
_AT: Final = "2026-01-15T09:30:00Z"
# Example values by member name, used if the schema's type and bounds allow them.
_NAMED: Final[dict[str, Any]] = {
    "amount": "0.02", "agent": "echo", "chat": _CHAT, "chat_id": _CHAT, "code": "invalid",
    "content": "Which cities have more than a million people?", "currency": "USD",
    "display_name": "Ada Lovelace", "emoji": "✨", "event_id": "evt_1", "filename": "report.csv",
    "first_id": "41", "has_more": False, "last_id": "42", "limit": 50, "media_type": "text/csv",
    "message_id": _MESSAGE, "mime_type": "text/csv", "name": "reports", "next_cursor": None,
    "object": "list", "response_id": _RESPONSE, "role": "user", "seq": 42,
    "text": "Which cities have more than a million people?", "title": "Cities",
    "url": "https://example.org/hook", "username": "ada",
}  # fmt: skip
_FORMATS: Final[dict[str, str]] = {
    "date": "2026-01-15",
    "date-time": _AT,
    "email": "ada@example.org",
    "uri": "https://example.org/",
    "uuid": "0f9619ff-8b86-4011-b42d-00c04fc964ff",
}


def add_examples(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add an example to each JSON request body and to the first successful response."""
    schemas = result.get("components", {}).get("schemas", {})
    for path in result["paths"].values():
        for method, operation in path.items():
            if method in _METHODS:
                _add(operation.get("requestBody"), _Examples(schemas, is_request=True))
                done = sorted(status for status in operation["responses"] if status < "300")
                if done:
                    _add(operation["responses"][done[0]], _Examples(schemas, is_request=False))
    return result


def _add(body: dict[str, Any] | None, examples: _Examples) -> None:
    content = (body or {}).get("content", {}).get(_JSON)
    if content and "schema" in content and not {"example", "examples"} & content.keys():
        content["example"] = examples.of(content["schema"])


class _Examples:
    """Generates values that match schemas of requests or responses."""

    def __init__(self, schemas: dict[str, Any], *, is_request: bool) -> None:
        self._schemas = schemas
        self._is_request = is_request

    def of(self, schema: dict[str, Any], name: str = "", depth: int = 0) -> Any:
        """Return a value that matches a schema; `name` is the member's name."""
        schema = self._resolved(schema)
        if "enum" in schema or "const" in schema:
            found = schema.get("enum", [schema.get("const")])
            return next((one for one in found if one is not None), None)
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        kind = next((one for one in kinds if one != "null"), "")
        if name in _NAMED and _fits(_NAMED[name], schema, kinds):
            return _NAMED[name]
        if depth >= _DEPTH and "null" in kinds:
            return None
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        return _scalar(schema, kind)

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Resolve references and alternatives in a schema, choosing the first alternative."""
        while True:
            if "$ref" in schema:
                schema = self._schemas[schema["$ref"].rpartition("/")[2]]
            elif "allOf" in schema:
                parts = [self._resolved(one) for one in schema["allOf"]]
                rest = {name: value for name, value in schema.items() if name != "allOf"}
                schema = {name: value for part in [*parts, rest] for name, value in part.items()}
            elif found := schema.get("oneOf") or schema.get("anyOf"):
                schema = next((one for one in found if one.get("type") != "null"), found[0])
            else:
                return schema

    def _object(self, schema: dict[str, Any], depth: int) -> dict[str, Any]:
        members = schema.get("properties", {})
        hidden = "readOnly" if self._is_request else "writeOnly"
        shown = {name: one for name, one in members.items() if not one.get(hidden)}
        if self._is_request or depth >= _DEPTH:
            wanted = [name for name in shown if name in schema.get("required", ())]
            if self._is_request and depth == 0 and not wanted:
                wanted = list(shown)[:1]
            shown = {name: shown[name] for name in wanted}
        return {name: self.of(one, name, depth + 1) for name, one in shown.items()}

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        if depth >= _DEPTH and not schema.get("minItems"):
            return []
        singular = name.removesuffix("s")
        return [self.of(schema.get("items", {}), singular, depth + 1)]


def _fits(value: Any, schema: dict[str, Any], kinds: list[str]) -> bool:
    if value is None:
        return "null" in kinds
    if isinstance(value, bool):
        return "boolean" in kinds
    if isinstance(value, int):
        return "integer" in kinds and value <= schema.get("maximum", value)
    is_free = "format" not in schema and "pattern" not in schema
    return "string" in kinds and is_free and len(value) <= schema.get("maxLength", len(value))


def _scalar(schema: dict[str, Any], kind: str) -> Any:
    if kind in {"integer", "number"}:
        return schema.get("default", schema.get("minimum", 1))
    if kind == "boolean":
        return bool(schema.get("default", True))
    return _string(schema) if kind == "string" else {}


def _string(schema: dict[str, Any]) -> str:
    text = _FORMATS.get(schema.get("format", ""), "example")
    if "pattern" in schema:
        text = str(schema.get("default", "1"))
    return text[: schema.get("maxLength", len(text))]
