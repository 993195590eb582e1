"""People sign in with an OpenID Connect provider, whose groups are roles."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from django.contrib.auth.models import Group, User

from audit_app.models import AuditRecord
from sessions_app.models import ExternalIdentity
from tests.http_server import serving
from tests.uamp_project.single_sign_on.openid_provider import (
    CLIENT_ID,
    CLIENT_SECRET,
    KEY,
    OTHER_KEY,
    OpenIdProvider,
)
from uamp_project.single_sign_on import provider

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pytest_django import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def idp(settings: Settings, demo: ServerAddress) -> Iterator[OpenIdProvider]:
    """Run a provider with which people may sign in."""
    with serving(OpenIdProvider()) as server:
        settings.UAMP_ISSUER = demo.http
        settings.UAMP_OIDC_ISSUER = server.origin
        settings.UAMP_OIDC_CLIENT_ID = CLIENT_ID
        settings.UAMP_OIDC_CLIENT_SECRET = CLIENT_SECRET
        settings.UAMP_OIDC_LABEL = "Sign in with Example"
        settings.UAMP_OIDC_GROUPS = {"chat-ops": "Operator", "chat-audit": "Auditor"}
        for name in ("Operator", "Auditor"):
            Group.objects.get_or_create(name=name)
        yield server
    provider.forget()


class SignIn:
    """A browser of its own that goes the way of signing in."""

    def __init__(self, demo: ServerAddress) -> None:
        self.web = httpx.Client(base_url=demo.http, timeout=60, trust_env=False)

    def back(self, path: str = "/login/oidc") -> str:
        """Go to the provider, and return the address with which it sends the browser back."""
        away = self.web.get(path)
        assert away.status_code == 302, away.text
        return self.web.get(away.headers["Location"]).headers["Location"]

    def finish(self, path: str = "/login/oidc") -> httpx.Response:
        """Go the whole way, and return the last answer."""
        return self.web.get(self.back(path))

    def who(self) -> str | None:
        """Return the name of the person who is signed in."""
        answer = self.web.get("/api/v1/me")
        return answer.json()["username"] if answer.status_code == 200 else None


@pytest.fixture
def another(idp: OpenIdProvider, demo: ServerAddress) -> Iterator[Callable[[], SignIn]]:
    """Give a function that opens browsers, which are closed at the end."""
    sign_ins: list[SignIn] = []

    def browser() -> SignIn:
        sign_ins.append(SignIn(demo))
        return sign_ins[-1]

    yield browser
    for other_browser in sign_ins:
        other_browser.web.close()


@pytest.fixture
def browser(another: Callable[[], SignIn]) -> SignIn:
    """Return a browser."""
    return another()


def test_a_person_signs_in_and_is_the_same_the_next_time(
    idp: OpenIdProvider,
    browser: SignIn,
    another: Callable[[], SignIn],
    demo: ServerAddress,
) -> None:
    page = browser.web.get("/login?next=/account").text
    assert "Sign in with Example" in page
    assert "/login/oidc?next=/account" in page
    before = dict(browser.web.cookies)
    answer = browser.finish("/login/oidc?next=/account")
    assert (answer.status_code, answer.headers["Location"]) == (302, "/account")
    assert browser.who() == "grace"
    assert dict(browser.web.cookies) != before
    (authorization_request,) = idp.asked
    assert authorization_request["code_challenge_method"] == "S256"
    assert len(authorization_request["nonce"]) >= 20
    assert authorization_request["redirect_uri"] == f"{demo.http}/login/oidc/callback"
    user = User.objects.get(username="grace")
    assert not user.has_usable_password()
    again = another()
    assert again.finish("/login/oidc?next=https://evil.example/").headers["Location"] == "/"
    assert again.who() == "grace"
    assert ExternalIdentity.objects.get().user == user
    User.objects.filter(pk=user.pk).update(is_active=False)
    refused = another()
    assert refused.finish().headers["Location"] == "/login"
    assert "no active account here" in refused.web.get("/login").text
    assert refused.who() is None


def test_groups_are_roles_from_sign_in_to_sign_in(
    idp: OpenIdProvider, browser: SignIn, another: Callable[[], SignIn]
) -> None:
    idp.claims["groups"] = ["chat-ops", "other"]
    browser.finish()
    user = User.objects.get(username="grace")
    own_group = Group.objects.create(name="an operator's own")
    user.groups.add(own_group)
    assert user.is_staff
    assert set(user.groups.values_list("name", flat=True)) == {"Operator", own_group.name}
    idp.claims["groups"] = ["chat-audit"]
    another().finish()
    assert set(user.groups.values_list("name", flat=True)) == {"Auditor", own_group.name}
    idp.claims["groups"] = "chat-ops"
    another().finish()
    assert not User.objects.get(pk=user.pk).is_staff
    assert set(user.groups.values_list("name", flat=True)) == {own_group.name}
    changes = AuditRecord.objects.filter(action="groups.changed").order_by("id")
    assert [row.detail.partition(": ")[2] for row in changes] == [
        "+Operator", "+Auditor -Operator", "-Auditor",
    ]  # fmt: skip
    assert {row.object_id for row in changes} == {str(user.pk)}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("what", "claims"),
    [
        ("another issuer", {"iss": "https://evil.example"}),
        ("another client", {"aud": "other"}),
        ("another nonce", {"nonce": "replayed"}),
        ("expired", {"exp": int(time.time()) - 3600}),
        ("no subject", {"sub": ""}),
        ("another key", {}),
    ],
)
def test_an_id_token_that_is_not_good_signs_no_person_in(
    idp: OpenIdProvider, browser: SignIn, what: str, claims: dict[str, Any]
) -> None:
    idp.claims |= claims
    idp.key = OTHER_KEY if what == "another key" else KEY
    answer = browser.finish()
    assert answer.headers["Location"] == "/login", what
    assert browser.who() is None
    assert User.objects.count() == 0


def test_a_code_is_good_in_its_own_browser_once(
    idp: OpenIdProvider, browser: SignIn, another: Callable[[], SignIn]
) -> None:
    back = browser.back()
    # Another browser, to which the address was sent, is not signed in by it.
    other = another()
    assert other.web.get(back).headers["Location"] == "/login"
    assert other.who() is None
    assert browser.web.get(back).headers["Location"] == "/"
    assert browser.web.get(back).headers["Location"] == "/login"
    for odd in ("", "?error=access_denied", "?state=x", "?code=x&state=x"):
        fresh = another()
        answer = fresh.web.get(f"/login/oidc/callback{odd}")
        assert answer.headers["Location"] == "/login", odd
        assert "Signing in didn&#x27;t work" in fresh.web.get("/login").text


def test_without_a_provider_its_paths_are_not_found(
    browser: SignIn, settings: Settings, idp: OpenIdProvider
) -> None:
    settings.UAMP_OIDC_CREATES_PEOPLE = False
    assert browser.finish().headers["Location"] == "/login"
    assert User.objects.count() == 0
    settings.UAMP_OIDC_ISSUER = "http://127.0.0.1:9"
    provider.forget()
    assert browser.web.get("/login/oidc").headers["Location"] == "/login"
    assert "can&#x27;t be reached" in browser.web.get("/login").text
    settings.UAMP_OIDC_ISSUER = ""
    for path in ("/login/oidc", "/login/oidc/callback"):
        assert browser.web.get(path).status_code == 404
    assert "login-provider" not in browser.web.get("/login").text
