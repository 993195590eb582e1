"""Validation of remote agents' rows and of stored keys, shared by the admin's form and REST."""

from collections.abc import Mapping
from typing import Any

from agents_app.models import Agent, AgentKind, ModelProvider, RemoteProtocol
from agents_app.models.agents import ENVELOPES
from agents_app.outbound.keys import KEY_CHARS, Undecipherable, encrypted_key, key_for
from agents_app.outbound.rules import Unreachable
from agents_app.providers.clients import model_place
from agents_app.providers.options import problem_of_new, unknown_options
from agents_app.remote.addresses import target_of

OPTIONS = "remote"
"""The provider whose options apply to remote agents (agents_app.providers.options)."""
NO_KEY = f"A key may have at most {KEY_CHARS} printable ASCII characters and no spaces."
KEY_WITHOUT_MODEL = "Only a remote agent, or one with a model, has a key."
KEY_TWICE = "Enter a key or name an environment variable, not both."
_NAMED = frozenset({RemoteProtocol.COMPLETIONS.value, RemoteProtocol.RESPONSES.value})
_WITHOUT_TOOLS = ENVELOPES | {
    RemoteProtocol.A2A.value,
    RemoteProtocol.A2A_03,
    RemoteProtocol.ACP,
}
_DID = "did:web:"
PEERS = "federation_app.change_peer_trust"
"""The permission to create agents of peers, which this server calls with signed envelopes."""
NOT_FOR_PEERS = "An operator who may change peers makes the agents of peers."


def problems_of(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems with the fields of a remote agent, in words for their author."""
    problems: dict[str, str | None] = {}
    protocol, options = values.get("protocol"), values.get("options") or {}
    try:
        target_of(str(values.get("url") or ""), is_peer=protocol in ENVELOPES)
    except Unreachable as error:
        problems["url"] = f"This address may not be called: {error.reason}."
    if protocol not in RemoteProtocol.values:
        problems["protocol"] = "Choose how the agent is called."
    if protocol in _NAMED and not values.get("model"):
        problems["model"] = "Enter the agent's name on its own server."
    problems |= _problems_of_peer(values)
    if unknown := unknown_options(OPTIONS, options):
        problems["options"] = f"Unknown options: {', '.join(unknown)}."
    else:
        problems["options"] = problem_of_new(f"{OPTIONS}_{protocol}", options)
    if values.get("strategy") not in {None, "loop"}:
        problems["strategy"] = "A remote agent has its own strategy: choose loop."
    if protocol in _WITHOUT_TOOLS:
        for field in ("tools", "delegates"):
            if values.get(field):
                problems[field] = "Its protocol cannot offer this server's tools."
    if (key := values.get("key")) and "key" not in problems and not is_key(key):
        problems["key"] = NO_KEY
    return {name: words for name, words in problems.items() if words}


def _problems_of_peer(values: Mapping[str, Any]) -> dict[str, str]:
    """Return the problems with the fields of an agent called with signed envelopes."""
    problems: dict[str, str] = {}
    if values.get("protocol") not in ENVELOPES:
        return problems
    if not str(values.get("model") or "").startswith(_DID):
        problems["model"] = f"Write the name of the agent that signs, as {_DID}host:agents:echo."
    return problems


def complete(agent: Agent, key: str | None) -> None:
    """Complete a validated row; `key` is its new key, "" to remove it, None to keep it.

    A stored key is dropped when the scheme, host or port changes, or when the agent becomes one of
    a peer: it would be sent as a capability token, which others can read in the envelope.
    """
    if agent.kind == AgentKind.REMOTE:
        # The provider field is unused: the agent at the address answers.
        agent.provider = ModelProvider.SCRIPTED
        place = target_of(agent.url, is_peer=agent.protocol in ENVELOPES).place
    elif has_model(agent.kind, agent.provider):
        place = model_place(agent.provider, agent.options.get("base_url"))
    else:
        agent.secret = ""
        return
    if key is not None:
        agent.secret = encrypted_key(key, place)
        return
    try:
        is_kept = key_for(agent.secret, place) is not None and not _becomes_of_peer(agent)
    except Undecipherable:
        is_kept = False
    if not is_kept:
        agent.secret = ""


def _becomes_of_peer(agent: Agent) -> bool:
    """Return whether an agent of a peer is stored as another one."""
    if not is_of_peer(agent.kind, agent.protocol):
        return False
    stored = Agent.objects.filter(pk=agent.pk).values_list("kind", "protocol").first()
    return stored is not None and not is_of_peer(*stored)


def has_model(kind: str, provider: str) -> bool:
    """Return whether a model of a provider answers for an agent, which may have a key then."""
    return kind == AgentKind.HOSTED and provider != ModelProvider.SCRIPTED


def problem_of_key(key: str, kind: str, provider: str, options: Mapping[str, Any]) -> str | None:
    """Return why an agent that is not remote cannot have a key; None if it can."""
    if not has_model(kind, provider):
        return KEY_WITHOUT_MODEL
    if options.get("api_key_env"):
        return KEY_TWICE
    return None if is_key(key) else NO_KEY


def may_own(agent: Agent) -> bool:
    """Return whether the owner of a row may have an agent of its protocol.

    An agent of a peer is called in this server's name and paid from its account with the peer.
    """
    owner = agent.owner
    return not is_of_peer(agent.kind, agent.protocol) or owner is None or owner.has_perm(PEERS)


def is_of_peer(kind: str, protocol: str) -> bool:
    """Return whether this server calls an agent in its own name, with signed envelopes."""
    return kind == AgentKind.REMOTE and protocol in ENVELOPES


def is_key(key: str) -> bool:
    """Return whether a text can be sent as a key."""
    return len(key) <= KEY_CHARS and key.isascii() and key.isprintable() and " " not in key
