"""Discovery of the agent behind an address: protocols, name, description, price.

Reads agent cards (A2A §8), UAMP directories and capabilities (§9.2), and lists of models. Nothing
it reads is trusted: each address is checked before an agent is called there.
"""

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import httpx
import msgspec

from agents_app.models import Agent, RemoteProtocol
from agents_app.models.agents import ENVELOPES
from agents_app.outbound.guard import TooLarge, fetch
from agents_app.outbound.keys import Undecipherable, key_for
from agents_app.outbound.rules import Unreachable
from agents_app.pricing import read_pricing
from agents_app.remote.addresses import policy, target_of
from uamp.storable_text import storable, storable_json

MAX_ITEMS = 50
"""The most ways to call an agent, and the most model names, that are kept."""
TEXT_CHARS = 2000
NAME_CHARS = 200
_WELL_KNOWN = ("/.well-known/agent-card.json", "/.well-known/agent.json")


class DiscoveredEndpoint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One way to call an agent: the protocol, the address, and the agent's name there.

    `streams` is False if a card says so.
    """

    protocol: str
    url: str
    model: str = ""
    streams: bool = True


class DiscoveredAgent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The agent at an address; `pricing` is in the format of a row, empty if not announced."""

    name: str = ""
    description: str = ""
    pricing: dict[str, Any] = {}
    tools: tuple[str, ...] = ()
    ways: tuple[DiscoveredEndpoint, ...] = ()


def discover(url: str, key: str = "") -> DiscoveredAgent:
    """Return what an address says about its agent. Synchronous; takes a few seconds at most.

    The key is sent only to the scheme, host and port of the address. Raises Unreachable if the
    address is forbidden or nothing there answers like an agent.
    """
    target_of(url)
    base = url.rstrip("/")
    origin = str(httpx.URL(url).copy_with(raw_path=b"/")).rstrip("/")
    headers = {"Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    places = dict.fromkeys(base + path for path in _WELL_KNOWN)
    # If the address names one agent, the card at the server's root describes another agent.
    places |= dict.fromkeys(origin + path for path in _WELL_KNOWN) if base == origin else {}
    sources: list[tuple[str, Callable[[str, Any], DiscoveredAgent]]] = [
        (base, _of_directory),
        *((place, _of_card) for place in places),
        (f"{base}/capabilities", _of_capabilities),
        (f"{base}/models", _of_models),
        (f"{base}/v1/models", _of_models),
    ]

    def ask(source: tuple[str, Callable[[str, Any], DiscoveredAgent]]) -> DiscoveredAgent | None:
        document = _read(source[0], headers)
        try:
            return None if document is None else source[1](source[0], document)
        except RecursionError:
            # The decoder takes deeper JSON than the copy that can be stored.
            return None

    with ThreadPoolExecutor(len(sources), thread_name_prefix="discovery") as threads:
        merged = _merged([agent for agent in threads.map(ask, sources) if agent is not None])
    if not merged.ways:
        raise Unreachable("nothing at that address answers as an agent")
    return merged


def facts_of(agent: Agent) -> dict[str, Any]:
    """Return what a row's address says, in the row's format; empty if it says nothing.

    An agent is often called at a path below the one that describes it. The address of an agent of a
    peer is not asked: it is the whole server's, and the stored key is a token for envelopes.
    """
    if agent.protocol in ENVELOPES:
        return {}
    try:
        url = target_of(agent.url).url
        key = key_for(agent.secret, target_of(agent.url).place) or ""
    except (Unreachable, Undecipherable):
        return {}
    above = url.copy_with(raw_path=url.raw_path.rstrip(b"/").rpartition(b"/")[0] or b"/")
    descriptions: list[DiscoveredAgent] = []
    for place in dict.fromkeys((str(url), str(above))):
        with suppress(Unreachable):
            descriptions.append(discover(place, key))
    named = sorted(descriptions, key=lambda description: not description.name)
    facts: dict[str, Any] = msgspec.to_builtins(named[0]) if named else {}
    return facts


def _read(url: str, headers: Mapping[str, str]) -> Any:
    """Return the JSON object at an address, or None."""
    try:
        answer = fetch(url, policy(), headers=headers)
        document = msgspec.json.decode(answer.data)
    except (Unreachable, TooLarge, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_found = 200 <= answer.status < 300 and isinstance(document, dict)  # noqa: PLR2004 successes
    return document if is_found else None


def _of_directory(_url: str, document: Any) -> DiscoveredAgent:
    """Read an agent from a directory in this server's format (docs/adapters.md)."""
    if document.get("object") != "agent":
        return DiscoveredAgent()
    name, base = _text(document.get("name"), NAME_CHARS), _text(document.get("url"), TEXT_CHARS)
    if not base:
        return DiscoveredAgent()
    paths = {
        RemoteProtocol.UAMP: "",
        RemoteProtocol.UAMP_HTTP: "",
        RemoteProtocol.COMPLETIONS: "/v1",
        RemoteProtocol.RESPONSES: "/v1",
        RemoteProtocol.A2A: "/a2a",
        RemoteProtocol.A2A_03: "/a2a",
        RemoteProtocol.AG_UI: "/agui",
        RemoteProtocol.ACP: "/acp",
    }
    return DiscoveredAgent(
        name=name,
        description=_text(document.get("description"), TEXT_CHARS),
        pricing=_pricing(document.get("pricing")),
        tools=_names(document.get("tools")),
        ways=tuple(
            DiscoveredEndpoint(protocol=protocol.value, url=f"{base}{path}", model=name)
            for protocol, path in paths.items()
        ),
    )


def _of_card(_url: str, card: Any) -> DiscoveredAgent:
    can = card.get("capabilities")
    can = can if isinstance(can, dict) else {}
    streams = can.get("streaming") is True
    ways: list[DiscoveredEndpoint] = []
    interfaces = card.get("supportedInterfaces")
    for interface in interfaces[:MAX_ITEMS] if isinstance(interfaces, list) else ():
        if isinstance(interface, dict) and interface.get("protocolBinding") == "JSONRPC":
            is_old = str(interface.get("protocolVersion", "")).startswith("0.")
            ways.append(_task_way(interface.get("url"), is_old=is_old, streams=streams))
    if not ways and card.get("preferredTransport", "JSONRPC") == "JSONRPC" and card.get("url"):
        ways.append(_task_way(card.get("url"), is_old=True, streams=streams))
    extensions = can.get("extensions")
    prices = [
        _pricing(extension["params"].get("pricing"))
        for extension in (extensions if isinstance(extensions, list) else ())
        if isinstance(extension, dict) and isinstance(extension.get("params"), dict)
    ]
    skills = card.get("skills")
    return DiscoveredAgent(
        name=_text(card.get("name"), NAME_CHARS),
        description=_text(card.get("description"), TEXT_CHARS),
        pricing=next((price for price in prices if price), {}),
        tools=_names([skill.get("name") for skill in skills if isinstance(skill, dict)])
        if isinstance(skills, list)
        else (),
        ways=tuple(ways),
    )


def _task_way(url: object, *, is_old: bool, streams: bool) -> DiscoveredEndpoint:
    protocol = RemoteProtocol.A2A_03 if is_old else RemoteProtocol.A2A
    return DiscoveredEndpoint(protocol=protocol.value, url=_text(url, TEXT_CHARS), streams=streams)


def _of_capabilities(url: str, document: Any) -> DiscoveredAgent:
    if not isinstance(document.get("modalities"), list) or not document.get("id"):
        return DiscoveredAgent()
    base = url.removesuffix("/capabilities")
    name = _text(document.get("id"), NAME_CHARS)
    extensions = document.get("extensions")
    return DiscoveredAgent(
        name=name,
        pricing=_pricing(extensions.get("pricing") if isinstance(extensions, dict) else None),
        tools=_names(document.get("provides")),
        ways=tuple(
            DiscoveredEndpoint(protocol=protocol.value, url=base)
            for protocol in (RemoteProtocol.UAMP, RemoteProtocol.UAMP_HTTP)
        ),
    )


def _of_models(url: str, document: Any) -> DiscoveredAgent:
    listed = document.get("data")
    names = (
        [model.get("id") for model in listed if isinstance(model, dict)]
        if isinstance(listed, list)
        else []
    )
    base = url.removesuffix("/models")
    return DiscoveredAgent(
        ways=tuple(
            DiscoveredEndpoint(protocol=RemoteProtocol.COMPLETIONS.value, url=base, model=name)
            for name in _names(names)
        )
    )


def _merged(agents: list[DiscoveredAgent]) -> DiscoveredAgent:
    """Merge descriptions into one agent; the first source of each fact wins."""
    ways: dict[tuple[str, str, str], DiscoveredEndpoint] = {}
    for agent in agents:
        for way in agent.ways:
            if _may_be_called(way.url):
                ways.setdefault((way.protocol, way.url, way.model), way)
    return DiscoveredAgent(
        name=next((agent.name for agent in agents if agent.name), ""),
        description=next((agent.description for agent in agents if agent.description), ""),
        pricing=next((agent.pricing for agent in agents if agent.pricing), {}),
        tools=next((agent.tools for agent in agents if agent.tools), ()),
        ways=tuple(ways.values())[:MAX_ITEMS],
    )


def _may_be_called(url: str) -> bool:
    try:
        target_of(url)
    except Unreachable:
        return False
    return True


def _text(value: object, chars: int) -> str:
    return value[:chars].replace("\0", "") if isinstance(value, str) else ""


def _names(value: object) -> tuple[str, ...]:
    items = value if isinstance(value, list | tuple) else ()
    return tuple(storable(item[:NAME_CHARS]) for item in items if isinstance(item, str) and item)[
        :MAX_ITEMS
    ]


def _pricing(value: object) -> dict[str, Any]:
    """Return prices in the format of a row; empty if they are invalid or free."""
    if not isinstance(value, dict):
        return {}
    prices: dict[str, Any] = storable_json(
        {name: price for name, price in value.items() if price not in (None, {}, "0")}
    )
    try:
        return {} if read_pricing(prices).is_free else prices
    except ValueError:
        return {}
