"""The views of agent cards, below each agent and at the root of the server."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.http import http_date

from gateway_app.a2a.cards.card import merged_card, spec_card, v1_card
from gateway_app.a2a.tasks.errors import TaskErrorReason, TaskRefused, error_of
from gateway_app.backend.agents.agent_directory import agents_for
from gateway_app.backend.agents.signed_cards import signed_card
from gateway_app.backend.responses import is_visitor
from gateway_app.http import cached_json, dialect_view

if TYPE_CHECKING:
    from gateway_app.types.listed_agent import ListedAgent
    from uamp import RemoteProtocolError

CACHE_SECONDS: Final = 60


def _refusal(request: HttpRequest, error: RemoteProtocolError) -> HttpResponse:
    del request
    task_error = error_of(error)
    return HttpResponse(
        msgspec.json.encode(task_error.status()),
        status=task_error.http,
        content_type="application/json",
    )


@dialect_view(_refusal, "GET", "HEAD")
async def agent_card(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Return the card of an agent, or of the default one, in the client's version."""
    agent = await _agent(request, name)
    card = await signed_card(
        v1_card(agent, _base(request, agent), version=settings.UAMP_VERSION, needs_key=_needs_key())
    )
    if not _is_v1_only(request):
        card = merged_card(card)
    return _answer(request, agent, card)


@dialect_view(_refusal, "GET", "HEAD")
async def old_agent_card(request: HttpRequest, name: str = "") -> HttpResponseBase:
    """Return the card of the transports' specification."""
    agent = await _agent(request, name)
    return _answer(request, agent, spec_card(agent, _base(request, agent)))


async def extended_card(request: HttpRequest, name: str, *, v1_only: bool) -> dict[str, Any]:
    """Return the card for callers with a key; raises TaskRefused for a visitor.

    Without a name, returns the card of the default agent.
    """
    if await is_visitor(request):
        raise TaskRefused(
            TaskErrorReason.EXTENDED_AGENT_CARD_NOT_CONFIGURED,
            "The extended card needs authentication: it is for callers with a key.",
            status=HTTPStatus.UNAUTHORIZED,
        )
    agent = await _agent(request, name)
    card = await signed_card(
        v1_card(
            agent,
            _base(request, agent),
            version=settings.UAMP_VERSION,
            needs_key=_needs_key(),
            extended=True,
        )
    )
    return card if v1_only else merged_card(card)


async def _agent(request: HttpRequest, name: str) -> ListedAgent:
    return (await agents_for(request, name or settings.UAMP_DEFAULT_AGENT, protocol="a2a"))[0]


def _needs_key() -> bool:
    return not settings.UAMP_ALLOW_ANONYMOUS


def _is_v1_only(request: HttpRequest) -> bool:
    version = request.headers.get("A2A-Version", "")
    return version.startswith("1.") or settings.A2A_CARD_PROFILE == "v1"


def _base(request: HttpRequest, agent: ListedAgent) -> str:
    return request.build_absolute_uri(f"/agents/{quote(agent.name)}")


def _answer(request: HttpRequest, agent: ListedAgent, card: dict[str, Any]) -> HttpResponse:
    response = cached_json(request, card, seconds=CACHE_SECONDS)
    response["Last-Modified"] = http_date(agent.created)
    response["Vary"] = "A2A-Version, Authorization, X-API-Key, Cookie"
    return response
