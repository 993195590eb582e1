"""The HTTP paths of the protocol: what the server can do, and UAMP without a socket."""

from django.urls import include, path

from sessions_app.views import history, transports

app_name = "sessions_app"
# One shape of paths for the server and for each agent: the agent is then the session's default.
TRANSPORTS = [
    path("events", transports.post_event, name="events"),
    path("events/stream", transports.stream_events, name="event_stream"),
    path("uamp", transports.batch, name="batch"),
    path("uamp/stream", transports.batch_stream, name="batch_stream"),
]

urlpatterns = [
    *TRANSPORTS,
    path("agents/<str:name>/", include((TRANSPORTS, "agent"))),
    path("api/v1/sessions", history.SessionsView.as_view(), name="sessions"),
]
