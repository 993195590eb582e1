"""The HTTP paths of the protocol and of people's own accounts."""

from django.urls import include, path, re_path

from sessions_app.rest import (
    account,
    budgets,
    discovery,
    exports,
    forks,
    history,
    invitations,
    payments,
    queue,
    schemas,
    shared_chats,
    tickets,
)
from sessions_app.transports import batch, sse

app_name = "sessions_app"

_CHAT = r"^api/v1/chats/(?P<chat_id>[A-Za-z0-9_-]{1,40})"

# One shape of paths for the server and for each agent: the agent is then the session's default.
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
    path("capabilities", discovery.agent_capabilities, name="capabilities"),
    path("models", discovery.agent_models, name="models"),
    path("info", discovery.agent_info, name="info"),
]

urlpatterns = [
    *TRANSPORTS,
    *DISCOVERY,
    path("agents/<str:name>/", include(([*TRANSPORTS, *AGENT_DISCOVERY], "agent"))),
    path("schemas/uamp/1.0/", schemas.index, name="schemas"),
    path("schemas/uamp/1.0/<str:type_name>.json", schemas.event, name="schema"),
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
    path("api/v1/sessions", history.SessionsView.as_view(), name="sessions"),
    path("shared/files/<uuid:content_id>", shared_chats.shared_file, name="shared_file"),
    path("shared/<str:secret>", shared_chats.shared_chat, name="shared_chat"),
    path("join/<str:secret>", invitations.join, name="join"),
    path("account", account.account, name="account"),
    path("account/password", account.PasswordView.as_view(), name="password"),
    path("account/sign-out-others", account.sign_out_others, name="sign_out_others"),
    path("account/keys", account.make_key, name="make_key"),
    path("account/keys/<int:key_id>/revoke", account.revoke_key, name="revoke_key"),
    path("api/v1/tickets", tickets.TicketsView.as_view(), name="tickets"),
]
