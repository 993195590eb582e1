"""People's profiles and their settings for the pages, and the name of the server."""

from __future__ import annotations

from typing import ClassVar, Final

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

SITE_NAME_CHARS: Final = 60


class Theme(models.TextChoices):
    """The colours of the pages."""

    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


class Density(models.TextChoices):
    """The space that the pages leave between rows."""

    COMFORTABLE = "comfortable"
    COMPACT = "compact"


class SendKey(models.TextChoices):
    """The key that sends a message."""

    ENTER = "enter", "Enter"
    CTRL_ENTER = "ctrl_enter", "Ctrl+Enter"


class NotificationLevel(models.TextChoices):
    """The messages that notify a person."""

    ALL = "all", "all messages"
    MENTIONS = "mentions", "mentions and direct messages"
    NONE = "none"


class PersonSettings(models.Model):
    """One person's settings for the pages. Without a row, the defaults apply."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="person_settings"
    )
    theme = models.CharField(max_length=10, choices=Theme, default=Theme.SYSTEM)
    density = models.CharField(max_length=12, choices=Density, default=Density.COMFORTABLE)
    # Whether others see how far the person has read.
    read_receipts = models.BooleanField(default=True)
    typing_notices = models.BooleanField(default=True)
    notifications = models.CharField(
        max_length=10, choices=NotificationLevel, default=NotificationLevel.MENTIONS
    )
    # Whether a notification shows the text of the message, and plays a sound.
    notification_text = models.BooleanField(default=True)
    notification_sound = models.BooleanField(default=True)
    # Quiet hours as HH:MM in `time_zone` (a name such as Europe/Berlin, which the browser
    # resolves); empty for none. They may span midnight.
    quiet_from = models.CharField(max_length=5, blank=True, default="")
    quiet_until = models.CharField(max_length=5, blank=True, default="")
    time_zone = models.CharField(max_length=64, blank=True, default="")
    # Whether mentions and direct messages that stay unread are mailed.
    mail_unread = models.BooleanField(default=True, db_default=True)
    send_key = models.CharField(max_length=12, choices=SendKey, default=SendKey.ENTER)
    # Whether the page follows a growing answer; otherwise the question stays in view.
    follow_answers = models.BooleanField(default=True, db_default=True)
    # A code of settings.LANGUAGES; empty to follow the browser.
    language = models.CharField(max_length=8, blank=True, default="", db_default="")
    updated_at = models.DateTimeField(default=timezone.now)

    class Meta:
        """Quiet hours need a start and an end."""

        constraints: ClassVar = [
            models.CheckConstraint(
                condition=Q(quiet_from="", quiet_until="")
                | (~Q(quiet_from="") & ~Q(quiet_until="") & ~Q(time_zone="")),
                name="quiet_hours_have_both_ends",
            )
        ]
        verbose_name_plural = "personal settings"

    def __str__(self) -> str:
        return f"settings of {self.user}"


class Profile(models.Model):
    """A person's profile beyond their username. Without a row it is empty."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.CASCADE, primary_key=True, related_name="profile"
    )
    display_name = models.CharField(max_length=160, blank=True, default="")
    # The form in which display names are compared (`chat_app.people.names`); None without a name.
    name_key = models.CharField(max_length=320, null=True, blank=True, unique=True)
    status_text = models.CharField(max_length=400, blank=True, default="")
    avatar_emoji = models.CharField(max_length=32, blank=True, default="")
    # As #rrggbb; empty for the colour derived from the name.
    avatar_colour = models.CharField(max_length=7, blank=True, default="")
    # The beginning of the picture's SHA-256, which is part of its address; empty without a picture.
    picture_version = models.CharField(max_length=16, blank=True, default="")
    updated_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return self.display_name or f"profile of {self.user}"


class ProfilePicture(models.Model):
    """A person's picture: a square of a few kilobytes that the server re-encoded."""

    profile = models.OneToOneField(
        Profile, models.CASCADE, primary_key=True, related_name="picture"
    )
    data = models.BinaryField()
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return f"picture of {self.profile_id}"


class Site(models.Model):
    """The name that the operator gave this server, in at most one row."""

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    name = models.CharField(max_length=SITE_NAME_CHARS)

    class Meta:
        """One row."""

        verbose_name_plural = "site"
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(id=1), name="site_is_one_row"),
        ]

    def __str__(self) -> str:
        return self.name
