"""Discovery of what this server and its agents can do, before any session (UAMP §9.2).

Callers only find agents that they may use; for any other the reply is the same as for one that does
not exist. A key is optional.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import JsonResponse

import uamp
from agents_app import capabilities
from agents_app import selectors as agents
from agents_app.rest.problem_kinds import PROBLEMS
from agents_app.rest.problems import refusal, wrong_method
from agents_app.rest.rights import ALL, MissingRight, Rights
from sessions_app.access import throttles
from sessions_app.access.auth import Handshake, verify_token
from sessions_app.access.principal import AuthenticationError

if TYPE_CHECKING:
    from collections.abc import Callable

    from django.http import HttpRequest, HttpResponse

    from agents_app.selectors import AgentSpec

SERVER_NAME: Final = "UAMP server"
DESCRIPTION: Final = "People and AI agents in shared chats, over UAMP."
_PATHS: Final = {
    "websocket": "uamp",
    "events": "events",
    "event_stream": "events/stream",
    "batch": "uamp",
    "batch_stream": "uamp/stream",
    "capabilities": "capabilities",
    "models": "models",
    "info": "info",
}


class _Refused(Exception):
    """Ends the request with a problem (RFC 9457)."""

    def __init__(self, code: str, detail: str = "", *, retry_after: int | None = None) -> None:
        super().__init__(detail)
        self.code = code
        self.retry_after = retry_after


def _answers(view: Callable[..., Any]) -> Callable[..., HttpResponse]:
    """Turn a function that returns plain values or raises _Refused into a view."""

    @wraps(view)
    def answer(request: HttpRequest, **path: str) -> HttpResponse:
        if request.method not in {"GET", "HEAD"}:
            return wrong_method(request, "GET", "HEAD")
        try:
            return JsonResponse(msgspec.to_builtins(view(request, **path)))
        except _Refused as refused:
            return refusal(
                refused.code,
                detail=str(refused),
                instance=request.path,
                retry_after=refused.retry_after,
            )

    return answer


@_answers
def server_capabilities(request: HttpRequest) -> uamp.Capabilities:
    """Return the combined capabilities of the server's agents."""
    return capabilities.server_capabilities(_agents(request))


@_answers
def server_models(request: HttpRequest) -> dict[str, Any]:
    """Return the agents that the caller may use, in OpenAI's model list format."""
    return _models(_agents(request))


@_answers
def server_info(request: HttpRequest) -> dict[str, Any]:
    """Return the server's identity, the agents that the caller may use, and the endpoints."""
    return {
        "name": SERVER_NAME,
        "description": DESCRIPTION,
        "version": settings.UAMP_VERSION,
        "uamp_version": uamp.VERSION,
        "agents": [
            {
                "name": spec.name,
                "description": spec.description,
                "endpoints": _endpoints(_agent_prefix(spec)),
            }
            for spec in _agents(request)
        ],
        "endpoints": _endpoints("/"),
    }


@_answers
def agent_capabilities(request: HttpRequest, name: str) -> uamp.Capabilities:
    """Return the capabilities of one agent."""
    return capabilities.agent_capabilities(_agent(request, name))


@_answers
def agent_models(request: HttpRequest, name: str) -> dict[str, Any]:
    """Return one agent in OpenAI's model list format."""
    return _models([_agent(request, name)])


@_answers
def agent_info(request: HttpRequest, name: str) -> dict[str, Any]:
    """Return an agent's identity and its endpoints."""
    spec = _agent(request, name)
    return {
        "name": spec.name,
        "description": spec.description,
        "version": settings.UAMP_VERSION,
        "uamp_version": uamp.VERSION,
        "endpoints": _endpoints(_agent_prefix(spec)),
    }


def _viewer(request: HttpRequest) -> tuple[Any, Rights]:
    """Return the sender of a request, and the rights of their credential.

    The sender is the owner of the key or session cookie, or else a visitor.

    Raises _Refused for an invalid key or too many requests.
    """
    token = Handshake.of_request(request).token
    if not token:
        _count(request, request.user.pk)
        return request.user, ALL
    try:
        principal = verify_token(token, protocol=None)
        principal.rights.check("agents:read")
    except MissingRight as missing:
        _count(request, None)
        raise _Refused("forbidden", str(missing)) from missing
    except AuthenticationError as error:
        _count(request, None)
        code = error.code if error.code in PROBLEMS else "unauthorized"
        raise _Refused(code, str(error)) from error
    _count(request, principal.user_id)
    return principal.user_id, principal.rights


def _agents(request: HttpRequest) -> list[AgentSpec]:
    viewer, rights = _viewer(request)
    return [spec for spec in agents.list_agents(viewer) if rights.may_ask(spec.id)]


def _count(request: HttpRequest, user_id: int | None) -> None:
    quota = throttles.count(request, "discovery", user_id)
    if not quota.allowed:
        raise _Refused("rate_limit_exceeded", retry_after=quota.retry_after)


def _agent(request: HttpRequest, name: str) -> AgentSpec:
    viewer, rights = _viewer(request)
    spec = agents.get_agent(name, viewer=viewer)
    if spec is None or not rights.may_ask(spec.id):
        raise _Refused("not_found")
    return spec


def _models(specs: list[AgentSpec]) -> dict[str, Any]:
    return {"object": "list", "data": capabilities.models_list(specs)}


def _agent_prefix(spec: AgentSpec) -> str:
    return f"/agents/{quote(spec.name)}/"


def _endpoints(prefix: str) -> dict[str, str]:
    """Return the paths under a prefix; sockets use the same host with ws or wss."""
    return {name: f"{prefix}{path}" for name, path in _PATHS.items()}
