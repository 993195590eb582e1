"""In which chats the others are sent that a person comes and goes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from chat_app.members.chat_lists import chats_with_presence
from chat_app.models import Participant
from tests import factories

if TYPE_CHECKING:
    from pytest_django import Settings

pytestmark = pytest.mark.django_db


def test_presence_is_for_chats_that_are_not_too_large(settings: Settings) -> None:
    settings.UAMP_PRESENCE_MEMBERS = 2
    ada, ben, cy = (factories.user(name) for name in ("ada", "ben", "cy"))
    small = factories.chat(ada, ben, factories.agent())
    large = factories.chat(ada, ben, cy)
    factories.chat(ada, kind="session")
    assert chats_with_presence(ada.pk) == [small.pk]

    Participant.objects.filter(chat=large, user=cy).update(left_at="2026-01-01T00:00:00Z")
    assert set(chats_with_presence(ada.pk)) == {small.pk, large.pk}
