"""A message mentions members in every script, whichever form their names are written in."""

from __future__ import annotations

import pytest

from chat_app.members.mentions import mentioned_people
from tests import factories

pytestmark = pytest.mark.django_db

NAMES = ("ada", "Bob", "小明", "小明华", "지민", "Straße", "José")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("请@bob看一下", ["Bob"]),
        ("오늘@bob", ["Bob"]),
        ("\uff20bob", ["Bob"]),
        ("\uff20\uff22\uff2f\uff22!", ["Bob"]),
        ("@小明你好", ["小明"]),
        ("@小明华你好", ["小明华"]),
        ("@지민에게", ["지민"]),
        ("@strasse, @JOSE\u0301", ["Straße", "José"]),
        ("@ada", []),
        ("bob@example.org, `@bob`", []),
        ("hello", []),
    ],
)
def test_members_are_mentioned(text: str, names: list[str]) -> None:
    people = {name: factories.user(name) for name in NAMES}
    chat = factories.chat(*people.values())
    user_ids = mentioned_people(chat.pk, text, author=people["ada"].pk)
    assert user_ids == tuple(sorted(people[name].pk for name in names))
