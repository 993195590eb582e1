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
    asked: list[tuple[str, Callable[[str, Any], DiscoveredAgent]]] = [
        (base, _of_directory),
        *((place, _of_card) for place in places),
        (f"{base}/capabilities", _of_capabilities),
        (f"{base}/models", _of_models),
        (f"{base}/v1/models", _of_models),
    ]

    def ask(one: tuple[str, Callable[[str, Any], DiscoveredAgent]]) -> DiscoveredAgent | None:
        found = _read(one[0], headers)
        try:
            return None if found is None else one[1](one[0], found)
        except RecursionError:
            # The decoder takes deeper JSON than the copy that can be stored.
            return None

    with ThreadPoolExecutor(len(asked), thread_name_prefix="discovery") as threads:
        merged = _merged([found for found in threads.map(ask, asked) if found is not None])
    if not merged.ways:
        raise Unreachable("nothing at that address answers as an agent")
    return merged


def facts_of(agent: Agent) -> dict[str, Any]:
    """Return what a row's address says, in the row's format; empty if it says nothing.

    An agent is often called at a path below the one that describes it.
    """
    try:
        url = target_of(agent.url).url
        key = key_for(agent.secret, target_of(agent.url).place) or ""
    except (Unreachable, Undecipherable):
        return {}
    above = url.copy_with(raw_path=url.raw_path.rstrip(b"/").rpartition(b"/")[0] or b"/")
    found: list[DiscoveredAgent] = []
    for place in dict.fromkeys((str(url), str(above))):
        with suppress(Unreachable):
            found.append(discover(place, key))
    named = sorted(found, key=lambda one: not one.name)
    facts: dict[str, Any] = msgspec.to_builtins(named[0]) if named else {}
    return facts


def _read(url: str, headers: Mapping[str, str]) -> Any:
    """Return the JSON object at an address, or None."""
    try:
        answer = fetch(url, policy(), headers=headers)
        found = msgspec.json.decode(answer.data)
    except (Unreachable, TooLarge, msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    is_found = 200 <= answer.status < 300 and isinstance(found, dict)  # noqa: PLR2004 successes
    return found if is_found else None


def _of_directory(_url: str, found: Any) -> DiscoveredAgent:
    """Read an agent from a directory in this server's format (docs/adapters.md)."""
    if found.get("object") != "agent":
        return DiscoveredAgent()
    name, base = _text(found.get("name"), NAME_CHARS), _text(found.get("url"), TEXT_CHARS)
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
        description=_text(found.get("description"), TEXT_CHARS),
        pricing=_pricing(found.get("pricing")),
        tools=_names(found.get("tools")),
        ways=tuple(
            DiscoveredEndpoint(protocol=protocol.value, url=f"{base}{path}", model=name)
            for protocol, path in paths.items()
        ),
    )


def _of_card(_url: str, found: Any) -> DiscoveredAgent:
    can = found.get("capabilities")
    can = can if isinstance(can, dict) else {}
    streams = can.get("streaming") is True
    ways: list[DiscoveredEndpoint] = []
    interfaces = found.get("supportedInterfaces")
    for one in interfaces[:MAX_ITEMS] if isinstance(interfaces, list) else ():
        if isinstance(one, dict) and one.get("protocolBinding") == "JSONRPC":
            is_old = str(one.get("protocolVersion", "")).startswith("0.")
            ways.append(_task_way(one.get("url"), is_old=is_old, streams=streams))
    if not ways and found.get("preferredTransport", "JSONRPC") == "JSONRPC" and found.get("url"):
        ways.append(_task_way(found.get("url"), is_old=True, streams=streams))
    extensions = can.get("extensions")
    prices = [
        _pricing(one["params"].get("pricing"))
        for one in (extensions if isinstance(extensions, list) else ())
        if isinstance(one, dict) and isinstance(one.get("params"), dict)
    ]
    skills = found.get("skills")
    return DiscoveredAgent(
        name=_text(found.get("name"), NAME_CHARS),
        description=_text(found.get("description"), TEXT_CHARS),
        pricing=next((price for price in prices if price), {}),
        tools=_names([one.get("name") for one in skills if isinstance(one, dict)])
        if isinstance(skills, list)
        else (),
        ways=tuple(ways),
    )


def _task_way(url: object, *, is_old: bool, streams: bool) -> DiscoveredEndpoint:
    protocol = RemoteProtocol.A2A_03 if is_old else RemoteProtocol.A2A
    return DiscoveredEndpoint(protocol=protocol.value, url=_text(url, TEXT_CHARS), streams=streams)


def _of_capabilities(url: str, found: Any) -> DiscoveredAgent:
    if not isinstance(found.get("modalities"), list) or not found.get("id"):
        return DiscoveredAgent()
    base = url.removesuffix("/capabilities")
    name = _text(found.get("id"), NAME_CHARS)
    extensions = found.get("extensions")
    return DiscoveredAgent(
        name=name,
        pricing=_pricing(extensions.get("pricing") if isinstance(extensions, dict) else None),
        tools=_names(found.get("provides")),
        ways=tuple(
            DiscoveredEndpoint(protocol=protocol.value, url=base)
            for protocol in (RemoteProtocol.UAMP, RemoteProtocol.UAMP_HTTP)
        ),
    )


def _of_models(url: str, found: Any) -> DiscoveredAgent:
    listed = found.get("data")
    names = (
        [one.get("id") for one in listed if isinstance(one, dict)]
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


def _merged(found: list[DiscoveredAgent]) -> DiscoveredAgent:
    """Merge descriptions into one agent; the first source of each fact wins."""
    ways: dict[tuple[str, str, str], DiscoveredEndpoint] = {}
    for one in found:
        for way in one.ways:
            if _may_be_called(way.url):
                ways.setdefault((way.protocol, way.url, way.model), way)
    return DiscoveredAgent(
        name=next((one.name for one in found if one.name), ""),
        description=next((one.description for one in found if one.description), ""),
        pricing=next((one.pricing for one in found if one.pricing), {}),
        tools=next((one.tools for one in found if one.tools), ()),
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
    found = value if isinstance(value, list | tuple) else ()
    return tuple(storable(one[:NAME_CHARS]) for one in found if isinstance(one, str) and one)[
        :MAX_ITEMS
    ]


def _pricing(value: object) -> dict[str, Any]:
    """Return prices in the format of a row; empty if they are invalid or free."""
    if not isinstance(value, dict):
        return {}
    kept: dict[str, Any] = storable_json(
        {name: price for name, price in value.items() if price not in (None, {}, "0")}
    )
    try:
        return {} if read_pricing(kept).is_free else kept
    except ValueError:
        return {}
