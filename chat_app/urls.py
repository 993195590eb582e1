"""The REST paths of the chat domain (docs/rest.md). Paths match only well-formed ids."""

from django.urls import path, re_path

from chat_app.digests import unsubscribing
from chat_app.rest import calls, chats, log_tree, reference
from chat_app.rest.contents import contents, link_cards, previews, transcripts, uploads
from chat_app.rest.members import agents, links, members, people, push
from chat_app.rest.messages import checkpoints, conversation, proofs, search, threads

app_name = "chat_app"

_CHAT = r"^api/v1/chats/(?P<chat_id>[A-Za-z0-9_-]{1,40})"
_MESSAGE = r"^api/v1/messages/(?P<message_id>[A-Za-z0-9_-]{1,40})"

urlpatterns = [
    path("api/v1/me", people.MeView.as_view(), name="me"),
    path("api/v1/me/settings", people.SettingsView.as_view(), name="settings"),
    path("api/v1/me/push-key", push.PushKeyView.as_view(), name="push_key"),
    path(
        "api/v1/me/push-subscriptions",
        push.PushSubscriptionsView.as_view(),
        name="push_subscriptions",
    ),
    re_path(
        r"^api/v1/me/push-subscriptions/(?P<subscription_id>[0-9]{1,18})\Z",
        push.PushSubscriptionView.as_view(),
        name="push_subscription",
    ),
    path("api/v1/me/picture", people.OwnPictureView.as_view(), name="own_picture"),
    re_path(
        r"^api/v1/people/(?P<user_id>[0-9]{1,18})/picture/(?P<version>[0-9a-f]{16})\Z",
        people.PictureView.as_view(),
        name="picture",
    ),
    path("api/v1/agents", agents.AgentsView.as_view(), name="agents"),
    path("api/v1/agent-discovery", agents.DiscoveryView.as_view(), name="agent_discovery"),
    path("api/v1/agents/<str:name>/probe", agents.ProbeView.as_view(), name="agent_probe"),
    path("api/v1/agents/<str:name>", agents.AgentView.as_view(), name="agent"),
    path("api/v1/users", people.UsersView.as_view(), name="users"),
    path("api/v1/render", chats.RenderView.as_view(), name="render"),
    re_path(rf"{_CHAT}\Z", chats.ChatView.as_view(), name="chat"),
    re_path(rf"{_CHAT}/participants\Z", members.ParticipantsView.as_view(), name="participants"),
    re_path(
        rf"{_CHAT}/participants/(?P<participant_id>[0-9]{{1,18}})\Z",
        members.ParticipantView.as_view(),
        name="participant",
    ),
    re_path(rf"{_CHAT}/checkpoint\Z", checkpoints.CheckpointView.as_view(), name="checkpoint"),
    re_path(rf"{_CHAT}/mute\Z", members.MuteView.as_view(), name="mute"),
    re_path(rf"{_CHAT}/place\Z", members.PlaceView.as_view(), name="place"),
    re_path(rf"{_CHAT}/call\Z", calls.CallView.as_view(), name="call"),
    re_path(rf"{_CHAT}/share-links\Z", links.ShareLinksView.as_view(), name="share_links"),
    re_path(
        rf"{_CHAT}/share-links/(?P<link_id>[0-9]{{1,18}})\Z",
        links.ShareLinkView.as_view(),
        name="share_link",
    ),
    re_path(rf"{_CHAT}/invite-links\Z", links.InviteLinksView.as_view(), name="invite_links"),
    re_path(
        rf"{_CHAT}/invite-links/(?P<link_id>[0-9]{{1,18}})\Z",
        links.InviteLinkView.as_view(),
        name="invite_link",
    ),
    re_path(rf"{_CHAT}/receipts\Z", chats.ReceiptsView.as_view(), name="receipts"),
    re_path(rf"{_MESSAGE}/revisions\Z", conversation.RevisionsView.as_view(), name="revisions"),
    re_path(rf"{_MESSAGE}/versions\Z", conversation.VersionsView.as_view(), name="versions"),
    re_path(rf"{_MESSAGE}/reactions\Z", conversation.ReactionsView.as_view(), name="reactions"),
    re_path(rf"{_MESSAGE}/link-cards\Z", link_cards.LinkCardsView.as_view(), name="link_cards"),
    re_path(rf"{_MESSAGE}/proof\Z", proofs.MessageProofView.as_view(), name="message_proof"),
    re_path(rf"{_MESSAGE}/pin\Z", conversation.PinView.as_view(), name="pin"),
    re_path(rf"{_CHAT}/pins\Z", conversation.PinsView.as_view(), name="pins"),
    path("api/v1/threads", threads.ThreadsView.as_view(), name="threads"),
    path("api/v1/search", search.SearchView.as_view(), name="search"),
    path("api/v1/contents", contents.ContentsView.as_view(), name="contents"),
    path(
        "api/v1/contents/<uuid:content_id>/transcript",
        transcripts.TranscriptView.as_view(),
        name="transcript",
    ),
    path("api/v1/contents/<uuid:content_id>", contents.ContentView.as_view(), name="content"),
    path("api/v1/uploads", uploads.UploadsView.as_view(), name="uploads"),
    path("api/v1/uploads/<uuid:upload_id>", uploads.UploadView.as_view(), name="upload"),
    path(
        "api/content/<uuid:content_id>/preview",
        previews.PreviewView.as_view(),
        name="preview",
    ),
    path("api/content/<uuid:content_id>", contents.BlobView.as_view(), name="blob"),
    path("log-tree/checkpoint", log_tree.checkpoint, name="tree_checkpoint"),
    path("log-tree/consistency", log_tree.consistency, name="tree_consistency"),
    path("log-tree/proof", log_tree.proof, name="tree_proof"),
    path("log-tree/tile/<str:level>/<path:place>", log_tree.tile, name="tree_tile"),
    path("log-tree/keys", log_tree.verifier_keys, name="tree_keys"),
    path("log-tree/cosignatures", log_tree.cosign, name="tree_cosignatures"),
    path("unsubscribe/<str:token>", unsubscribing.unsubscribe, name="unsubscribe"),
    path("docs/problems", reference.problems, name="problems"),
]
