"""Serializers of people in REST: profiles, and settings for the pages (docs/rest.md)."""

from __future__ import annotations

from typing import Any, Final

from rest_framework import serializers

from agents_app.rest.strict import StrictSerializer
from chat_app.models import Density, NotificationLevel, SendKey, Theme

# Code points; `chat_app.people.names` counts graphemes.
NAME_POINTS: Final = 160
STATUS_POINTS: Final = 400


class PersonSerializer(serializers.Serializer[Any]):
    """A person: their username and public profile."""

    id = serializers.CharField()
    username = serializers.CharField()
    display_name = serializers.CharField(help_text="Empty if the username is shown.")
    status_text = serializers.CharField()
    avatar_emoji = serializers.CharField(help_text="Empty to show the initials of the name.")
    avatar_colour = serializers.CharField(
        help_text="As #rrggbb; empty for one derived from the name."
    )
    avatar_url = serializers.CharField(allow_null=True, help_text="Of a picture.")


class MeSerializer(PersonSerializer):
    """The caller."""


class SettingsSerializer(serializers.Serializer[Any]):
    """The caller's settings for the pages."""

    theme = serializers.CharField(help_text="system, light or dark")
    density = serializers.CharField(help_text="comfortable or compact")
    read_receipts = serializers.BooleanField(
        help_text="Whether others see how far the person has read."
    )
    typing_notices = serializers.BooleanField(
        help_text="Whether others see that the person is typing."
    )
    notifications = serializers.CharField(help_text="all, mentions (and direct messages) or none")
    notification_text = serializers.BooleanField(help_text="Whether they show the text.")
    notification_sound = serializers.BooleanField()
    quiet_from = serializers.CharField(help_text="As HH:MM in `time_zone`; empty for none.")
    quiet_until = serializers.CharField()
    time_zone = serializers.CharField(help_text="A name such as Europe/Berlin.")
    mail_unread = serializers.BooleanField(
        help_text="Whether mentions and direct messages that stay unread are mailed."
    )
    send_key = serializers.CharField(help_text="enter or ctrl_enter")
    follow_answers = serializers.BooleanField(
        help_text="Whether the page follows a growing answer."
    )
    language = serializers.CharField(help_text="Of the pages; empty for the browser's.")


class ProfileChangeSerializer(StrictSerializer):
    """The body of PATCH /api/v1/me."""

    display_name = serializers.CharField(max_length=NAME_POINTS, required=False, allow_blank=True)
    status_text = serializers.CharField(max_length=STATUS_POINTS, required=False, allow_blank=True)
    avatar_emoji = serializers.CharField(max_length=32, required=False, allow_blank=True)
    avatar_colour = serializers.CharField(max_length=7, required=False, allow_blank=True)


class SettingsChangeSerializer(StrictSerializer):
    """The body of PATCH /api/v1/me/settings: the settings to change."""

    theme = serializers.ChoiceField(choices=Theme.choices, required=False)
    density = serializers.ChoiceField(choices=Density.choices, required=False)
    read_receipts = serializers.BooleanField(required=False)
    typing_notices = serializers.BooleanField(required=False)
    notifications = serializers.ChoiceField(choices=NotificationLevel.choices, required=False)
    notification_text = serializers.BooleanField(required=False)
    notification_sound = serializers.BooleanField(required=False)
    quiet_from = serializers.CharField(max_length=5, required=False, allow_blank=True)
    quiet_until = serializers.CharField(max_length=5, required=False, allow_blank=True)
    time_zone = serializers.CharField(max_length=64, required=False, allow_blank=True)
    mail_unread = serializers.BooleanField(required=False)
    send_key = serializers.ChoiceField(choices=SendKey.choices, required=False)
    follow_answers = serializers.BooleanField(required=False)
    language = serializers.CharField(max_length=8, required=False, allow_blank=True)
