"""The agents that a caller may use, for lists of models, agent cards and pages.

Dialects call this module instead of `agents_app`.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from django.shortcuts import render
from django.utils import translation

from agents_app import selectors as agents
from agents_app.capabilities import SERVER_ID, agent_capabilities
from agents_app.demo import translated_description
from agents_app.remote.health import last_failures
from gateway_app.types.listed_agent import ListedAgent
from sessions_app import database
from sessions_app.access.auth import of_user
from sessions_app.transports.http_exchange import count_events, principal_of, problem
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from django.http import HttpRequest, HttpResponse

    from agents_app.remote.health import LastFailure
    from agents_app.selectors import AgentSpec
    from sessions_app.access.principal import Principal


async def agents_for(
    request: HttpRequest, name: str = "", *, protocol: str | None = None
) -> list[ListedAgent]:
    """Return the agents that the caller may use, or only the one of this name.

    Raises RemoteProtocolError if none may be used or the named agent does not exist.
    """
    principal = await reader_of(request, protocol=protocol, scope="agents:read")
    await count_events(request, principal, kind="discovery")
    if not name:
        specs = await database.run(agents.list_agents, principal.user_id)
        return [_listed(spec) for spec in specs if principal.rights.may_ask(spec.id)]
    spec = await database.run(partial(agents.get_agent, name, viewer=principal.user_id))
    if spec is None or not principal.rights.may_ask(spec.id):
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, f"There is no agent {name!r}.")
    return [_listed(spec)]


async def last_failure_of(request: HttpRequest, name: str) -> LastFailure | None:
    """Return why an agent elsewhere failed last, for its owner in a browser; None for others."""
    return await database.run(_last_failure, request, name)


def _last_failure(request: HttpRequest, name: str) -> LastFailure | None:
    agent_id = agents.agent_id_named(name)
    if agent_id is None or not request.user.is_authenticated:
        return None
    return last_failures([agent_id], owner_id=request.user.pk).get(agent_id)


def description_of(agent: ListedAgent) -> str:
    """Return an agent's description for people, in their language where it has a translation."""
    return translated_description(agent.description)


async def reader_of(request: HttpRequest, *, protocol: str | None, scope: str) -> Principal:
    """Return the reader; a page that a person opens has a session cookie and no Origin header."""
    principal = await principal_of(request, protocol=protocol, scope=scope)
    if not principal.is_visitor or "Origin" in request.headers:
        return principal
    signed_in = await database.run(_signed_in, request)
    return principal if signed_in is None else replace(signed_in, address=principal.address)


def _signed_in(request: HttpRequest) -> Principal | None:
    return of_user(request.user) if request.user.is_authenticated else None


async def page(
    request: HttpRequest, template: str, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    """Render a page for people; its template may read the database."""
    # The thread that renders does not inherit the language of the request.
    language = translation.get_language()

    def rendered() -> HttpResponse:
        with translation.override(language):
            return render(request, template, context, status=status)

    return await database.run(rendered)


def problem_for(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    """Return a refusal as a problem document (RFC 9457)."""
    return problem(error, instance=request.path)


def _listed(spec: AgentSpec) -> ListedAgent:
    return ListedAgent(
        name=spec.name,
        description=spec.description,
        created=spec.created_at,
        owned_by=SERVER_ID,
        capabilities=agent_capabilities(spec),
    )
