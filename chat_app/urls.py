"""The REST paths of the chat domain (docs/rest.md). An id that no row can have is no path."""

from django.urls import path, re_path

from chat_app.views import content, history, reference, rest

app_name = "chat_app"

_CHAT = r"^api/v1/chats/(?P<chat_id>[A-Za-z0-9_-]{1,40})"

urlpatterns = [
    path("api/v1/me", rest.MeView.as_view(), name="me"),
    path("api/v1/agents", rest.AgentsView.as_view(), name="agents"),
    path("api/v1/users", rest.UsersView.as_view(), name="users"),
    path("api/v1/render", rest.RenderView.as_view(), name="render"),
    path("api/v1/chats", rest.ChatsView.as_view(), name="chats"),
    re_path(rf"{_CHAT}\Z", rest.ChatView.as_view(), name="chat"),
    re_path(rf"{_CHAT}/participants\Z", rest.ParticipantsView.as_view(), name="participants"),
    re_path(
        rf"{_CHAT}/participants/(?P<participant_id>[0-9]{{1,18}})\Z",
        rest.ParticipantView.as_view(),
        name="participant",
    ),
    re_path(rf"{_CHAT}/receipts\Z", rest.ReceiptsView.as_view(), name="receipts"),
    re_path(rf"{_CHAT}/messages\Z", history.MessagesView.as_view(), name="messages"),
    re_path(rf"{_CHAT}/events\Z", history.EventsView.as_view(), name="events"),
    re_path(
        r"^api/v1/messages/(?P<message_id>[A-Za-z0-9_-]{1,40})\Z",
        history.MessageView.as_view(),
        name="message",
    ),
    path("api/v1/contents", content.ContentsView.as_view(), name="contents"),
    path("api/v1/contents/<uuid:content_id>", content.ContentView.as_view(), name="content"),
    path("api/content/<uuid:content_id>", content.BlobView.as_view(), name="blob"),
    path("docs/problems", reference.problems, name="problems"),
]
