"""The rights of a credential: its scopes, and the chats, agents and protocols it is limited to.

A signed-in person and a key without restrictions have all rights of the person (`ALL`). `Rights`
can only restrict: which rows the person may see is decided where they are read.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django_stubs_ext import StrOrPromise

EVERYTHING: Final = "*"
"""The scope of all rights; in `chats:*`, of all rights with that prefix."""

SCOPES: Final[dict[str, StrOrPromise]] = {
    "chats:read": gettext_lazy("Read your chats, follow them live, search and export them"),
    "chats:write": gettext_lazy("Create and change chats, their members and links"),
    "messages:write": gettext_lazy("Send and change messages, ask agents, upload files, call"),
    "tools:approve": gettext_lazy("Allow or deny what an agent asks permission for"),
    "agents:read": gettext_lazy("List the agents that you may use, and what they can do"),
    "agents:write": gettext_lazy("Create and change your agents"),
    "agents:connect": gettext_lazy("Connect programs that answer as your agents"),
    "payments:read": gettext_lazy("Read balance, statement, limits and payment tokens"),
    "payments:write": gettext_lazy("Pay, create payment tokens, change limits and approvals"),
    "account:read": gettext_lazy("Read your profile, and find people"),
    "account:write": gettext_lazy("Change your profile and settings"),
    "keys:read": gettext_lazy("List your API keys"),
    "keys:write": gettext_lazy(
        "Create, rotate and revoke keys, never with more rights than this key"
    ),
    "webhooks:read": gettext_lazy("Read your webhooks and their deliveries"),
    "webhooks:write": gettext_lazy("Create, change and delete webhooks"),
}
"""Each scope with a description for people."""

PROTOCOLS: Final[dict[str, str]] = {
    "uamp": "UAMP",
    "rest": "REST",
    "completions": "OpenAI Chat Completions",
    "responses": "OpenAI Responses",
    "anthropic": "Anthropic Messages",
    "realtime": "OpenAI Realtime",
    "a2a": "A2A",
    "acp": "ACP",
    "ag-ui": "AG-UI",
}
"""The protocols that a key may be restricted to, with their display names."""

ANY: Final = ""
"""Declared by views that accept every valid credential."""


class MissingRight(Exception):
    """The credential does not grant this; `scope` is the missing scope, if any."""

    def __init__(self, message: str, *, scope: str = "") -> None:
        super().__init__(message)
        self.scope = scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Rights:
    """The rights of a credential. A set that is None restricts nothing.

    `agents` and `chats` are ids; `protocols` are keys of PROTOCOLS. `has_budget` means that the
    credential's spending is limited, so that it can pay only for answers.
    """

    scopes: frozenset[str]
    chats: frozenset[str] | None = None
    agents: frozenset[str] | None = None
    protocols: frozenset[str] | None = None
    has_budget: bool = False

    def has(self, scope: str) -> bool:
        """Return whether the credential has a scope."""
        if scope == ANY or EVERYTHING in self.scopes or scope in self.scopes:
            return True
        return f"{scope.partition(':')[0]}:{EVERYTHING}" in self.scopes

    def check(self, scope: str) -> None:
        """Raise MissingRight, naming the scope, if the credential does not have it."""
        if not self.has(scope):
            raise MissingRight(
                f"This credential lacks the scope {scope}. Use one that has it.", scope=scope
            )

    def check_protocol(self, protocol: str) -> None:
        """Raise MissingRight if the credential is not valid for a protocol."""
        if self.protocols is not None and protocol not in self.protocols:
            name = PROTOCOLS.get(protocol, protocol)
            raise MissingRight(f"This credential cannot be used over {name}. Use one that can.")

    def check_pays(self) -> None:
        """Raise MissingRight if the credential has a budget, which covers answers only."""
        if self.has_budget:
            raise MissingRight(
                "This credential has a budget and can only pay for answers."
                " Use one without a budget."
            )

    def check_commits(self) -> None:
        """Raise MissingRight unless the credential may commit its person's money to others."""
        self.check("payments:write")
        self.check_pays()

    @property
    def may_commit(self) -> bool:
        """Whether the credential may commit its person's money to others."""
        try:
            self.check_commits()
        except MissingRight:
            return False
        return True

    def sees_chat(self, chat_id: str) -> bool:
        """Return whether the credential may be used in one of its person's chats."""
        return self.chats is None or chat_id in self.chats

    def may_ask(self, agent_id: str) -> bool:
        """Return whether the credential may call an agent."""
        return self.agents is None or agent_id in self.agents

    def includes(self, other: Rights) -> bool:
        """Return whether these rights cover all rights of another credential."""
        return (
            all(self._includes_scope(scope) for scope in other.scopes)
            and _within(other.chats, self.chats)
            and _within(other.agents, self.agents)
            and _within(other.protocols, self.protocols)
            and (other.has_budget or not self.has_budget)
        )

    @property
    def digest(self) -> str:
        """A name for these rights: equal rights have the same one."""
        parts = (self.scopes, self.chats, self.agents, self.protocols)
        listed = [None if part is None else sorted(part) for part in parts]
        return hashlib.sha256(json.dumps([*listed, self.has_budget]).encode()).hexdigest()

    def within(self, other: Rights) -> Rights:
        """Return the part of these rights that another credential covers, too."""
        return Rights(
            scopes=frozenset(scope for scope in self.scopes if other._includes_scope(scope)),
            chats=_both(self.chats, other.chats),
            agents=_both(self.agents, other.agents),
            protocols=_both(self.protocols, other.protocols),
            has_budget=self.has_budget or other.has_budget,
        )

    def _includes_scope(self, scope: str) -> bool:
        if scope == EVERYTHING:
            return EVERYTHING in self.scopes
        return self.has(scope)


ALL: Final = Rights(scopes=frozenset({EVERYTHING}))
"""The rights of a signed-in person."""


def agent_restriction(rights: Rights) -> tuple[str, ...] | None:
    """Return the ids of the only agents that a credential may ask, for a row; None for all."""
    return None if rights.agents is None else tuple(sorted(rights.agents))


def chat_restriction(rights: Rights) -> tuple[str, ...] | None:
    """Return the ids of the only chats that a credential is for, for a row; None for all."""
    return None if rights.chats is None else tuple(sorted(rights.chats))


def restricted_rights(
    agent_ids: Iterable[str] | None, chat_ids: Iterable[str] | None = None
) -> Rights:
    """Return all rights of a person, within the agents of `agent_restriction` and the chats.

    The chats are those of `chat_restriction`.
    """
    return replace(
        ALL,
        agents=None if agent_ids is None else frozenset(agent_ids),
        chats=None if chat_ids is None else frozenset(chat_ids),
    )


def unknown_scopes(scopes: Iterable[str]) -> list[str]:
    """Return those of these scopes that do not exist; wildcards such as `chats:*` do."""
    groups = {f"{scope.partition(':')[0]}:{EVERYTHING}" for scope in SCOPES}
    return sorted(set(scopes) - set(SCOPES) - groups - {EVERYTHING})


def _both(names: frozenset[str] | None, other: frozenset[str] | None) -> frozenset[str] | None:
    if names is None or other is None:
        return other if names is None else names
    return names & other


def _within(inner: Collection[str] | None, outer: Collection[str] | None) -> bool:
    return outer is None or (inner is not None and set(inner) <= set(outer))
