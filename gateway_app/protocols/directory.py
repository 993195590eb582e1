"""`/agents` and `/agents/{name}`: JSON for programs, pages for people, chosen by Accept.

Callers see only the agents that they may use. Any other agent is answered like one that does not
exist.
"""

from __future__ import annotations

import hashlib
from functools import wraps
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase

from gateway_app.doors.agents.agent_directory import agents_for, page, problem_for
from gateway_app.http import dialect_view
from gateway_app.protocols.table import PROTOCOLS
from gateway_app.shapes.shown_protocol import ExampleQuestion
from uamp import ErrorCode, RemoteProtocolError
from uamp.amounts import shown_amount

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from gateway_app.shapes.listed_agent import ListedAgent

QUESTION: Final = "Hello there"
JSON: Final = "application/json"
HTML: Final = "text/html"
CACHE_SECONDS: Final = 60
VARY: Final = "Accept, Authorization, X-API-Key, Cookie, Origin"
_INPUTS: Final = {
    "text": "Text",
    "image": "Pictures",
    "audio": "Sound",
    "video": "Video",
    "file": "Files",
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
        shown = [_shown(request, agent) for agent in listed]
        return await _page(request, "gateway_app/agents.html", {"agents": shown})
    return _json(request, {"object": "list", "data": [_summary(request, one) for one in listed]})


@_negotiated
async def agent(request: HttpRequest, name: str) -> HttpResponse:
    """Return one agent: its capabilities, its prices and how to call it in each protocol."""
    (found,) = await agents_for(request, name)
    if not _wants_page(request):
        return _json(request, _document(request, found))
    question = ExampleQuestion(base=_base(request, found), text=QUESTION)
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
    context = {"agent": _shown(request, found), "protocols": protocols}
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
            {"name": one.key, "title": one.title, "urls": dict(one.addresses(base))}
            for one in PROTOCOLS
        ],
    }


def _shown(request: HttpRequest, agent: ListedAgent) -> dict[str, Any]:
    """Return an agent as the templates show it."""
    can = agent.capabilities
    return {
        "name": agent.name,
        "description": agent.description or f"The agent {agent.name}.",
        "base": _base(request, agent),
        "path": f"/agents/{quote(agent.name)}",
        "inputs": [_INPUTS.get(kind, kind) for kind in can.modalities],
        "tools": list(can.provides or ()),
        "prices": _prices(can.extensions.get("pricing")),
    }


def _prices(pricing: dict[str, Any] | None) -> list[tuple[str, str]]:
    """Return each priced item with its price as people read it."""
    if pricing is None:
        return []
    named = [
        ("an answer", pricing["per_answer"]),
        ("1,000 tokens that it reads", pricing["input_per_1k"]),
        ("1,000 tokens that it writes", pricing["output_per_1k"]),
        ("1,000 tokens that are read from the cache", pricing["cache_read_per_1k"] or "0"),
        ("1,000 tokens that are written to the cache", pricing["cache_write_per_1k"] or "0"),
        *((f"a call of {tool}", price) for tool, price in pricing["tools"].items()),
    ]
    currency = pricing["currency"]
    return [(what, shown_amount(price, currency)) for what, price in named if price != "0"]


async def _page(request: HttpRequest, template: str, context: dict[str, Any]) -> HttpResponse:
    """Render a page that browsers revalidate, since it shows who is signed in."""
    response = await page(request, template, context)
    response["Cache-Control"] = "private, no-cache"
    return response


def _json(request: HttpRequest, value: object) -> HttpResponse:
    body = msgspec.json.encode(value)
    tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    known = [one.strip() for one in request.headers.get("If-None-Match", "").split(",")]
    response = HttpResponse(status=304) if tag in known else HttpResponse(body)
    response["Content-Type"] = JSON
    response["ETag"] = tag
    response["Cache-Control"] = f"private, max-age={CACHE_SECONDS}"
    return response
