"""Search a person's chats by words and filters. Synchronous."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from django.contrib.auth.models import User
from django.db.models import Q

from chat_app.members.chat_lists import chats_of
from chat_app.models import Participant
from chat_app.search.filters import InvalidSearch
from chat_app.search.search import filtered_messages, search_messages

if TYPE_CHECKING:
    from collections.abc import Mapping

    from chat_app.models import Chat, Message
    from chat_app.search.filters import SearchTerms

CHATS: Final = 20
"""How many chats one search covers, the most recently active first."""


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundMessages:
    """Search results, newest first; `searched` is how many of the person's `chats` were covered.

    `places` is where the next page continues in each chat, empty on the last page.
    """

    messages: list[Message]
    titles: dict[str, str]
    places: dict[str, int]
    searched: int
    chats: int


def find_messages(
    terms: SearchTerms, *, user_id: int, limit: int, places: Mapping[str, int] | None = None
) -> FoundMessages:
    """Return the messages of a person's chats that match all terms; raises InvalidSearch.

    With the `places` of an earlier page, only messages before them, in the same chats.
    """
    chats = chats_of(user_id)
    if terms.chat is not None:
        chats = chats.filter(Q(pk=terms.chat) | Q(title__iexact=terms.chat))
    count = chats.count()
    if places is not None:
        chats = chats.filter(pk__in=places)
    searched: list[Chat] = list(chats.order_by("-latest_at", "-pk")[:CHATS])
    if not searched and terms.chat is not None and places is None:
        raise InvalidSearch(
            f"You are not in a chat called {terms.chat!r}. in: takes a chat's title or id."
        )
    filters = _filters(terms, user_id)
    lists: list[list[Message]] = []
    # Messages that are sent while the pages are read belong to none of them.
    before = dict(places or {chat.pk: chat.last_seq + 1 for chat in searched})
    for chat in searched:
        there = filters & Q(seq__lt=before[chat.pk])
        if terms.words:
            lists.append(search_messages(chat.pk, terms.words, limit=limit + 1, filters=there))
        else:
            lists.append(filtered_messages(chat.pk, there, limit=limit + 1))
    # The messages of a chat stay in the order of its log, whatever the clocks of processes say.
    merged = list(heapq.merge(*lists, key=lambda message: message.created_at, reverse=True))
    page = merged[:limit]
    for message in page:
        before[message.chat_id] = min(before[message.chat_id], message.seq)
    return FoundMessages(
        messages=page,
        titles={chat.pk: chat.title for chat in searched},
        places=before if len(merged) > limit else {},
        searched=len(searched),
        chats=count,
    )


def _filters(terms: SearchTerms, user_id: int) -> Q:
    filters = Q()
    if terms.person is not None:
        sender = User.objects.filter(username__iexact=terms.person).first()
        if sender is None:
            raise InvalidSearch(f"There is no person named {terms.person!r}.")
        filters &= Q(sender_user_id=sender.pk)
    if terms.agent is not None:
        members = Participant.objects.filter(
            chat__in=chats_of(user_id), agent__name__iexact=terms.agent
        )
        agent_id = members.values_list("agent_id", flat=True).first()
        if agent_id is None:
            raise InvalidSearch(f"No agent named {terms.agent!r} is in your chats.")
        filters &= Q(sender_agent_id=agent_id)
    if terms.has_file:
        filters &= ~Q(content_items=[])
    if terms.before is not None:
        filters &= Q(created_at__lt=terms.before)
    if terms.after is not None:
        filters &= Q(created_at__gte=terms.after)
    return filters
