"""The REST API: authentication, throttling, problem documents and the OpenAPI page."""

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "sessions_app.access.rest.TokenAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_THROTTLE_CLASSES": ["sessions_app.access.throttles.RateThrottle"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "EXCEPTION_HANDLER": "agents_app.rest.problems.problem_handler",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "UAMP server REST API",
    "DESCRIPTION": (
        "History of chats, the content that messages carry, and payments: balances, tokens, locks,"
        " limits and top-ups. Send `Authorization: Bearer <API key>`; keys are made on /account."
    ),
    "VERSION": "1",
    "OAS_VERSION": "3.1.1",
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
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
