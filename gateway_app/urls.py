"""The HTTP paths of all dialects, for the server and below each agent."""

from django.urls import include, path, re_path

from gateway_app.a2a import rest, rpc
from gateway_app.a2a.cards import views as a2a
from gateway_app.a2a.spec import views as spec_tasks
from gateway_app.acp import http as acp
from gateway_app.ag_ui import views as ag_ui
from gateway_app.anthropic import views as anthropic
from gateway_app.completions import views as completions
from gateway_app.openai_responses import conversation_views as conversations
from gateway_app.openai_responses import views as responses
from gateway_app.protocols import console, directory, unknown_paths
from gateway_app.realtime import views as realtime

app_name = "gateway_app"

_RESPONSE = r"(?:v1/)?responses/(?P<response_id>[^/]+)"
_CONVERSATION = r"(?:v1/)?conversations/(?P<conversation_id>[A-Za-z0-9_-]{1,40})"
# The server and each agent have the same paths; on the server's, `model` names the agent. Clients
# that append a slash would not resend their body after a redirect.
DIALECTS = [
    re_path(r"^(?:v1/)?chat/completions/?\Z", completions.completions, name="completions"),
    re_path(r"^(?:v1/)?realtime/client_secrets\Z", realtime.client_secrets, name="client_secrets"),
    re_path(r"^(?:v1/)?realtime/sessions\Z", realtime.sessions, name="realtime_sessions"),
    re_path(r"^v1/models/?\Z", completions.models, name="models"),
    re_path(r"^v1/messages/?\Z", anthropic.messages, name="anthropic_messages"),
    re_path(r"^v1/messages/count_tokens/?\Z", anthropic.count_tokens, name="count_tokens"),
    re_path(r"^(?:v1/)?responses/?\Z", responses.create, name="responses"),
    re_path(r"^(?:v1/)?responses/input_tokens/?\Z", responses.input_tokens, name="input_tokens"),
    re_path(r"^(?:v1/)?responses/compact/?\Z", responses.compact, name="compact"),
    re_path(rf"^{_RESPONSE}/?\Z", responses.response, name="response"),
    re_path(rf"^{_RESPONSE}/cancel/?\Z", responses.cancel, name="cancel_response"),
    re_path(rf"^{_RESPONSE}/input_items/?\Z", responses.items, name="input_items"),
    re_path(r"^(?:v1/)?conversations/?\Z", conversations.conversations, name="conversations"),
    re_path(rf"^{_CONVERSATION}/?\Z", conversations.conversation, name="conversation"),
    re_path(rf"^{_CONVERSATION}/items/?\Z", conversations.items, name="conversation_items"),
    re_path(
        rf"^{_CONVERSATION}/items/(?P<item_id>[A-Za-z0-9_-]{{1,128}})/?\Z",
        conversations.item,
        name="conversation_item",
    ),
    re_path(r"^(?:v1/)?models/(?P<model_id>[^/]+)/?\Z", completions.model, name="model"),
]
# Describes the default agent, at the root of the server.
CARDS = [
    path(".well-known/agent-card.json", a2a.agent_card, name="agent_card"),
    path(".well-known/agent.json", a2a.old_agent_card, name="old_agent_card"),
]
AGENT_DIALECTS = [
    *DIALECTS,
    re_path(r"^acp/?\Z", acp.acp, name="acp"),
    re_path(r"^agui/?\Z", ag_ui.run, name="ag_ui"),
    re_path(r"^agui/connect/?\Z", ag_ui.connect, name="ag_ui_connect"),
    # Clients post with or without a slash, and do not follow redirects.
    re_path(r"^a2a/?\Z", rpc.rpc, name="a2a"),
    re_path(r"^a2a/rest/(?P<path>.+)\Z", rest.rest, name="a2a_rest"),
    # A2A 0.3 clients look here, below the address in the card, whatever its binding.
    re_path(r"^a2a/(?P<path>v1/card)\Z", rest.rest, name="a2a_card"),
    *CARDS,
    re_path(r"^tasks/?\Z", spec_tasks.tasks, name="tasks"),
    path("tasks/<str:task_id>", spec_tasks.task, name="task"),
]

urlpatterns = [
    *DIALECTS,
    *CARDS,
    re_path(r"^(?P<path>v1/card)\Z", rest.rest, {"name": ""}, name="a2a_card"),
    re_path(
        r"^api/v1/messages/(?P<message_id>[A-Za-z0-9_-]{1,40})/frames\Z",
        console.frames,
        name="message_frames",
    ),
    re_path(r"^agents/?\Z", directory.agents, name="agents"),
    re_path(r"^agents/(?P<name>[^/]+)/?\Z", directory.agent, name="agent_page"),
    path("agents/<str:name>/", include((AGENT_DIALECTS, "agent"))),
    re_path(r"^(?:v1|agents)/", unknown_paths.unknown_path),
]
