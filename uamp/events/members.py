"""Events of the members of a chat and of its settings, both ways; all of them are additions.

One class per wire type; a field without a default is required on the wire. In a change a field that
is not there stays as it is, and an empty text takes away what was there.
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
    """Change what a chat is called and how it works; the sender's role says what they may change.

    ``avatar`` is an emoji, a colour as ``#rrggbb``, or ``content:`` and the id of a picture.
    ``agents_quiet`` lets no agent answer. ``agent_hops`` is how often in a row agents ask each
    other, and ``budget`` what the answers of all agents may cost in its ``budget_period``.
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
    ``budget`` is what the answers of the agent may cost in its ``budget_period``.
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
    """A member of a chat; ``kind`` is user or agent, ``id`` is the person's or agent's."""

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
    """The person who did something."""

    id: str
    name: str


class ChatUpdated(Event, frozen=True, kw_only=True, tag="chat.updated"):
    """The chat is called and works like this now; ``by`` is who changed it."""

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
    """The members of the three events of a membership."""

    chat_id: str
    participant: ChatMember
    by: Actor | None = None


class ParticipantJoined(_Membership, frozen=True, kw_only=True, tag="participant.joined"):
    """A person or an agent joined; ``by`` is who added them, or they themselves by a link."""


class ParticipantLeft(_Membership, frozen=True, kw_only=True, tag="participant.left"):
    """A person or an agent left; ``by`` is who removed them, or they themselves."""


class ParticipantUpdated(_Membership, frozen=True, kw_only=True, tag="participant.updated"):
    """The role of a person, or how an agent answers, is another one; ``by`` changed it."""


class ChatLink(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A link of a chat, without its secret; ``kind`` is share or invite.

    ``expires_at`` is in milliseconds. ``grows`` says that a share link shows later messages, too.
    ``role`` is what people become who join by an invite link, ``most_uses`` how many may.
    """

    kind: str
    id: str
    expires_at: Count
    title: str | None = None
    grows: bool | None = None
    role: str | None = None
    most_uses: Count | None = None


class _Link(Event, frozen=True, kw_only=True):
    """The members of the two events of a link."""

    chat_id: str
    link: ChatLink
    by: Actor | None = None


class LinkCreated(_Link, frozen=True, kw_only=True, tag="link.created"):
    """A member, ``by``, made a link that shows the chat to others, or by which people join."""


class LinkRevoked(_Link, frozen=True, kw_only=True, tag="link.revoked"):
    """A link ended before its time. Without ``by`` it ended with the right of its maker."""


class AgentStopped(Event, frozen=True, kw_only=True, tag="agent.stopped"):
    """An ``agent`` does not answer a message that is for it, and why.

    ``reason`` is disabled, quiet, hops, pair, budget, chat_budget, or host_left where it left a
    call with the person who had added it; ``message`` says it in words.
    ``mentioned_by`` is the agent that asked it, where another agent did; ``thread`` is the message
    in whose thread that was.
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
