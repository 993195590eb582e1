"""Events of a chat's members and settings, both ways; all are additions.

One class per wire type; a field without a default is required on the wire. In a change, an absent
field stays as it is, and an empty string clears it.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from uamp.events.base import Event
from uamp.types.bounds import Amount, Count, Hops, Identifier, Messages, Positive

Title: TypeAlias = Annotated[str, msgspec.Meta(max_length=200)]
Description: TypeAlias = Annotated[str, msgspec.Meta(max_length=2000)]
Avatar: TypeAlias = Annotated[str, msgspec.Meta(max_length=80)]
MemberName: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=150)]
Keyword: TypeAlias = Annotated[str, msgspec.Meta(min_length=1, max_length=60)]
Keywords: TypeAlias = Annotated[tuple[Keyword, ...], msgspec.Meta(max_length=20)]
Role: TypeAlias = Literal["owner", "admin", "member"]
Trigger: TypeAlias = Literal["mention", "always", "keyword", "never"]
Scope: TypeAlias = Literal["chat", "last", "addressed"]
Payer: TypeAlias = Literal["asker", "owner", "pool", "sponsor"]
BudgetPeriod: TypeAlias = Literal["day", "total"]


class ChatUpdate(Event, frozen=True, kw_only=True, tag="chat.update"):
    """Change the settings of a chat; the sender's role decides which of them they may change.

    ``avatar`` is an emoji, a colour as ``#rrggbb``, or ``content:`` and the id of an image.
    ``agents_quiet`` stops all agents from answering. ``agent_hops`` is how often in a row agents
    may ask each other, and ``budget`` the most that the answers of all agents may cost per
    ``budget_period``.
    """

    chat_id: Identifier | None = None
    title: Title | None = None
    description: Description | None = None
    avatar: Avatar | None = None
    payer: Payer | None = None
    only_owners_pin: bool | None = None
    agents_quiet: bool | None = None
    agent_hops: Hops | None = None
    budget: Amount | None = None
    budget_period: BudgetPeriod | None = None


class ParticipantAdd(Event, frozen=True, kw_only=True, tag="participant.add"):
    """Add a person (``user``) or an ``agent`` to the chat, by name."""

    chat_id: Identifier | None = None
    user: MemberName | None = None
    agent: MemberName | None = None
    trigger: Trigger | None = None


class ParticipantRemove(Event, frozen=True, kw_only=True, tag="participant.remove"):
    """Leave the chat, or remove another member."""

    chat_id: Identifier | None = None
    participant_id: Positive


class ParticipantUpdate(Event, frozen=True, kw_only=True, tag="participant.update"):
    """Change the ``role`` of a person, or how an agent answers in the chat.

    ``keywords`` belong to the trigger ``keyword``, ``context_messages`` to the context ``last``.
    ``budget`` is the most that the agent's answers may cost per ``budget_period``.
    """

    chat_id: Identifier | None = None
    participant_id: Positive
    role: Role | None = None
    trigger: Trigger | None = None
    keywords: Keywords | None = None
    context: Scope | None = None
    context_messages: Messages | None = None
    budget: Amount | None = None
    budget_period: BudgetPeriod | None = None


class ChatMember(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A member of a chat; ``kind`` is user or agent, ``id`` that of the person or agent."""

    kind: str
    id: str
    name: str
    participant_id: Count | None = None
    role: str | None = None
    trigger: str | None = None
    keywords: tuple[str, ...] | None = None
    context: str | None = None
    context_messages: Count | None = None
    budget: str | None = None
    budget_period: str | None = None


class Actor(msgspec.Struct, frozen=True, kw_only=True):
    """The person who performed an action."""

    id: str
    name: str


class ChatUpdated(Event, frozen=True, kw_only=True, tag="chat.updated"):
    """The chat's settings after a change; ``by`` changed them."""

    chat_id: str
    title: str = msgspec.field(default_factory=str)
    description: str = msgspec.field(default_factory=str)
    avatar: str | None = None
    payer: str | None = None
    only_owners_pin: bool | None = None
    agents_quiet: bool | None = None
    agent_hops: Count | None = None
    budget: str | None = None
    budget_period: str | None = None
    by: Actor | None = None


class _Membership(Event, frozen=True, kw_only=True):
    """The fields of the three membership events."""

    chat_id: str
    participant: ChatMember
    by: Actor | None = None


class ParticipantJoined(_Membership, frozen=True, kw_only=True, tag="participant.joined"):
    """A person or an agent joined; ``by`` added them, or is the person who joined by a link."""


class ParticipantLeft(_Membership, frozen=True, kw_only=True, tag="participant.left"):
    """A person or an agent left; ``by`` removed them, or is the person who left."""


class ParticipantUpdated(_Membership, frozen=True, kw_only=True, tag="participant.updated"):
    """The role of a person, or how an agent answers, has changed; ``by`` changed it."""


class ChatLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link of a chat, without its secret; ``kind`` is share or invite.

    ``expires_at`` is in milliseconds. With ``grows``, a share link also shows later messages.
    ``role`` is the role of people who join by an invite link, ``most_uses`` how many may join.
    """

    kind: str
    id: str
    expires_at: Count
    title: str | None = None
    grows: bool | None = None
    role: str | None = None
    most_uses: Count | None = None


class _Link(Event, frozen=True, kw_only=True):
    """The fields of the two link events."""

    chat_id: str
    link: ChatLink
    by: Actor | None = None


class LinkCreated(_Link, frozen=True, kw_only=True, tag="link.created"):
    """A member, ``by``, created a link that shows the chat to others or lets people join."""


class LinkRevoked(_Link, frozen=True, kw_only=True, tag="link.revoked"):
    """A link was revoked early; without ``by``, because its creator lost the right to it."""


class AgentStopped(Event, frozen=True, kw_only=True, tag="agent.stopped"):
    """An ``agent`` does not answer a message addressed to it.

    ``reason`` is disabled, private, quiet, hops, pair, budget, chat_budget, or host_left if it
    left a call together with its host; ``message`` explains it. ``mentioned_by`` is the agent that
    asked it, if an agent did; ``thread`` is the message in whose thread it was asked.
    """

    chat_id: str
    agent: str
    agent_id: str
    reason: str
    message: str
    mentioned_by: str | None = None
    message_id: str | None = None
    response_id: str | None = None
    thread: str | None = None
