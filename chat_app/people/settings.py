"""People's settings for the pages: one row per person, shared by all of their devices."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import available_timezones

import msgspec
from django.conf import settings
from django.db import transaction
from django.utils import timezone

from chat_app.models import PersonSettings
from chat_app.people.notices import notify_person

if TYPE_CHECKING:
    from collections.abc import Collection

FIELDS: Final = (
    "theme",
    "density",
    "read_receipts",
    "typing_notices",
    "notifications",
    "notification_text",
    "notification_sound",
    "quiet_from",
    "quiet_until",
    "time_zone",
    "mail_unread",
    "send_key",
    "follow_answers",
    "language",
)
_TIME: Final = re.compile(r"(?:[01][0-9]|2[0-3]):[0-5][0-9]")
_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+\-]{0,30}(?:/[A-Za-z0-9_+\-]{1,30}){0,2}")


class InvalidSettings(ValueError):
    """A setting is invalid; `field` names it, the message is for the person."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


class SettingsChange(msgspec.Struct, frozen=True, kw_only=True):
    """Settings to change; None keeps the current value."""

    theme: str | None = None
    density: str | None = None
    read_receipts: bool | None = None
    typing_notices: bool | None = None
    notifications: str | None = None
    notification_text: bool | None = None
    notification_sound: bool | None = None
    quiet_from: str | None = None
    quiet_until: str | None = None
    time_zone: str | None = None
    mail_unread: bool | None = None
    send_key: str | None = None
    follow_answers: bool | None = None
    language: str | None = None


def settings_of(user_id: int) -> PersonSettings:
    """Return a person's settings; the defaults if they never changed any."""
    row = PersonSettings.objects.filter(pk=user_id).first()
    return row or PersonSettings(user_id=user_id)


def settings_of_people(user_ids: Collection[int]) -> dict[int, PersonSettings]:
    """Return the settings of several people, as `settings_of` does."""
    rows = {row.user_id: row for row in PersonSettings.objects.filter(pk__in=user_ids)}
    return {pk: rows.get(pk) or PersonSettings(user_id=pk) for pk in user_ids}


def update_settings(*, user_id: int, change: SettingsChange) -> PersonSettings:
    """Change the named settings; the last writer of each wins.

    Raises InvalidSettings without changing anything.
    """
    PersonSettings.objects.get_or_create(user_id=user_id)
    with transaction.atomic():
        row = PersonSettings.objects.select_for_update(no_key=True).get(pk=user_id)
        for name in FIELDS:
            if (value := getattr(change, name)) is not None:
                setattr(row, name, value)
        _check_quiet_hours(row)
        if row.language and row.language not in dict(settings.LANGUAGES):
            raise InvalidSettings("language", "This server has no pages in that language.")
        row.updated_at = timezone.now()
        row.save()
        notify_person(user_id, "settings")
    return row


def language_of(user_id: int) -> str:
    """Return the code of the language that a person chose for the pages; empty for none."""
    chosen = PersonSettings.objects.filter(pk=user_id).values_list("language", flat=True).first()
    return chosen or ""


def settings_data(row: PersonSettings) -> dict[str, Any]:
    """Return settings for REST."""
    return {name: getattr(row, name) for name in FIELDS}


def shows_receipts(user_id: int) -> bool:
    """Return whether others see how far a person has read."""
    return not PersonSettings.objects.filter(pk=user_id, read_receipts=False).exists()


def _check_quiet_hours(row: PersonSettings) -> None:
    for name in ("quiet_from", "quiet_until"):
        value = getattr(row, name)
        if value and not _TIME.fullmatch(value):
            raise InvalidSettings(name, "Enter a time such as 22:30.")
    # A machine without a time zone database knows no zones: there only the form is checked.
    zones = available_timezones()
    if row.time_zone and not (row.time_zone in zones if zones else _ZONE.fullmatch(row.time_zone)):
        raise InvalidSettings("time_zone", "Enter a time zone such as Europe/Berlin.")
    if bool(row.quiet_from) != bool(row.quiet_until):
        raise InvalidSettings("quiet_until", "Quiet hours need a start and an end.")
    if row.quiet_from and row.quiet_from == row.quiet_until:
        raise InvalidSettings("quiet_until", "Quiet hours must start and end at different times.")
    if row.quiet_from and not row.time_zone:
        raise InvalidSettings("time_zone", "Quiet hours need a time zone.")
