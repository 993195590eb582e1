"""Add to the OpenAPI document what all operations share (a hook of drf-spectacular)."""

from __future__ import annotations

from typing import Any, Final

from agents_app.rest.problems import MEDIA_TYPE

_METHODS: Final = ("get", "put", "post", "delete", "patch")
_PROBLEM: Final = {
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    "description": "",
}
# Each also has the older X- name.
_LIMITS: Final = {
    "RateLimit-Limit": "Requests in the window.",
    "RateLimit-Remaining": "Requests that are left in it.",
    "RateLimit-Reset": "Seconds until it begins anew.",
}
_IF_MATCH: Final = {
    "in": "header",
    "name": "If-Match",
    "schema": {"type": "string", "maxLength": 400},
    "description": "An `ETag` of a GET of this path: where it has another one by now, 412.",
}


def add_common_parts(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add to each operation its rate limits, and to writes of what can be read `If-Match`."""
    for path in result["paths"].values():
        for method, operation in path.items():
            if method in _METHODS:
                _add(operation, is_conditional="get" in path and method not in {"get", "post"})
    return result


def _add(operation: dict[str, Any], *, is_conditional: bool) -> None:
    responses = operation["responses"]
    responses.setdefault("429", dict(_PROBLEM))
    # The database is away, or full.
    responses.setdefault("503", dict(_PROBLEM))
    if is_conditional:
        operation.setdefault("parameters", []).append(dict(_IF_MATCH))
        responses.setdefault("412", dict(_PROBLEM))
    for response in responses.values():
        response["headers"] = {
            name: {"schema": {"type": "string"}, "description": words}
            for name, words in _LIMITS.items()
        } | response.get("headers", {})
    operation["responses"] = dict(sorted(responses.items()))
