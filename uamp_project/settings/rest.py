"""The REST API: authentication, throttling, problem documents and the OpenAPI page."""

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "sessions_app.access.rest.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": ["sessions_app.access.throttles.RateThrottle"],
    "DEFAULT_SCHEMA_CLASS": "agents_app.rest.operations.OperationSchema",
    "EXCEPTION_HANDLER": "agents_app.rest.problems.problem_handler",
}
_DESCRIPTION = """\
Chats with people and agents: their history, members and files, messages and answers, and payments.

**Authentication.** Send `Authorization: Bearer <API key>`; keys are made on `/account`. Each
operation names the scope that a key needs. What the caller may not see is a 404.

**Lists** are `{"object": "list", "data": […], "has_more", "next_cursor"}`: send
`cursor=<next_cursor>` with the same path and filters. Unknown query parameters are refused.

**Repeats.** Every POST below `/api/v1`, and of payments, takes an `Idempotency-Key`, so a request
may be sent again after a timeout. Retry 429 and 503, and 409 with `Retry-After`, after that many
seconds; other refusals stay the same.

**Conditions.** A GET has an `ETag`: send it as `If-None-Match` to read only what changed, or as
`If-Match` with a write to refuse it (412) if someone else changed the resource.

**Refusals** are `application/problem+json` (RFC 9457). Branch on `code`; `/docs/problems` lists the
codes. A path answers other methods than its own with 405, and names its own in `Allow`.

**Live.** `GET /api/v1/chats/{chat_id}/events` with `Accept: text/event-stream` streams a chat,
and `GET /api/v1/chats` what happens in all of them. Ignore members and event types that you do not
know.
"""
SPECTACULAR_SETTINGS = {
    "TITLE": "UAMP server REST API",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "chat_app.rest.uamp_types.add_types",
        "gateway_app.protocols.openapi.add_frames",
        "agents_app.rest.openapi.add_common_parts",
        "agents_app.rest.openapi_examples.add_examples",
    ],
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "ENUM_NAME_OVERRIDES": {
        "AgentTriggerEnum": ["mention", "always", "never"],
        # The name of this enum before agents had a trigger in REST.
        "TriggerEnum": "chat_app.models.ParticipantReplyTrigger.choices",
        "PeriodEnum": ["day", "week", "month"],
        "BudgetPeriodEnum": ["day", "week", "month", "total"],
    },
}
