"""The parts of the OpenAPI document that all operations share (a drf-spectacular hook)."""

from __future__ import annotations

from typing import Any, Final

from agents_app.rest.problems import MEDIA_TYPE

_METHODS: Final = ("get", "put", "post", "delete", "patch")
_PROBLEM: Final = {
    "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
    "description": "",
}
# The limits are also sent under their older X- names.
_HEADERS: Final = {
    "X-Request-ID": "The request's own id, or a new one; it is in the logs.",
    "RateLimit-Limit": "Requests in the window.",
    "RateLimit-Remaining": "Requests left in the window.",
    "RateLimit-Reset": "Seconds until it resets.",
}
_IF_MATCH: Final = {
    "in": "header",
    "name": "If-Match",
    "schema": {"type": "string", "maxLength": 400},
    "description": "An `ETag` from a GET of this path; 412 if it has changed since.",
}


_IF_NONE_MATCH: Final = {
    "in": "header",
    "name": "If-None-Match",
    "schema": {"type": "string", "maxLength": 400},
    "description": "An `ETag` from an earlier response; 304 if it has not changed.",
}
# Responses about money are never cached, so they have no entity tag.
_NEVER_STORED: Final = ("/api/payments", "/api/v1/usage", "/api/v1/ledger")
_IDEMPOTENCY_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    "description": "A repeated request has no further effect and gets the first response again,"
    " with `Idempotency-Replayed`; a different request with the same key is refused (409).",
}
_PAYMENT_KEY: Final = {
    "in": "header",
    "name": "Idempotency-Key",
    "schema": {"type": "string", "maxLength": 200},
    "description": "The same as `idempotencyKey` in the body; two that differ are refused (400).",
}


def add_common_parts(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """Add the server, the headers of every answer, and those of conditions and repeats."""
    result["servers"] = [{"url": "/", "description": "This server."}]
    for name, path in result["paths"].items():
        for method, operation in path.items():
            if method in _METHODS:
                if method == "post" and name.startswith("/api/v1/"):
                    _add_key(operation)
                if method == "post" and _has_key_in_body(operation, result["components"]):
                    operation.setdefault("parameters", []).append(dict(_PAYMENT_KEY))
                if method == "get" and not _is_untagged(name):
                    _add_tag(operation)
                _add(operation, is_conditional="get" in path and method not in {"get", "post"})
    return result


def _has_key_in_body(operation: dict[str, Any], components: dict[str, Any]) -> bool:
    """Return whether the body may have the key of repeats, as that of a payment."""
    content = operation.get("requestBody", {}).get("content", {})
    schema = content.get("application/json", {}).get("schema", {})
    named = components["schemas"].get(schema.get("$ref", "").rpartition("/")[2], schema)
    return "idempotencyKey" in named.get("properties", {})


def _is_untagged(path: str) -> bool:
    """Return whether a GET has no entity tag: what is never stored, and files written as read."""
    return path.startswith(_NEVER_STORED) or path.endswith(("/export", "/frames"))


def _add_tag(operation: dict[str, Any]) -> None:
    """Add the entity tag of a GET, and the answer to one that the client has."""
    operation.setdefault("parameters", []).append(dict(_IF_NONE_MATCH))
    responses = operation["responses"]
    tag = {"ETag": {"schema": {"type": "string"}, "description": "Identifies this state."}}
    for status in {"200"} & responses.keys():
        responses[status]["headers"] = tag | responses[status].get("headers", {})
    responses.setdefault("304", {"description": "It has the `ETag` of `If-None-Match`."})


def _add_key(operation: dict[str, Any]) -> None:
    """Add the key of repeats, unless the operation names its own."""
    parameters = operation.setdefault("parameters", [])
    if all(parameter.get("name") != _IDEMPOTENCY_KEY["name"] for parameter in parameters):
        parameters.append(dict(_IDEMPOTENCY_KEY))
    operation["responses"].setdefault("409", dict(_PROBLEM))


def _add(operation: dict[str, Any], *, is_conditional: bool) -> None:
    responses = operation["responses"]
    # A key without the scope, or restricted to other chats.
    responses.setdefault("403", dict(_PROBLEM))
    responses.setdefault("429", dict(_PROBLEM))
    # The database is unreachable or full.
    responses.setdefault("503", dict(_PROBLEM))
    if is_conditional:
        operation.setdefault("parameters", []).append(dict(_IF_MATCH))
        # An If-Match without quotation marks.
        responses.setdefault("400", dict(_PROBLEM))
        responses.setdefault("412", dict(_PROBLEM))
    for response in responses.values():
        response["headers"] = {
            name: {"schema": {"type": "string"}, "description": words}
            for name, words in _HEADERS.items()
        } | response.get("headers", {})
    operation["responses"] = dict(sorted(responses.items()))
