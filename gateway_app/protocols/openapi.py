"""The operations of this app in the OpenAPI document (a drf-spectacular hook).

Its views are not those of Django REST framework, from which the document is generated.
"""

from __future__ import annotations

from typing import Any, Final

_SCOPE: Final = "chats:read"
_PROBLEM: Final = {
    "content": {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}},
    "description": "",
}
_CALL: Final = {
    "type": ["object", "null"],
    "description": "The request that asks the same again; null for a message without a question.",
    "properties": {
        "curl": {"type": "string"},
        "in_chat": {"type": "boolean", "description": "Whether it asks in the same chat."},
    },
    "required": ["curl", "in_chat"],
}
_PROTOCOL: Final = {
    "type": "object",
    "properties": {
        "key": {"type": "string"},
        "label": {"type": "string"},
        "title": {"type": "string"},
        "frames": {"type": "array", "items": {}, "description": "JSON values, in order."},
        "is_cut": {"type": "boolean", "description": "Whether long ones were cut or left out."},
        "call": _CALL,
    },
    "required": ["key", "label", "title", "frames", "is_cut", "call"],
}
_FRAMES: Final = {
    "type": "object",
    "description": "A message as frames of each protocol.",
    "properties": {
        "object": {"const": "message_frames"},
        "message_id": {"type": "string"},
        "response_id": {"type": ["string", "null"]},
        "protocols": {"type": "array", "items": _PROTOCOL},
    },
    "required": ["object", "message_id", "response_id", "protocols"],
}


def add_frames(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the frames of a message."""
    result["components"]["schemas"]["MessageFrames"] = _FRAMES
    result["paths"]["/api/v1/messages/{message_id}/frames"] = {"get": _operation()}
    result["paths"] = dict(sorted(result["paths"].items()))
    return result


def _operation() -> dict[str, Any]:
    content = {"application/json": {"schema": {"$ref": "#/components/schemas/MessageFrames"}}}
    return {
        "operationId": "get_message_frames",
        "description": "Return the frames of a message in each protocol.\n\n"
        f"A key needs the scope `{_SCOPE}`.",
        "parameters": [
            {
                "in": "path",
                "name": "message_id",
                "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,40}$"},
                "required": True,
            }
        ],
        "tags": ["v1"],
        "security": [{"apiKey": [_SCOPE]}, {"cookieAuth": []}],
        "responses": {
            "200": {"content": content, "description": ""},
            **{status: dict(_PROBLEM) for status in ("400", "401", "404")},
        },
    }
