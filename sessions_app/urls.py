"""The HTTP paths of the protocol: what the server can do, and UAMP without a socket."""

from django.urls import include, path

from sessions_app.views import discovery, history, schemas, transports

app_name = "sessions_app"
# One shape of paths for the server and for each agent: the agent is then the session's default.
TRANSPORTS = [
    path("events", transports.post_event, name="events"),
    path("events/stream", transports.stream_events, name="event_stream"),
    path("uamp", transports.batch, name="batch"),
    path("uamp/stream", transports.batch_stream, name="batch_stream"),
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
    path("api/v1/sessions", history.SessionsView.as_view(), name="sessions"),
]
