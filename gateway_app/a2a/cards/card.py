"""Agent cards: for A2A 1.0, for 1.0 and 0.3 combined, and for the transports' spec (0.2.1)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

import msgspec

from gateway_app.a2a.tasks.payments import EXTENSION

if TYPE_CHECKING:
    import uamp
    from gateway_app.types.listed_agent import ListedAgent

CardProfile: TypeAlias = Literal["merged", "v1"]

V1: Final = "1.0"
V03: Final = "0.3"
SPEC_VERSION: Final = "0.2.1"
_TEXT: Final = ("text/plain", "application/json")
_SECURITY: Final[list[dict[str, list[str]]]] = [{"bearer": []}, {"apiKey": []}]


def v1_card(
    agent: ListedAgent, base: str, *, version: str, needs_key: bool, extended: bool = False
) -> dict[str, Any]:
    """Return the card for A2A 1.0 alone.

    `base` is the agent's address without a trailing slash. `extended` adds a skill for each tool of
    the agent.
    """
    card: dict[str, Any] = {
        "name": agent.name,
        "description": agent.description or f"The agent {agent.name}.",
        "version": version,
        "supportedInterfaces": [
            _interface(f"{base}/a2a", "JSONRPC", V1),
            _interface(f"{base}/a2a/rest", "HTTP+JSON", V1),
            _interface(f"{base}/a2a", "JSONRPC", V03),
            _interface(f"{base}/a2a/rest", "HTTP+JSON", V03),
        ],
        "capabilities": _capabilities(agent) | {"extendedAgentCard": True},
        "securitySchemes": {
            "bearer": {"httpAuthSecurityScheme": {"scheme": "Bearer"}},
            "apiKey": {"apiKeySecurityScheme": {"location": "header", "name": "X-API-Key"}},
        },
        "defaultInputModes": _input_modes(agent.capabilities),
        "defaultOutputModes": list(_TEXT),
        "skills": _skills(agent, extended=extended),
    }
    if needs_key:
        card["securityRequirements"] = [
            {"schemes": {name: {"list": []} for name in scheme}} for scheme in _SECURITY
        ]
    return card


def merged_card(card: dict[str, Any]) -> dict[str, Any]:
    """Add the members of 0.3 to a card of 1.0, so that clients of both versions can read it."""
    main, rest = card["supportedInterfaces"][:2]
    schemes = card["securitySchemes"]
    merged = {
        **card,
        "protocolVersion": "0.3.0",
        "url": main["url"],
        "preferredTransport": main["protocolBinding"],
        "additionalInterfaces": [
            {"url": interface["url"], "transport": interface["protocolBinding"]}
            for interface in (main, rest)
        ],
        "supportsAuthenticatedExtendedCard": True,
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "Bearer", **schemes["bearer"]},
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key", **schemes["apiKey"]},
        },
    }
    if "securityRequirements" in card:
        merged["security"] = [dict(requirement) for requirement in _SECURITY]
    return merged


def spec_card(agent: ListedAgent, base: str) -> dict[str, Any]:
    """Return the card of the transports' specification, plus members for clients of 0.2."""
    return {
        "name": agent.name,
        "description": agent.description or f"The agent {agent.name}.",
        "version": SPEC_VERSION,
        "protocolVersion": SPEC_VERSION,
        "url": f"{base}/a2a",
        "preferredTransport": "JSONRPC",
        "capabilities": _capabilities(agent),
        "securitySchemes": {
            "bearer": {"type": "http", "scheme": "Bearer"},
            "apiKey": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
        },
        "defaultInputModes": ["text"],
        "defaultOutputModes": ["text"],
        "skills": _skills(agent, extended=False),
        # UAMP §9.2: the agent's inputs and outputs, as UAMP announces them.
        "modelCapabilities": msgspec.to_builtins(agent.capabilities),
    }


def _interface(url: str, binding: str, version: str) -> dict[str, str]:
    return {"url": url, "protocolBinding": binding, "protocolVersion": version}


def _capabilities(agent: ListedAgent) -> dict[str, Any]:
    capabilities: dict[str, Any] = {"streaming": True, "pushNotifications": True}
    if "pricing" in agent.capabilities.extensions:
        capabilities["extensions"] = [
            {
                "uri": EXTENSION,
                "description": "Answers have a price, which is paid in their task.",
                "required": False,
                "params": {"pricing": agent.capabilities.extensions["pricing"]},
            }
        ]
    return capabilities


def _skills(agent: ListedAgent, *, extended: bool) -> list[dict[str, Any]]:
    modes = _input_modes(agent.capabilities)
    tools = agent.capabilities.provides or ()
    first = _skill("chat", agent.name, agent.description or f"Talks with {agent.name}.", modes)
    first["tags"] = ["chat", *tools]
    first["examples"] = ["What can you do?"]
    if not extended:
        return [first]
    return [
        first,
        *(_skill(f"tool.{name}", name, f"Uses the tool {name}.", modes) for name in tools),
    ]


def _skill(skill_id: str, name: str, description: str, modes: list[str]) -> dict[str, Any]:
    return {
        "id": skill_id,
        "name": name,
        "description": description,
        "tags": ["tool"],
        "examples": [f"Use {name}."],
        "inputModes": modes,
        "outputModes": list(_TEXT),
    }


def _input_modes(can: uamp.Capabilities) -> list[str]:
    """Return the media types that an agent accepts."""
    modes = list(_TEXT)
    if "image" in can.modalities:
        formats = (can.image.formats if can.image else None) or ("png", "jpeg")
        modes += [f"image/{form}" for form in formats]
    if "audio" in can.modalities and can.audio:
        modes += [f"audio/{form}" for form in can.audio.input_formats or ()]
    if "file" in can.modalities and can.file:
        modes += [
            mime_type for mime_type in can.file.supported_mime_types or () if mime_type not in modes
        ]
    return modes
