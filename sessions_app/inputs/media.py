"""Storing the media that clients send with their inputs and histories."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, ParamSpec, TypeVar

import msgspec

import uamp
from chat_app.contents import media_types, quota, reading_rights, references
from chat_app.members.origin_rights import takeable
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError
from uamp.types.inline_media import is_data_url

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from sessions_app.access.principal import Principal

P = ParamSpec("P")
T = TypeVar("T")


async def run_with_media(
    items: Iterable[uamp.ContentItem],
    asker: str,
    function: Callable[P, T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Run a function that stores items on a database thread.

    Items with data, which are measured and written, are for the threads of long calls.
    """
    if any(map(_has_data, items)):
        return await database.run_long(asker, function, *args, **kwargs)
    return await database.run(function, *args, **kwargs)


def _has_data(item: uamp.ContentItem) -> bool:
    if isinstance(item, uamp.ToolResultContent):
        return any(map(_has_data, item.tool_result.content_items or ()))
    medium = uamp.media_of(item)
    return isinstance(medium, str) or (medium is not None and is_data_url(medium.url))


def store_media(
    items: Sequence[uamp.ContentItem],
    principal: Principal,
    *,
    chat_id: str,
    new_ids: Collection[str] = (),
    reuse: bool = False,
) -> tuple[uamp.ContentItem, ...]:
    """Store the media of a client's message and return items that refer to them.

    `new_ids` are content ids chosen by the server; the stored content keeps them. With `reuse`,
    media that the client sent before are not stored again. Raises RemoteProtocolError:
    invalid_media, quota_exceeded, content_not_found.
    """
    owner = _owner(principal)
    find = partial(takeable, taker=owner, chat_id=chat_id)
    with _media_errors():
        return tuple(references.ingest(items, owner=owner, find=find, new_ids=new_ids, reuse=reuse))


def store_output(
    items: Sequence[uamp.ContentItem], principal: Principal, *, chat_id: str
) -> tuple[uamp.ContentItem, ...]:
    """Store the media that a client adds to an answer; return items that refer to them.

    Like an agent, it takes no file of others out of another chat. Raises like `store_media`.
    """
    owner = _owner(principal)
    find = partial(reading_rights.own_or_shown, owner=owner, chat_id=chat_id)
    with _media_errors():
        return tuple(references.ingest(items, owner=owner, find=find))


def store_history(
    messages: Sequence[uamp.Message], principal: Principal, *, chat_id: str
) -> tuple[list[uamp.Message], list[str]]:
    """Store the media of a history; return its messages and the ids of their contents.

    Raises RemoteProtocolError: invalid_media, quota_exceeded.
    """
    owner = _owner(principal)
    find = partial(takeable, taker=owner, chat_id=chat_id)
    with _media_errors():
        items, content_ids = references.ingest_history(
            [message.content_items or () for message in messages], owner=owner, find=find
        )
    stored = [
        msgspec.structs.replace(message, content_items=tuple(of_message) or None)
        for message, of_message in zip(messages, items, strict=True)
    ]
    return stored, content_ids


def check_takeable(content_ids: Iterable[str], principal: Principal, *, chat_id: str) -> None:
    """Raise RemoteProtocolError content_not_found for a file that a client may not show there."""
    with _media_errors():
        for content_id in content_ids:
            takeable(content_id, taker=_owner(principal), chat_id=chat_id)


def _owner(principal: Principal) -> quota.ContentOwner:
    return quota.ContentOwner(
        user_id=principal.user_id, key=principal.key, chats=principal.rights.chats
    )


@contextmanager
def _media_errors() -> Iterator[None]:
    try:
        yield
    except quota.QuotaExceeded as error:
        raise RemoteProtocolError(ErrorCode.QUOTA_EXCEEDED, str(error)) from error
    except media_types.InvalidMedia as error:
        raise RemoteProtocolError(ErrorCode.INVALID_MEDIA, str(error)) from error
    except reading_rights.ContentNotFound as error:
        raise RemoteProtocolError(
            ErrorCode.CONTENT_NOT_FOUND,
            "There is no such file, or you may not use it here.",
        ) from error
