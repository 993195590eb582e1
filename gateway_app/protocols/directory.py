"""`/agents` and `/agents/{name}`: JSON for programs, pages for people, chosen by Accept.

Callers see only the agents that they may use. Any other agent is answered like one that does not
exist.
"""

from __future__ import annotations

from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.utils.translation import gettext, gettext_lazy

from gateway_app.backend.agents.agent_directory import (
    agents_for,
    description_of,
    last_failure_of,
    page,
    problem_for,
)
from gateway_app.http import cached_json, dialect_view
from gateway_app.protocols.table import PROTOCOLS
from gateway_app.types.protocol_presentation import ExampleQuestion
from uamp import ErrorCode, RemoteProtocolError
from uamp.amounts import format_amount

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from django.http import HttpRequest, HttpResponse, HttpResponseBase

    from gateway_app.types.listed_agent import ListedAgent

QUESTION: Final = "Hello there"
JSON: Final = "application/json"
HTML: Final = "text/html"
CACHE_SECONDS: Final = 60
VARY: Final = "Accept, Authorization, X-API-Key, Cookie, Origin"
_INPUTS: Final = {
    "text": gettext_lazy("Text"),
    "image": gettext_lazy("Pictures"),
    "audio": gettext_lazy("Sound"),
    "video": gettext_lazy("Video"),
    "file": gettext_lazy("Files"),
}


def _wants_page(request: HttpRequest) -> bool:
    """Return whether HTML is preferred; a client that accepts anything counts as a program."""
    return request.get_preferred_type([JSON, HTML]) == HTML


def _negotiated(view: Callable[..., Awaitable[HttpResponse]]) -> Any:
    """Answer GET and HEAD; refuse with a problem document, or with a page for people."""

    @dialect_view(problem_for, "GET", "HEAD")
    @wraps(view)
    async def answer(request: HttpRequest, **path: str) -> HttpResponseBase:
        try:
            response = await view(request, **path)
        except RemoteProtocolError as error:
            if error.code != ErrorCode.AGENT_NOT_FOUND:
                raise
            if _wants_page(request):
                response = await page(request, "404.html", {}, status=404)
            else:
                response = problem_for(request, error)
        response["Vary"] = VARY
        return response

    return answer


@_negotiated
async def agents(request: HttpRequest) -> HttpResponse:
    """Return the agents that the caller may use."""
    listed = await agents_for(request)
    if _wants_page(request):
        rows = [_agent_row(request, agent) for agent in listed]
        return await _page(request, "gateway_app/agents.html", {"agents": rows})
    data = [_summary(request, entry) for entry in listed]
    return cached_json(request, {"object": "list", "data": data}, seconds=CACHE_SECONDS)


@_negotiated
async def agent(request: HttpRequest, name: str) -> HttpResponse:
    """Return one agent: its capabilities, its prices and how to call it in each protocol."""
    (listed_agent,) = await agents_for(request, name)
    if not _wants_page(request):
        return cached_json(request, _document(request, listed_agent), seconds=CACHE_SECONDS)
    question = ExampleQuestion(base=_base(request, listed_agent), text=QUESTION)
    protocols = [
        {
            "key": protocol.key,
            "label": protocol.label,
            "title": protocol.title,
            "addresses": protocol.addresses(question.base),
            "examples": protocol.examples(question),
        }
        for protocol in PROTOCOLS
    ]
    context = {
        "agent": _agent_row(request, listed_agent),
        "protocols": protocols,
        "failure": await last_failure_of(request, listed_agent.name),
    }
    return await _page(request, "gateway_app/agent.html", context)


def _base(request: HttpRequest, agent: ListedAgent) -> str:
    return request.build_absolute_uri(f"/agents/{quote(agent.name)}")


def _summary(request: HttpRequest, agent: ListedAgent) -> dict[str, Any]:
    """Return an agent's entry in the list; `pricing` is null for a free agent."""
    base = _base(request, agent)
    can = agent.capabilities
    return {
        "object": "agent",
        "name": agent.name,
        "description": agent.description,
        "url": base,
        "agent_card": f"{base}/.well-known/agent-card.json",
        "created": agent.created,
        "owned_by": agent.owned_by,
        "pricing": can.extensions.get("pricing"),
        "input": list(can.modalities),
        "tools": list(can.provides or ()),
    }


def _document(request: HttpRequest, agent: ListedAgent) -> dict[str, Any]:
    """Return an agent with its capabilities (UAMP §9) and its addresses in each protocol."""
    base = _base(request, agent)
    return {
        **_summary(request, agent),
        "capabilities": msgspec.to_builtins(agent.capabilities),
        "protocols": [
            {"name": protocol.key, "title": protocol.title, "urls": dict(protocol.addresses(base))}
            for protocol in PROTOCOLS
        ],
    }


def _agent_row(request: HttpRequest, agent: ListedAgent) -> dict[str, Any]:
    """Return an agent as the templates show it."""
    can = agent.capabilities
    return {
        "name": agent.name,
        "description": description_of(agent)
        or gettext("The agent %(name)s.") % {"name": agent.name},
        "base": _base(request, agent),
        "path": f"/agents/{quote(agent.name)}",
        "inputs": [_INPUTS.get(kind, kind) for kind in can.modalities],
        "tools": list(can.provides or ()),
        "price": _price(can.extensions.get("pricing")),
        "is_free": can.extensions.get("pricing") is None,
    }


def _price(pricing: dict[str, Any] | None) -> str:
    """Return an agent's prices in words, in the reader's language."""
    if pricing is None:
        return gettext("Free")
    currency = pricing["currency"]
    priced = [
        (gettext("%(price)s per answer"), pricing["per_answer"]),
        (gettext("%(price)s per 1,000 input tokens"), pricing["input_per_1k"]),
        (gettext("%(price)s per 1,000 output tokens"), pricing["output_per_1k"]),
        (gettext("%(price)s per 1,000 tokens read from the cache"), pricing["cache_read_per_1k"]),
        (gettext("%(price)s per 1,000 tokens cached"), pricing["cache_write_per_1k"]),
    ]
    words = [
        text % {"price": format_amount(price, currency)} for text, price in priced if _is(price)
    ]
    for tool, price in pricing["tools"].items():
        if _is(price):
            values = {"price": format_amount(price, currency), "tool": tool}
            words.append(gettext("%(price)s per %(tool)s call") % values)
    return " + ".join(words) or gettext("Free")


def _is(price: str | None) -> bool:
    return price not in {None, "0"}


async def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a page that browsers revalidate, since it shows who is signed in."""
    response = await page(request, template, {"csrf_cookie": settings.CSRF_COOKIE_NAME, **context})
    response["Cache-Control"] = "private, no-cache"
    return response
