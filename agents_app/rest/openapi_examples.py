"""Examples of each operation's body and main response (a drf-spectacular hook).

They are generated from the schemas, so they always match: a request has its required members, or
one optional member if none is required; a response has all of its members.
"""

from __future__ import annotations

from typing import Any, Final

_METHODS: Final = ("get", "put", "post", "delete", "patch")
_JSON: Final = "application/json"
_UNNAMED: Final = object()
_DEPTH: Final = 6
"""The depth at which recursive responses are cut off."""
_CHAT: Final = "chat_0b1f6c2e9d8a4c7fb35d2e1a90c4f687"
_MESSAGE: Final = "msg_7d3a5e9c1b2f4068a9c4e7f1b6d03582"
_RESPONSE: Final = "resp_4c8e2a6f0b9d4137a5e1c7d3f9b06284"
_CONTENT: Final = "/api/content/0f9619ff-8b86-4011-b42d-00c04fc964ff"
_SHA256: Final = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
_AT: Final = "2026-01-15T09:30:00Z"
_PERSON: Final = "7"
_TEXT: Final = "Which cities have more than a million people?"
# Example values by member name, used if the schema's type and bounds allow them.
_NAMED: Final[dict[str, Any]] = {
    "agent": "echo", "agent_id": "agent_1", "also_in_chat": False, "amount": "0.02",
    "arguments": "{}", "asked_user_id": _PERSON, "available": "4.98", "avatar": None,
    "avatar_colour": "#4263eb", "avatar_emoji": "", "avatar_url": None, "balance": "5",
    "balanceDollars": "5.00", "budget": None, "budget_period": None, "cache_read_per_1k": None,
    "cache_write_per_1k": None, "call_id": "41", "chat": _CHAT, "chat_id": _CHAT,
    "code": "invalid", "content": _TEXT, "context": "chat", "copied_from": None,
    "created_by": "ada", "currency": "USD", "decided_at": None, "decided_by": None,
    "deleted_at": None, "description": "Repeats what you write.", "digital_source_type": None,
    "display_name": "Ada Lovelace", "edited_at": None, "emoji": "✨", "epoch": "e1", "error": None,
    "event_id": "evt_1", "fee": "0.002", "filename": "report.csv", "first_id": "41",
    "forked_from": None, "has_more": False, "held": "0", "home": None, "html": f"<p>{_TEXT}</p>",
    "id": _PERSON, "input_per_1k": "0.01", "keyword": "report", "kind": "user", "last_error": "",
    "last_id": "42", "left": "4.98", "limit": 50, "media_type": "text/csv",
    "message": "Not possible now.", "message_id": _MESSAGE, "mime_type": "text/csv", "model": "",
    "name": "ada", "next_cursor": None, "notifications": "all", "object": "list",
    "output_per_1k": "0.03", "paid_by": "you", "paid_onward": None, "parentId": None,
    "payer": "asker", "payment": None, "per_answer": "0.02", "pinned": False, "prefix": "uamp_9f",
    "protocol": "rest", "question_id": _MESSAGE, "queued": False, "read_seq": 42, "reason": "",
    "refunded": "0", "replaced_by": None, "reply_to": None, "response": None,
    "response_id": _RESPONSE, "revision": 0, "right": "send", "role": "user",
    "scope": "chats:read", "secret": "uamp_9f3c…", "sender_id": _PERSON, "sender_kind": "user",
    "seq": 42, "sha256": _SHA256, "signature": None, "spent": "0.02", "status": "completed",
    "status_text": "", "stopped_reason": None, "stored_output_hash": None,
    "stored_usage_hash": None, "text": _TEXT,
    "thread": None, "thumbnail_url": None, "title": "Cities", "token": "eyJhbGciOiJFUzI1NiIs…",
    "tool": "search", "transfer": "tr_1", "transport": "rest", "trigger": "mention",
    "unanswered": None, "unfinished": None, "url": "https://example.org/hook", "user_id": _PERSON,
    "username": "ada", "version_of": None,
}  # fmt: skip
# Those of one schema, where a name means something else there.
_OF_SCHEMA: Final[dict[str, dict[str, Any]]] = {
    "Agent": {"id": "agent_1", "name": "echo"},
    "Chat": {"id": _CHAT, "kind": "group", "description": "", "role": "owner"},
    "ConfiguredAgent": {"id": "agent_1", "name": "echo"},
    "Content": {"url": _CONTENT, "signed_url": f"{_CONTENT}?until=1768469400&for=7&signature=…"},
    "FoundMessage": {"id": _MESSAGE},
    "Message": {"id": _MESSAGE},
    "Key": {"name": "reports"},
    "KeySecret": {"name": "reports"},
    "NewKey": {"name": "reports"},
    "Participant": {"role": "member"},
    "Pricing": {"unfinished": "whole"},
    "Quoted": {"id": _MESSAGE},
    "Response": {"id": _RESPONSE, "message_id": _MESSAGE, "status": "completed"},
    "ToolCall": {"kind": "long", "name": "search", "result": "3 cities", "status": "done"},
    "Waiting": {"kind": "payment"},
    "Webhook": {"name": "reports"},
}
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

    def of(self, schema: dict[str, Any], name: str = "", depth: int = 0, within: str = "") -> Any:
        """Return a value that matches a schema; `name` is the member's name in schema `within`."""
        named = _OF_SCHEMA.get(within, {}).get(name, _NAMED.get(name, _UNNAMED))
        if named is None and _is_nullable(schema):
            return None
        schema, component = self._resolved(schema)
        if "enum" in schema or "const" in schema:
            values = schema.get("enum", [schema.get("const")])
            return (
                named if named in values else next(value for value in values if value is not None)
            )
        kinds = schema.get("type", [])
        kinds = [kinds] if isinstance(kinds, str) else kinds
        kind = next((type_name for type_name in kinds if type_name != "null"), "")
        if named is not _UNNAMED and _fits(named, schema, kinds):
            return named
        if depth >= _DEPTH and "null" in kinds:
            return None
        if kind == "object" or "properties" in schema:
            return self._object(schema, depth, component)
        return self._array(schema, name, depth) if kind == "array" else _scalar(schema, kind)

    def _resolved(self, schema: dict[str, Any]) -> tuple[dict[str, Any], str]:
        """Resolve references and alternatives, choosing the first, and return the schema's name."""
        component = ""
        while True:
            if "$ref" in schema:
                component = schema["$ref"].rpartition("/")[2]
                schema = self._schemas[component]
            elif "allOf" in schema:
                resolved = [self._resolved(subschema) for subschema in schema["allOf"]]
                parts, component = [part for part, _ in resolved], resolved[0][1]
                rest = {name: value for name, value in schema.items() if name != "allOf"}
                schema = {name: value for part in [*parts, rest] for name, value in part.items()}
            elif alternatives := schema.get("oneOf") or schema.get("anyOf"):
                schema = next(
                    (
                        alternative
                        for alternative in alternatives
                        if alternative.get("type") != "null"
                    ),
                    alternatives[0],
                )
            else:
                return schema, component

    def _object(self, schema: dict[str, Any], depth: int, component: str) -> dict[str, Any]:
        members = schema.get("properties", {})
        hidden = "readOnly" if self._is_request else "writeOnly"
        visible = {name: member for name, member in members.items() if not member.get(hidden)}
        if self._is_request or depth >= _DEPTH:
            required_names = [name for name in visible if name in schema.get("required", ())]
            if self._is_request and depth == 0 and not required_names:
                required_names = list(visible)[:1]
            visible = {name: visible[name] for name in required_names}
        return {
            name: self.of(member, name, depth + 1, component) for name, member in visible.items()
        }

    def _array(self, schema: dict[str, Any], name: str, depth: int) -> list[Any]:
        if depth >= _DEPTH and not schema.get("minItems"):
            return []
        singular = name.removesuffix("s")
        return [self.of(schema.get("items", {}), singular, depth + 1)]


def _is_nullable(schema: dict[str, Any]) -> bool:
    return "null" in schema.get("type", ()) or {"type": "null"} in schema.get("oneOf", ())


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
