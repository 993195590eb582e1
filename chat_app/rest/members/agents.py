"""REST: the agents that the caller may use, and those that they create and change."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.core.exceptions import ValidationError as DjangoValidationError
from django.http import Http404
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import PermissionDenied, ValidationError
from rest_framework.response import Response

from agents_app import editing
from agents_app import selectors as agents
from agents_app.rest.operations import LOCATION
from agents_app.rest.problems import Problem, responses
from agents_app.rest.rights import MissingRight
from agents_app.rest.strict import StrictSerializer
from agents_app.rest.views import caller, rights_of
from chat_app.rest import overview
from chat_app.rest.edge import RestView
from chat_app.rest.paging import list_of, list_response, read_query
from chat_app.rest.serializers import AgentSerializer, NoQuery

if TYPE_CHECKING:
    from rest_framework.request import Request

    from agents_app.models import Agent
    from agents_app.selectors import AgentSpec


class AgentChangeSerializer(StrictSerializer):
    """Fields of an agent to set, as on its admin page; omitted ones keep their value."""

    name = serializers.CharField(required=False, max_length=64)
    description = serializers.CharField(required=False, allow_blank=True)
    kind = serializers.ChoiceField(
        choices=editing.choices_of("kind"),
        required=False,
        help_text="Where it runs: here, or at its `url`, which is called over its `protocol`.",
    )
    provider = serializers.ChoiceField(choices=editing.choices_of("provider"), required=False)
    model = serializers.CharField(required=False, allow_blank=True, max_length=200)
    url = serializers.CharField(required=False, allow_blank=True, max_length=2000)
    protocol = serializers.ChoiceField(
        choices=editing.choices_of("protocol"), required=False, allow_blank=True
    )
    key = serializers.CharField(
        required=False,
        allow_blank=True,
        write_only=True,
        max_length=4096,
        trim_whitespace=False,
        help_text="The key of a remote agent; stored encrypted and never shown. Empty for none.",
    )
    instructions = serializers.CharField(
        required=False, allow_blank=True, help_text="The system prompt."
    )
    options = serializers.DictField(required=False, help_text="Options of the provider.")
    tools = serializers.ListField(child=serializers.CharField(max_length=200), required=False)
    approvals = serializers.ListField(child=serializers.CharField(max_length=200), required=False)
    delegates = serializers.ListField(child=serializers.CharField(max_length=64), required=False)
    pricing = serializers.DictField(required=False, help_text="Decimal strings in USD.")
    strategy = serializers.ChoiceField(choices=editing.choices_of("strategy"), required=False)
    strategy_options = serializers.DictField(required=False)
    is_public = serializers.BooleanField(required=False)
    is_enabled = serializers.BooleanField(required=False)
    trigger = serializers.ChoiceField(choices=editing.choices_of("trigger"), required=False)
    max_steps = serializers.IntegerField(required=False, min_value=1, max_value=32)
    max_output_tokens = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=10**9
    )
    max_seconds = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=10**6
    )
    history_messages = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, max_value=10**6
    )


class NewAgentSerializer(AgentChangeSerializer):
    """The body of POST /api/v1/agents."""

    name = serializers.CharField(max_length=64)


class HealthSerializer(serializers.Serializer[Any]):
    """The health of an agent elsewhere, and how the address of a remote one describes it."""

    state = serializers.ChoiceField(
        choices=["online", "paused", "offline", "off"],
        help_text="`paused`: a remote agent failed repeatedly and is not called before `retry_at`."
        " `offline`: no program is connected.",
    )
    failures = serializers.IntegerField(help_text="Calls that failed in a row.")
    last_error = serializers.CharField(allow_blank=True)
    failed_at = serializers.DateTimeField(allow_null=True)
    retry_at = serializers.DateTimeField(allow_null=True)
    probed_at = serializers.DateTimeField(
        allow_null=True, help_text="When its description was last fetched from its address."
    )
    found = serializers.DictField(help_text="That description; empty if there was none.")


class ConfiguredAgentSerializer(AgentSerializer):
    """An agent; `configuration` is for those who may change it, `health` if it is elsewhere."""

    configuration = AgentChangeSerializer(required=False)
    health = HealthSerializer(required=False)


class AddressSerializer(StrictSerializer):
    """The body of POST /api/v1/agent-discovery."""

    url = serializers.CharField(max_length=2000)
    key = serializers.CharField(
        required=False,
        allow_blank=True,
        write_only=True,
        max_length=4096,
        trim_whitespace=False,
        help_text="It is sent only to this address, and not stored.",
    )


class FoundWaySerializer(serializers.Serializer[Any]):
    """One way to call an agent: values for a new remote agent."""

    protocol = serializers.CharField()
    url = serializers.CharField()
    model = serializers.CharField(allow_blank=True)
    streams = serializers.BooleanField()


class FoundAgentSerializer(serializers.Serializer[Any]):
    """The agent behind an address."""

    name = serializers.CharField(allow_blank=True)
    description = serializers.CharField(allow_blank=True)
    pricing = serializers.DictField(
        help_text="As for a new agent; empty if its address announces no prices."
    )
    tools = serializers.ListField(child=serializers.CharField())
    ways = FoundWaySerializer(many=True)


class AgentsView(RestView):
    """The agents that the caller may use."""

    read_scope = "agents:read"
    write_scope = "agents:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="list_agents", responses={200: list_of(AgentSerializer), **responses(400)}
    )
    def get(self, request: Request) -> Response:
        """Return all of them, by name."""
        read_query(request, NoQuery)
        data = [
            _data(spec)
            for spec in agents.list_agents(caller(request))
            if rights_of(request).may_ask(spec.id)
        ]
        return list_response(request, data, next_cursor=None, key="name")

    @extend_schema(
        operation_id="create_agent",
        parameters=[LOCATION],
        request=NewAgentSerializer,
        responses={201: ConfiguredAgentSerializer, **responses(400, 403, 413, 415)},
    )
    def post(self, request: Request) -> Response:
        """Create an agent owned by the caller; requires the permission `agents_app.add_agent`."""
        if rights_of(request).agents is not None or rights_of(request).chats is not None:
            raise MissingRight(
                "This credential is restricted to certain agents and cannot create others."
            )
        if not editing.may_make(caller(request)):
            raise PermissionDenied("You may not create agents. Ask an operator for this right.")
        body = NewAgentSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            agent = editing.make(body.validated_data, owner=caller(request))
        except DjangoValidationError as error:
            raise _invalid(error) from error
        location = f"/api/v1/agents/{agent.name}"
        return Response(_configured(agent), status=201, headers={"Location": location})


class AgentView(RestView):
    """One agent."""

    read_scope = "agents:read"
    write_scope = "agents:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="get_agent",
        responses={200: ConfiguredAgentSerializer, **responses(400, 404)},
    )
    def get(self, request: Request, name: str) -> Response:
        """Return an agent that the caller may use or change, by its name or id."""
        read_query(request, NoQuery)
        user = caller(request)
        spec = agents.get_agent(name, viewer=user)
        if (agent := _editable_agent(request, name)) is not None:
            return Response(_configured(agent))
        if spec is None or not rights_of(request).may_ask(spec.id):
            raise Http404
        return Response(_data(spec))

    @extend_schema(
        operation_id="update_agent",
        request=AgentChangeSerializer,
        responses={200: ConfiguredAgentSerializer, **responses(400, 403, 404, 413, 415)},
    )
    def patch(self, request: Request, name: str) -> Response:
        """Change one of the caller's own agents; requires `agents_app.change_agent`.

        To switch one off, set `is_enabled`: its answers stay.
        """
        agent = _editable_agent(request, name)
        if agent is None:
            self.get(request, name)
            raise PermissionDenied(
                "Only the owner of an agent may change it, and only with an operator's permission."
            )
        body = AgentChangeSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        try:
            return Response(_configured(editing.change(agent, body.validated_data)))
        except DjangoValidationError as error:
            raise _invalid(error) from error


class DiscoveryView(RestView):
    """The agents behind an address, before creating a remote agent for one."""

    answers_repeats = True
    write_scope = "agents:write"

    @extend_schema(
        operation_id="discover_agent",
        request=AddressSerializer,
        responses={200: FoundAgentSerializer, **responses(400, 403, 413, 415, 429)},
    )
    def post(self, request: Request) -> Response:
        """Read the address, for people who may create agents; takes at most a few seconds."""
        if not editing.may_make(caller(request)):
            raise PermissionDenied("You may not create agents. Ask an operator for this right.")
        body = AddressSerializer(data=request.data)
        body.is_valid(raise_exception=True)
        key = body.validated_data.get("key", "")
        if not editing.is_key(key):
            raise ValidationError({"key": editing.NO_KEY})
        _count_look(request)
        try:
            description = editing.discover(body.validated_data["url"].strip(), key)
        except editing.Unreachable as error:
            raise ValidationError({"url": f"No agent was found there: {error.reason}."}) from error
        return Response(
            {
                name: getattr(description, name)
                for name in ("name", "description", "pricing", "tools")
            }
            | {"ways": [FoundWaySerializer(way).data for way in description.ways]}
        )


class ProbeView(RestView):
    """A probe of a remote agent's address."""

    answers_repeats = True
    write_scope = "agents:write"
    takes_restricted_keys = True

    @extend_schema(
        operation_id="probe_agent",
        request=None,
        responses={200: ConfiguredAgentSerializer, **responses(400, 403, 404, 429)},
    )
    def post(self, request: Request, name: str) -> Response:
        """Probe now, for people who may change the agent; on success it is called again at once."""
        agent = _editable_agent(request, name)
        if agent is None or agent.kind != "remote":
            raise Http404
        _count_look(request)
        editing.probe(agent)
        return Response(_configured(agent))


def _count_look(request: Request) -> None:
    if not editing.may_look(caller(request)):
        text = "You looked too often. Wait a minute."
        raise Problem("rate_limit_exceeded", text, members={"retry_after": 60})


def _editable_agent(request: Request, name: str) -> Agent | None:
    """Return the agent of a name or id if the caller may change it."""
    agent_id = agents.agent_id_named(name)
    if agent_id is None or not rights_of(request).may_ask(agent_id):
        return None
    return editing.editable(agent_id, caller(request))


def _data(spec: AgentSpec) -> dict[str, Any]:
    return {
        "id": spec.id,
        "name": spec.name,
        "description": spec.description,
        "pricing": overview.pricing_data(spec.pricing),
    }


def _configured(agent: Agent) -> dict[str, Any]:
    spec = agents.get_spec(agent.pk)
    return {
        **_data(spec),
        "configuration": {name: getattr(agent, name) for name in editing.FIELDS},
        **({} if agent.kind == "hosted" else {"health": _health(agent)}),
    }


def _health(agent: Agent) -> dict[str, Any]:
    names = ("failures", "last_error", "failed_at", "retry_at", "probed_at", "found")
    failing = "paused" if agent.kind == "remote" else "offline"
    state = "online" if agent.is_online else failing if agent.is_enabled else "off"
    return {"state": state, **{name: getattr(agent, name) for name in names}}


def _invalid(error: DjangoValidationError) -> ValidationError:
    if hasattr(error, "error_dict"):
        return ValidationError(
            {
                "non_field_errors" if name == "__all__" else name: errors
                for name, errors in error.message_dict.items()
            }
        )
    return ValidationError({"non_field_errors": error.messages})
