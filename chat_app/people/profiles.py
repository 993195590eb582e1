"""Profiles: the display name, status and avatar that people choose for themselves.

Functions open their own transaction.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone

from agents_app import selectors as agents
from chat_app.emoji import is_emoji
from chat_app.models import Profile, ProfilePicture
from chat_app.people.names import InvalidName, clean_name, clean_status, is_name_elsewhere, key_of
from chat_app.people.pictures import square_of

_COLOUR: Final = re.compile(r"#[0-9a-f]{6}")


class InvalidProfile(ValueError):
    """A field of a profile is invalid; `field` names it, the message is for the person."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class ProfileChange(msgspec.Struct, frozen=True, kw_only=True):
    """Fields of a profile to change; None leaves a field as it is, an empty string clears it."""

    display_name: str | None = None
    status_text: str | None = None
    avatar_emoji: str | None = None
    avatar_colour: str | None = None


def update_profile(*, user: User, change: ProfileChange) -> Profile:
    """Change a person's profile. Raises InvalidProfile without changing anything."""
    values = _checked(change, user)
    try:
        with transaction.atomic():
            profile = _locked(user.pk)
            for name, value in values.items():
                setattr(profile, name, value)
            profile.updated_at = timezone.now()
            profile.save(update_fields=[*values, "updated_at"])
    except IntegrityError:
        # Another person took the name after the check.
        raise _name_taken() from None
    return profile


def set_picture(*, user_id: int, data: bytes) -> Profile:
    """Make an uploaded file the picture of a person. Raises InvalidPicture."""
    # Outside the transaction: SQLite allows one writer at a time, and decoding is slow.
    square = square_of(data)
    with transaction.atomic():
        profile = _locked(user_id)
        ProfilePicture.objects.update_or_create(
            profile=profile, defaults={"data": square.data, "created_at": timezone.now()}
        )
        return _with_version(profile, square.version)


@transaction.atomic
def remove_picture(*, user_id: int) -> Profile:
    """Remove the picture of a person, if they have one."""
    profile = _locked(user_id)
    ProfilePicture.objects.filter(profile=profile).delete()
    return _with_version(profile, "")


@transaction.atomic
def clear_profile(*, user_id: int) -> None:
    """Delete a person's profile on behalf of an operator."""
    Profile.objects.filter(pk=user_id).delete()


def picture_of(user_id: int, version: str) -> bytes | None:
    """Return the picture of a person; None if they have none of this version."""
    row = ProfilePicture.objects.filter(
        profile_id=user_id, profile__picture_version=version, profile__user__is_active=True
    ).first()
    return None if row is None else bytes(row.data)


def profile_data(user: User) -> dict[str, Any]:
    """Return a person's public profile for REST; needs `profile` selected."""
    profile = getattr(user, "profile", None) or Profile(user=user)
    version = profile.picture_version
    return {
        "display_name": profile.display_name,
        "status_text": profile.status_text,
        "avatar_emoji": profile.avatar_emoji,
        "avatar_colour": profile.avatar_colour,
        "avatar_url": picture_url(user.pk, version) if version else None,
    }


def picture_url(user_id: int, version: str) -> str:
    """Return the address of a picture, which differs for each version."""
    return reverse("chat_app:picture", args=[user_id, version])


def people_named(prefix: str) -> Q:
    """Return the condition that a person's username or display name starts with a prefix."""
    condition = Q(username__istartswith=prefix)
    if key := key_of(prefix):
        condition |= Q(profile__name_key__startswith=key)
    return condition


def _locked(user_id: int) -> Profile:
    """Return a person's profile, locked; needs a transaction."""
    Profile.objects.get_or_create(user_id=user_id)
    return Profile.objects.select_for_update(no_key=True).get(pk=user_id)


def _with_version(profile: Profile, version: str) -> Profile:
    profile.picture_version, profile.updated_at = version, timezone.now()
    profile.save(update_fields=["picture_version", "updated_at"])
    return profile


def _checked(change: ProfileChange, user: User) -> dict[str, Any]:
    values: dict[str, Any] = {}
    if change.display_name is not None:
        values["display_name"] = name = _clean("display_name", clean_name, change.display_name)
        values["name_key"] = key_of(name) or None
        if name and is_taken(name, user):
            raise _name_taken()
    if change.status_text is not None:
        values["status_text"] = _clean("status_text", clean_status, change.status_text)
    if (emoji := change.avatar_emoji) is not None:
        if emoji and not is_emoji(emoji):
            raise InvalidProfile("avatar_emoji", "Choose one emoji.")
        values["avatar_emoji"] = emoji
    if (colour := change.avatar_colour) is not None:
        if colour and not _COLOUR.fullmatch(colour):
            raise InvalidProfile("avatar_colour", "Enter a colour as #rrggbb.")
        values["avatar_colour"] = colour
    return values


def _clean(field: str, clean: Any, text: str) -> str:
    try:
        cleaned: str = clean(text)
    except InvalidName as error:
        raise InvalidProfile(field, str(error)) from None
    return cleaned


def is_taken(name: str, user: User) -> bool:
    """Return whether another person, or an agent that the person may use, has the name.

    The names of people of other servers are theirs, whether or not they are guests here. Agents
    that the person may not use are ignored: the answer would reveal that one exists.
    """
    if is_name_elsewhere(name):
        return True
    spellings = {name, key_of(name)}
    if any(agents.get_agent(spelling, viewer=user) is not None for spelling in spellings):
        return True
    usernames = Q(*(("username__iexact", spelling) for spelling in spellings), _connector=Q.OR)
    return (
        User.objects.filter(usernames).exclude(pk=user.pk).exists()
        or Profile.objects.filter(name_key=key_of(name)).exclude(pk=user.pk).exists()
    )


def _name_taken() -> InvalidProfile:
    return InvalidProfile("display_name", "Another person or an agent has this name.")
