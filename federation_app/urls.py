"""The HTTP paths of envelopes (envelope §7, §8).

`/v1/messages` is shared with another protocol: `uamp_project.messages_path`.
"""

from django.urls import path, re_path

from federation_app.edges import documents, files, http, invitations

app_name = "federation_app"


urlpatterns = [
    path("api/v1/invitations", invitations.InvitationsView.as_view(), name="invitations"),
    re_path(
        r"^api/v1/invitations/(?P<invitation_id>[0-9a-f-]{36})\Z",
        invitations.InvitationView.as_view(),
        name="invitation",
    ),
    re_path(r"^v1/stream/(?P<stream_id>[A-Za-z0-9._~:-]{1,128})\Z", http.stream, name="stream"),
    re_path(r"^v1/files/(?P<file_id>[0-9a-f-]{36})\Z", files.shared_file, name="file"),
    path(".well-known/did.json", documents.did_document, name="did"),
    path(".well-known/agent-manifest.json", documents.manifest, name="manifest"),
    path(".well-known/agent-hub.json", documents.hub, name="hub"),
    path("agents/<str:name>/did.json", documents.did_document, name="agent_did"),
    path(
        "agents/<str:name>/.well-known/agent-manifest.json",
        documents.manifest,
        name="agent_manifest",
    ),
]
