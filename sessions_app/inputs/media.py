"""Storing the media that clients send with their inputs and histories. Synchronous."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import msgspec

from chat_app.contents import media_types, quota, reading_rights, references
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    import uamp
    from sessions_app.access.principal import Principal


def store_media(
    items: Sequence[uamp.ContentItem],
    principal: Principal,
    *,
    new_ids: Collection[str] = (),
    reuse: bool = False,
) -> tuple[uamp.ContentItem, ...]:
    """Store the media that a client sent and return items that refer to them.

    `new_ids` are content ids chosen by the server; the stored content keeps them. With `reuse`,
    media that the client sent before are not stored again. Raises RemoteProtocolError:
    invalid_media, quota_exceeded, content_not_found.
    """
    with _media_errors():
        return tuple(
            references.ingest(items, owner=_owner(principal), new_ids=new_ids, reuse=reuse)
        )


def store_history(
    messages: Sequence[uamp.Message], principal: Principal
) -> tuple[list[uamp.Message], list[str]]:
    """Store the media of a history; return its messages and the ids of their contents.

    Raises RemoteProtocolError: invalid_media, quota_exceeded.
    """
    with _media_errors():
        items, content_ids = references.ingest_history(
            [message.content_items or () for message in messages], owner=_owner(principal)
        )
    stored = [
        msgspec.structs.replace(message, content_items=tuple(of_message) or None)
        for message, of_message in zip(messages, items, strict=True)
    ]
    return stored, content_ids


def check_readable(content_ids: Iterable[str], principal: Principal) -> None:
    """Raise RemoteProtocolError content_not_found for a content that a client may not read."""
    with _media_errors():
        for content_id in content_ids:
            reading_rights.readable(content_id, owner=_owner(principal))


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
            "There is no such content, or it is not yours. Upload it first.",
        ) from error
