"""The rights of a credential: scopes, and the chats, agents and protocols it is restricted to.

A person who signed in, and a key without restrictions, have all rights of the person (`ALL`).
`Rights` only take away: the rows that the person may see are decided where they are read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.utils.translation import gettext_lazy

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from django_stubs_ext import StrOrPromise

EVERYTHING: Final = "*"
"""The scope of all rights, and in `chats:*` of all rights of that name."""

SCOPES: Final[dict[str, StrOrPromise]] = {
    "chats:read": gettext_lazy("Read your chats, follow them live, search and export them"),
    "chats:write": gettext_lazy("Make and change chats, their members and links"),
    "messages:write": gettext_lazy("Send and change messages, ask agents, upload files, call"),
    "tools:approve": gettext_lazy("Allow or refuse what an agent asks permission for"),
    "agents:read": gettext_lazy("List the agents that you may use, and what they can do"),
    "agents:write": gettext_lazy("Make and change your agents"),
    "agents:connect": gettext_lazy("Connect programs that answer as your agents"),
    "payments:read": gettext_lazy("Read balance, statement, limits and payment tokens"),
    "payments:write": gettext_lazy("Pay, make payment tokens, change limits and approvals"),
    "account:read": gettext_lazy("Read your profile, and find people"),
    "account:write": gettext_lazy("Change your profile and settings"),
    "keys:read": gettext_lazy("List your API keys"),
    "keys:write": gettext_lazy("Make keys with at most its own rights, rotate and revoke keys"),
    "webhooks:read": gettext_lazy("Read your webhooks and their deliveries"),
    "webhooks:write": gettext_lazy("Make, change and delete webhooks"),
}
"""Each scope with what it allows, for people."""

PROTOCOLS: Final[dict[str, str]] = {
    "uamp": "UAMP",
    "rest": "REST",
    "completions": "OpenAI Chat Completions",
    "responses": "OpenAI Responses",
    "realtime": "OpenAI Realtime",
    "a2a": "A2A",
    "acp": "ACP",
    "ag-ui": "AG-UI",
}
"""The protocols that a key may be restricted to, with their names."""

ANY: Final = ""
"""Declared where every good credential will do."""


class MissingRight(Exception):
    """The credential has no right to this; `scope` is the one that it lacks, if it is one."""

    def __init__(self, message: str, *, scope: str = "") -> None:
        super().__init__(message)
        self.scope = scope


@dataclass(frozen=True, kw_only=True, slots=True)
class Rights:
    """The rights of a credential. A set that is None restricts nothing.

    `agents` and `chats` are ids; `protocols` are of PROTOCOLS. `has_budget` says that what the
    credential pays is limited, so that it pays for answers alone.
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
        """Raise MissingRight, which names the scope that the credential lacks."""
        if not self.has(scope):
            raise MissingRight(
                f"This credential has no scope {scope}. Use one that has it.", scope=scope
            )

    def check_protocol(self, protocol: str) -> None:
        """Raise MissingRight for a protocol that the credential is not for."""
        if self.protocols is not None and protocol not in self.protocols:
            name = PROTOCOLS.get(protocol, protocol)
            raise MissingRight(f"This credential is not for {name}. Use one that is.")

    def check_pays(self) -> None:
        """Raise MissingRight for a credential whose budget counts answers alone."""
        if self.has_budget:
            raise MissingRight(
                "This credential has a budget, and pays for answers alone."
                " Use one without a budget."
            )

    def sees_chat(self, chat_id: str) -> bool:
        """Return whether the credential may be used in a chat of its person."""
        return self.chats is None or chat_id in self.chats

    def may_ask(self, agent_id: str) -> bool:
        """Return whether the credential may ask an agent."""
        return self.agents is None or agent_id in self.agents

    def includes(self, other: Rights) -> bool:
        """Return whether another credential could do nothing that this one cannot."""
        return (
            all(self._includes_scope(scope) for scope in other.scopes)
            and _within(other.chats, self.chats)
            and _within(other.agents, self.agents)
            and _within(other.protocols, self.protocols)
            and (other.has_budget or not self.has_budget)
        )

    def _includes_scope(self, scope: str) -> bool:
        if scope == EVERYTHING:
            return EVERYTHING in self.scopes
        return self.has(scope)


ALL: Final = Rights(scopes=frozenset({EVERYTHING}))
"""The rights of a person who signed in."""


def unknown_scopes(scopes: Iterable[str]) -> list[str]:
    """Return those of these scopes that do not exist; `*` and `chats:*` do."""
    groups = {f"{scope.partition(':')[0]}:{EVERYTHING}" for scope in SCOPES}
    return sorted(set(scopes) - set(SCOPES) - groups - {EVERYTHING})


def _within(inner: Collection[str] | None, outer: Collection[str] | None) -> bool:
    return outer is None or (inner is not None and set(inner) <= set(outer))
