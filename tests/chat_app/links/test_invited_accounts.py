"""Visitors who create an account on the page of an invite link."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.links.invite_links import create_invite_link
from chat_app.models import InviteLink, Participant
from tests import factories

if TYPE_CHECKING:
    from pytest_django import Settings

    from chat_app.models import Chat

pytestmark = pytest.mark.django_db
ACCOUNT = {"username": "newton", "password": "falling apple 1687"}


@pytest.fixture
def ada() -> User:
    return factories.user("ada")


@pytest.fixture
def chat(ada: User) -> Chat:
    return factories.chat(ada, title="Plans")


@pytest.fixture
def path(chat: Chat, ada: User) -> str:
    _, secret = create_invite_link(chat_id=chat.pk, made_by=ada, most_uses=1)
    return f"/join/{secret}"


def names() -> set[str]:
    return set(User.objects.values_list("username", flat=True))


def test_the_page_says_who_invites_to_what(path: str) -> None:
    page = Client().get(path)
    text = page.content.decode()
    assert page.status_code == 200
    assert "ada invites you" in text
    assert "<bdi>ada</bdi> invites you" in text
    assert ">Plans</h2>" in text
    assert "1 member" in text
    assert f'/login?next={path}"' in text
    assert page["X-Robots-Tag"].startswith("noindex")


def test_a_visitor_makes_an_account_and_is_in_the_chat(path: str, chat: Chat) -> None:
    client = Client()
    answer = client.post(path, ACCOUNT)
    assert (answer.status_code, answer["Location"]) == (302, f"/chats/{chat.pk}")
    user = User.objects.get(username="newton")
    assert user.check_password(ACCOUNT["password"])
    assert not user.is_staff
    assert not user.is_superuser
    member = Participant.objects.get(chat=chat, user=user)
    assert (member.role, member.left_at) == ("member", None)
    assert client.get("/api/v1/me").json()["username"] == "newton"
    entry = AuditRecord.objects.get(action="person.made")
    assert entry.detail == f"by an invite link of {chat.pk}"


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"username": "ADA"}, "This name is taken"),
        ({"username": "everyone"}, "This name is taken"),
        ({"username": "robot"}, "This name is taken"),
        ({"username": "\N{CYRILLIC SMALL LETTER A}da"}, "one script only"),
        ({"username": "two words"}, "Enter a valid username"),
        ({"username": ""}, "This field is required"),
        ({"password": "short"}, "too short"),
        ({"password": "password"}, "too common"),
        ({"password": ""}, "This field is required"),
    ],
)
def test_what_makes_no_account_says_why_and_changes_nothing(
    path: str, chat: Chat, change: dict[str, str], reason: str
) -> None:
    factories.agent("robot")
    page = Client().post(path, {**ACCOUNT, **change})
    assert page.status_code == 400
    assert reason in page.content.decode()
    assert "newton" not in names()
    assert Participant.objects.filter(chat=chat).count() == 1


def test_a_link_that_ended_or_is_used_up_makes_no_account(path: str) -> None:
    assert Client().post(path, {**ACCOUNT, "username": "first"}).status_code == 302
    page = Client().post(path, ACCOUNT)
    assert page.status_code == 409
    assert "No more people can join with this link" in page.content.decode()
    InviteLink.objects.update(expires_at=timezone.now(), most_uses=None)
    assert Client().post(path, ACCOUNT).status_code == 404
    assert Client().post("/join/inv_wrong", ACCOUNT).status_code == 404
    assert "newton" not in names()


def test_accounts_of_an_address_are_limited(path: str, settings: Settings) -> None:
    settings.UAMP_SIGN_INS_PER_MINUTE = 1
    weak = {**ACCOUNT, "password": "short"}
    assert Client().post(path, weak).status_code == 400
    refused = Client().post(path, ACCOUNT)
    assert refused.status_code == 429
    assert int(refused["Retry-After"]) > 0
    assert "newton" not in names()


def test_a_page_of_another_site_makes_no_account(path: str) -> None:
    assert Client(enforce_csrf_checks=True).post(path, ACCOUNT).status_code == 403
    assert "newton" not in names()


@pytest.mark.parametrize(
    ("name", "value"),
    [("UAMP_INVITED_ACCOUNTS", False), ("UAMP_OIDC_ISSUER", "https://id.example.org")],
)
def test_an_operator_lets_visitors_only_sign_in(
    path: str, settings: Settings, name: str, value: object
) -> None:
    setattr(settings, name, value)
    for answer in (Client().get(path), Client().post(path, ACCOUNT)):
        assert (answer.status_code, answer["Location"]) == (302, f"/login?next={path}")
    assert "newton" not in names()
