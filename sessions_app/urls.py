"""The HTTP paths of the protocol and of people's own accounts."""

from django.urls import include, path, re_path

from sessions_app.data_rights.self_service import export_own_data
from sessions_app.rest import discovery, payments, schemas, webhooks
from sessions_app.rest.access import account, connect_tokens, connecting, keys, oauth, tickets
from sessions_app.rest.chats import (
    budgets,
    exports,
    forks,
    history,
    invitations,
    queue,
    shared_chats,
)
from sessions_app.rest_turns import activity, messages, payment, responses, tail, tool_calls
from sessions_app.transports import batch, sse

app_name = "sessions_app"

_CHAT = r"^api/v1/chats/(?P<chat_id>[A-Za-z0-9_-]{1,40})"
_RESPONSE = r"^api/v1/responses/(?P<response_id>[A-Za-z0-9_-]{1,40})"
_WEBHOOK = r"^api/v1/webhooks/(?P<webhook_id>[0-9]{1,18})"
_DELIVERY = rf"{_WEBHOOK}/deliveries/(?P<delivery_id>[0-9]{{1,18}})"
_TOOL_CALL = r"^api/v1/tool-calls/(?P<call_id>[0-9]{1,18})"

# The server and every agent share these paths; an agent's paths make it the session's default.
TRANSPORTS = [
    path("events", sse.post_event, name="events"),
    path("events/stream", sse.stream_events, name="event_stream"),
    path("uamp", batch.batch, name="batch"),
    path("uamp/stream", batch.batch_stream, name="batch_stream"),
]

DISCOVERY = [
    path("capabilities", discovery.server_capabilities, name="capabilities"),
    path("models", discovery.server_models, name="models"),
    path("info", discovery.server_info, name="info"),
]
AGENT_DISCOVERY = [
    path("auth/token", oauth.token, name="token"),
    path(".well-known/openid-configuration", oauth.configuration, name="configuration"),
    path(".well-known/jwks.json", oauth.agent_keys, name="keys"),
    path("capabilities", discovery.agent_capabilities, name="capabilities"),
    path("models", discovery.agent_models, name="models"),
    path("info", discovery.agent_info, name="info"),
]

urlpatterns = [
    *TRANSPORTS,
    *DISCOVERY,
    path("auth/token", oauth.token, name="token"),
    path(".well-known/openid-configuration", oauth.configuration, name="configuration"),
    path(".well-known/oauth-authorization-server", oauth.configuration),
    path("agents/<str:name>/", include(([*TRANSPORTS, *AGENT_DISCOVERY], "agent"))),
    path("schemas/uamp/1.0/", schemas.index, name="schemas"),
    path("schemas/uamp/1.0/<str:type_name>.json", schemas.event, name="schema"),
    re_path(rf"{_CHAT}/messages\Z", messages.SentMessagesView.as_view(), name="messages"),
    re_path(
        r"^api/v1/messages/(?P<message_id>[A-Za-z0-9_-]{1,40})\Z",
        messages.AnsweredMessageView.as_view(),
        name="message",
    ),
    re_path(rf"{_CHAT}/events\Z", tail.TailedEventsView.as_view(), name="events_of_chat"),
    path("api/v1/chats", activity.WatchedChatsView.as_view(), name="chats"),
    re_path(rf"{_CHAT}/responses\Z", responses.ChatResponsesView.as_view(), name="chat_responses"),
    re_path(rf"{_CHAT}/approvals\Z", tool_calls.OpenDecisionsView.as_view(), name="approvals"),
    path("api/v1/responses", responses.ResponsesView.as_view(), name="new_responses"),
    re_path(rf"{_RESPONSE}\Z", responses.ResponseView.as_view(), name="response"),
    re_path(rf"{_RESPONSE}/cancel\Z", responses.CancelView.as_view(), name="cancel_response"),
    re_path(rf"{_RESPONSE}/payment\Z", payment.AnswerPaymentView.as_view(), name="pay_response"),
    re_path(rf"{_RESPONSE}/retry\Z", responses.RetryView.as_view(), name="retry_response"),
    re_path(rf"{_RESPONSE}/tool-calls\Z", tool_calls.ToolCallsView.as_view(), name="tool_calls"),
    re_path(rf"{_TOOL_CALL}\Z", tool_calls.ToolCallView.as_view(), name="tool_call"),
    re_path(rf"{_TOOL_CALL}/decision\Z", tool_calls.DecisionView.as_view(), name="decision"),
    re_path(rf"{_TOOL_CALL}/result\Z", tool_calls.ToolResultView.as_view(), name="tool_result"),
    re_path(rf"{_CHAT}/export\Z", exports.ReceiptedExportView.as_view(), name="export"),
    re_path(rf"{_CHAT}/payments\Z", payments.PaymentsView.as_view(), name="chat_payments"),
    re_path(rf"{_CHAT}/budgets\Z", budgets.BudgetsView.as_view(), name="budgets"),
    re_path(rf"{_CHAT}/forks\Z", forks.ForksView.as_view(), name="forks"),
    re_path(rf"{_CHAT}/queue\Z", queue.QueueView.as_view(), name="queue"),
    re_path(
        rf"{_CHAT}/queue/(?P<item_id>[0-9]{{1,18}})\Z",
        queue.QueueItemView.as_view(),
        name="queue_item",
    ),
    re_path(
        rf"{_CHAT}/queue/(?P<item_id>[0-9]{{1,18}})/start\Z",
        queue.QueueStartView.as_view(),
        name="start_queue_item",
    ),
    re_path(rf"{_CHAT}/pool\Z", payments.PoolView.as_view(), name="pool"),
    re_path(rf"{_CHAT}/pool/usage\Z", payments.PoolUsageView.as_view(), name="pool-usage"),
    path("api/v1/sessions", history.SessionsView.as_view(), name="sessions"),
    path("shared/files/<uuid:content_id>", shared_chats.shared_file, name="shared_file"),
    path("shared/<str:secret>", shared_chats.shared_chat, name="shared_chat"),
    path("join/<str:secret>", invitations.join, name="join"),
    path("account", account.account, name="account"),
    path("account/password", account.PasswordView.as_view(), name="password"),
    path("account/sign-out-others", account.sign_out_others, name="sign_out_others"),
    path("account/agents", connecting.connecting, name="connecting"),
    path("account/agents/tokens", connecting.make_token, name="make_connect_token"),
    path(
        "account/agents/tokens/<int:key_id>/revoke",
        connecting.revoke_token,
        name="revoke_connect_token",
    ),
    path("account/export", export_own_data, name="export_own_data"),
    path("account/keys", account.make_key, name="make_key"),
    path("account/keys/<int:key_id>/rotate", account.rotate_key, name="rotate_own_key"),
    path("account/keys/<int:key_id>/revoke", account.revoke_key, name="revoke_key"),
    path("api/v1/keys", keys.KeysView.as_view(), name="keys"),
    path("api/v1/keys/self", keys.OwnKeyView.as_view(), name="own_key"),
    re_path(r"^api/v1/keys/(?P<key_id>[0-9]{1,18})\Z", keys.KeyView.as_view(), name="key"),
    re_path(
        r"^api/v1/keys/(?P<key_id>[0-9]{1,18})/rotate\Z",
        keys.KeyRotationView.as_view(),
        name="rotate_key",
    ),
    path(
        "api/v1/connect-tokens", connect_tokens.ConnectTokensView.as_view(), name="connect_tokens"
    ),
    re_path(
        r"^api/v1/connect-tokens/(?P<key_id>[0-9]{1,18})\Z",
        connect_tokens.ConnectTokenView.as_view(),
        name="connect_token",
    ),
    path("api/v1/webhooks", webhooks.WebhooksView.as_view(), name="webhooks"),
    re_path(rf"{_WEBHOOK}\Z", webhooks.WebhookView.as_view(), name="webhook"),
    re_path(rf"{_WEBHOOK}/rotate\Z", webhooks.WebhookRotationView.as_view(), name="rotate_webhook"),
    re_path(rf"{_WEBHOOK}/ping\Z", webhooks.WebhookPingView.as_view(), name="ping_webhook"),
    re_path(
        rf"{_WEBHOOK}/deliveries\Z",
        webhooks.WebhookDeliveriesView.as_view(),
        name="webhook_deliveries",
    ),
    re_path(rf"{_DELIVERY}\Z", webhooks.WebhookDeliveryView.as_view(), name="webhook_delivery"),
    re_path(rf"{_DELIVERY}/redeliver\Z", webhooks.RedeliveryView.as_view(), name="redeliver"),
    path("api/v1/tickets", tickets.TicketsView.as_view(), name="tickets"),
]
