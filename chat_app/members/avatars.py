"""Avatars of chats: an emoji, a colour, or a picture that the members may read. Synchronous."""

from __future__ import annotations

import re
from typing import Final

from chat_app.contents import addresses
from chat_app.contents.quota import ContentOwner
from chat_app.contents.reading_rights import ContentNotFound
from chat_app.emoji import is_emoji
from chat_app.members import origin_rights
from chat_app.models import Chat

_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")
_PICTURE: Final = re.compile(r"content:([0-9a-f-]{36})")
PICTURES: Final = ("image/png", "image/jpeg", "image/webp", "image/gif")


class InvalidAvatar(ValueError):
    """The avatar is neither an emoji nor a colour nor a picture that its setter may show there."""


def use_avatar(
    chat_id: str, avatar: str, *, setter_id: int, chats: frozenset[str] | None
) -> str | None:
    """Return an avatar in its stored form, and let the members read its picture.

    An empty avatar becomes None. `chats` are those of the setter's credential, None for all. Must
    run inside a transaction. Raises InvalidAvatar.
    """
    if not avatar:
        return None
    if _COLOUR.fullmatch(avatar) or is_emoji(avatar):
        return avatar
    picture = _PICTURE.fullmatch(avatar)
    if picture is None:
        raise InvalidAvatar("An avatar must be one emoji, a colour as #rrggbb, or content:<id>.")
    try:
        taker = ContentOwner(user_id=setter_id, chats=chats)
        content = origin_rights.takeable(picture[1], taker=taker, chat_id=chat_id)
    except ContentNotFound:
        raise InvalidAvatar("There is no such picture, or you may not use it here.") from None
    if content.mime_type not in PICTURES:
        raise InvalidAvatar("The picture of a chat must be a PNG, JPEG, WebP or GIF file.")
    origin_rights.take(chat_id, [str(content.pk)], taken_by=setter_id)
    return f"content:{content.pk}"


def avatar_url(avatar: str | None) -> str | None:
    """Return the address of an avatar's picture; None if it is not a picture."""
    picture = _PICTURE.fullmatch(avatar or "")
    return None if picture is None else addresses.content_url(picture[1])


def picture_of(chat_id: str) -> str | None:
    """Return the id of the content that is the picture of a chat; None if there is none."""
    avatar = Chat.objects.filter(pk=chat_id).values_list("avatar", flat=True).first()
    picture = _PICTURE.fullmatch(avatar or "")
    return None if picture is None else picture[1]
