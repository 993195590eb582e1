"""The names of accounts that a subject's first token or sign-in creates."""

from __future__ import annotations

import unicodedata

import pytest

from sessions_app.bearer_tokens.people import make_person
from tests import factories

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _names() -> None:
    """Let people and agents have names."""
    factories.user("Ada")
    factories.agent("echo")
    factories.agent("Helper", is_public=False, owner=factories.user("owner"))
    factories.agent("retired", is_enabled=False)


@pytest.mark.parametrize(
    "name",
    [
        "ada", "ADA", "\uff21\uff24\uff21",
        "echo", "Echo", "e-cho", "\uff45\uff43\uff48\uff4f", "echo.",
        "Helper", "helper", "retired",
        "all", "Everyone", "here", "h.e.r.e",
    ],
)  # fmt: skip
def test_no_account_is_made_with_a_name_that_means_someone_else(name: str) -> None:
    user = make_person("https://id.example", "1", {"name": name}, name_claim="name")

    assert user.username.startswith(f"{unicodedata.normalize('NFKC', name)}-")
    again = make_person("https://id.example", "1", {"name": name}, name_claim="name")
    assert again == user


@pytest.mark.parametrize("name", ["grace", "echo2", "adam", "Helpers", "allan"])
def test_a_free_name_is_the_accounts(name: str) -> None:
    user = make_person("https://id.example", "1", {"name": name}, name_claim="name")

    assert user.username == name


def test_a_name_that_mixes_scripts_is_not_the_accounts() -> None:
    name = "gr\N{CYRILLIC SMALL LETTER A}ce"
    user = make_person("https://id.example", "1", {"name": name}, name_claim="name")

    assert user.username.startswith("person-")
