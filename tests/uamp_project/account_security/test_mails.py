"""Email addresses and forgotten passwords: links work once, and reveal no accounts."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.test import Client

from audit_app.models import AuditRecord
from sessions_app.models import ApiKey
from tests import factories
from tests.uamp_project.account_security.people import add_app, confirm, is_signed_in, sign_in

if TYPE_CHECKING:
    from django.contrib.auth.models import User
    from pytest_django import Settings

pytestmark = pytest.mark.django_db

FORGOTTEN = "/password/forgotten"
NEW = "correct horse battery"


@pytest.fixture(autouse=True)
def mails(settings: Settings) -> list[Any]:
    """Send mails, into a list."""
    settings.UAMP_MAIL = "file"
    settings.UAMP_ISSUER = "https://chat.example.org"
    return mail.outbox


def mails_sent(count: int) -> list[Any]:
    """Wait for the threads that send, and return the mails."""
    deadline = time.monotonic() + 30
    while len(mail.outbox) < count:
        assert time.monotonic() < deadline, [message.subject for message in mail.outbox]
        time.sleep(0.01)
    assert len(mail.outbox) == count
    return mail.outbox


def link_of(message: Any) -> str:
    """Return the path of the link in a mail."""
    match = re.search(r"https://chat\.example\.org(/\S+)", message.body)
    assert match is not None, message.body
    return match[1]


def person(name: str = "ada", **fields: Any) -> User:
    """Return a person with a confirmed address."""
    user = factories.user(name, email=f"{name}@example.org", **fields)
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)
    return user


def ask(email: str, client: Client | None = None) -> Any:
    return (client or Client()).post(FORGOTTEN, {"email": email})


def open_link(client: Client, path: str) -> str:
    """Open the link of a forgotten password, and return the path of its form."""
    answer = client.get(path)
    return str(answer["Location"]) if answer.status_code == 302 else ""


def test_a_forgotten_password_is_replaced_by_a_link_that_counts_once() -> None:
    ada = person()
    add_app(ada)
    ApiKey.objects.create(user=ada, prefix="uak_x", sha256="0" * 64)
    elsewhere = Client()
    elsewhere.force_login(ada)
    assert ask("ADA@example.org")["Location"] == f"{FORGOTTEN}/sent"
    (message,) = mails_sent(1)
    assert message.to == ["ada@example.org"]
    assert message.subject == "[UAMP] Choose a new password"
    link, client = link_of(message), Client()
    form = open_link(client, link)
    assert "set-password" in form
    answer = client.post(form, {"password1": NEW, "password2": NEW})
    assert answer["Location"] == "/login"
    ada.refresh_from_db()
    assert ada.check_password(NEW)
    # The link does not sign the person in. Other sessions and keys have ended.
    assert not is_signed_in(client)
    assert not is_signed_in(elsewhere)
    assert not ApiKey.objects.filter(revoked_at__isnull=True).exists()
    assert AuditRecord.objects.latest("pk").action == "password.reset"
    assert mails_sent(2)[1].subject == "[UAMP] Your account was changed"
    # Used, also in the session that has it still.
    assert open_link(Client(), link) == ""
    again = client.post(form, {"password1": "another long one", "password2": "another long one"})
    assert "no longer valid" in again.content.decode()
    ada.refresh_from_db()
    assert ada.check_password(NEW)


def test_the_page_does_not_reveal_which_addresses_have_accounts() -> None:
    person()
    person("gone", is_active=False)
    provider = person("bea")
    provider.set_unusable_password()
    provider.save()
    addresses = ("ada@example.org", "gone@example.org", "bea@example.org", "no@example.org")
    answers = [ask(address) for address in addresses]
    assert {(answer.status_code, answer["Location"]) for answer in answers} == {
        (302, f"{FORGOTTEN}/sent")
    }
    assert [message.to for message in mails_sent(1)] == [["ada@example.org"]]


@pytest.mark.parametrize("is_unconfirmed", [True, False])
def test_an_address_that_its_person_did_not_confirm_gets_no_link(
    is_unconfirmed: bool,  # noqa: FBT001 a case
) -> None:
    ada = factories.user("ada", email="mallory@example.org")
    if is_unconfirmed:
        EmailAddress.objects.create(user=ada, email=ada.email, verified=False, primary=True)
    assert ask(ada.email)["Location"] == f"{FORGOTTEN}/sent"
    person("bea")
    ask("bea@example.org")
    assert [message.to for message in mails_sent(1)] == [["bea@example.org"]]


@pytest.mark.parametrize("change", ["address", "password", "sign-in", "time"])
def test_a_link_ends_with_what_it_was_sent_for(
    change: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    ada = person()
    ask(ada.email)
    link = link_of(mails_sent(1)[0])
    if change == "address":
        EmailAddress.objects.filter(user=ada).update(email="new@example.org")
        ada.email = "new@example.org"
        ada.save()
    elif change == "password":
        ada.set_password(NEW)
        ada.save()
    elif change == "sign-in":
        sign_in(ada)
    else:
        settings.PASSWORD_RESET_TIMEOUT = -1
    assert open_link(Client(), link) == ""


@pytest.mark.parametrize(
    "path",
    ["x-y", "zzzzzzzzzzzzz-abc", "1-set-password", "0-" + "a" * 120, "1-" + "a" * 121, "1-%00"],
)
def test_a_link_that_was_never_sent_opens_nothing(path: str) -> None:
    answer = Client().get(f"/password/new/{path}")
    assert answer.status_code in {200, 404}
    assert "password1" not in answer.content.decode()


@pytest.mark.parametrize("email", ["", "x", "a\0@example.org", "a@" + "x" * 1_000_000 + ".org"])
def test_an_invalid_address_is_refused(email: str) -> None:
    answer = ask(email)
    assert answer.status_code == 200
    assert b"aria-invalid" in answer.content
    client = sign_in(factories.user("ada"))
    confirm(client)
    form = {"email": email, "action_add": "1"}
    assert client.post("/account/address", form).status_code == 200
    assert not EmailAddress.objects.exists()


@pytest.mark.parametrize("limited", ["requester", "recipient"])
def test_mails_have_a_limit_per_requester_and_per_recipient(
    settings: Settings, limited: str
) -> None:
    settings.UAMP_MAILS_PER_DAY = 2
    for number in range(3):
        email = "ada@example.org" if limited == "recipient" else f"p{number}@example.org"
        client = Client(REMOTE_ADDR="10.0.0.1" if limited == "requester" else f"10.0.0.{number}")
        answer = ask(email, client)
        assert answer.status_code == (429 if number == 2 else 302)
    assert answer["Retry-After"]


def test_no_requester_uses_up_the_mails_of_another_person(settings: Settings) -> None:
    settings.UAMP_MAILS_TO_ONE_PER_DAY = 3
    ada = person()
    stranger = Client(REMOTE_ADDR="10.0.0.1")
    statuses = [ask(ada.email, stranger).status_code for _ in range(30)]
    assert statuses == [302] * 3 + [429] * 27
    # Nor does an account that enters the address as its own.
    signed_in = sign_in(factories.user("mallory"))
    confirm(signed_in)
    statuses = []
    for number in range(5):
        for email in (f"m{number}@example.org", ada.email):
            form = {"email": email, "action_add": "1"}
            statuses.append(signed_in.post("/account/address", form).status_code)
    assert statuses == [302] * 7 + [429, 302, 429]
    assert ask(ada.email, Client(REMOTE_ADDR="10.0.0.2")).status_code == 302
    assert [message.to for message in mails_sent(12)].count([ada.email]) == 7


def test_others_do_not_use_up_the_mails_of_a_known_browser(settings: Settings) -> None:
    settings.UAMP_MAILS_PER_DAY = settings.UAMP_MAILS_TO_ONE_PER_DAY = 2
    ada, address = person(), "10.0.0.1"
    known_browser = sign_in(ada, Client(REMOTE_ADDR=address))
    known_browser.post("/logout")
    for number in range(2):
        # From many addresses, and from the one that the person has, too.
        assert ask(ada.email, Client(REMOTE_ADDR=f"10.0.1.{number}")).status_code == 302
        assert ask(f"p{number}@example.org", Client(REMOTE_ADDR=address)).status_code == 302
    assert ask(ada.email, Client(REMOTE_ADDR="10.0.2.1")).status_code == 429
    assert [ask(ada.email, known_browser).status_code for _ in range(3)] == [302, 302, 429]
    # The browser is known to this account alone.
    assert ask("bea@example.org", known_browser).status_code == 429


def test_a_host_of_the_sender_is_in_no_link() -> None:
    person()
    Client().post(FORGOTTEN, {"email": "ada@example.org"}, headers={"Host": "127.0.0.1"})
    assert "https://chat.example.org/password/new/" in mails_sent(1)[0].body


def test_an_address_is_used_when_it_is_confirmed() -> None:
    ada = factories.user("ada")
    client = sign_in(ada)
    form = {"email": "ada@example.org", "action_add": "1"}
    assert client.post("/account/address", form)["Location"].startswith("/account/security/confirm")
    confirm(client)
    client.post("/account/address", form)
    link = link_of(mails_sent(1)[0])
    ada.refresh_from_db()
    assert ada.email == ""
    # Opening the link, as mail scanners do, confirms nothing.
    assert b"will become the address" in Client().get(link).content
    assert not EmailAddress.objects.filter(verified=True).exists()
    Client().post(link)
    ada.refresh_from_db()
    assert ada.email == "ada@example.org"
    assert AuditRecord.objects.get().action == "email.confirmed"
    assert b"no longer valid" in Client().get(link).content


def test_a_link_of_an_address_that_was_replaced_confirms_nothing() -> None:
    ada = person()
    client = sign_in(ada)
    confirm(client)
    for number in (1, 2):
        client.post("/account/address", {"email": f"new{number}@example.org", "action_add": "1"})
    first, second = (link_of(message) for message in mails_sent(2))
    assert b"no longer valid" in Client().get(first).content
    assert Client().post(first).status_code == 404
    ada.refresh_from_db()
    assert ada.email == "ada@example.org"
    Client().post(second)
    ada.refresh_from_db()
    assert ada.email == "new2@example.org"
    assert [row.email for row in EmailAddress.objects.all()] == ["new2@example.org"]
    # The former address gets a notice.
    assert mails_sent(3)[2].to == ["ada@example.org"]


def test_an_address_of_another_account_is_not_confirmed() -> None:
    person("bea")
    ada = factories.user("ada")
    client = sign_in(ada)
    confirm(client)
    # The page does not reveal whose it is: its owner gets the mail.
    answer = client.post("/account/address", {"email": "bea@example.org", "action_add": "1"})
    assert answer.status_code == 302
    assert Client().post(link_of(mails_sent(1)[0]))["Location"] == "/login"
    ada.refresh_from_db()
    assert ada.email == ""


def test_without_mails_the_pages_do_not_exist(settings: Settings) -> None:
    settings.UAMP_MAIL = "off"
    assert Client().get(FORGOTTEN).status_code == 404
    assert FORGOTTEN not in Client().get("/login").content.decode()


def test_a_mail_is_in_the_language_of_its_reader() -> None:
    person()
    Client(headers={"Accept": "text/html", "Accept-Language": "de"}).post(
        FORGOTTEN, {"email": "ada@example.org"}
    )
    assert mails_sent(1)[0].subject == "[UAMP] Neues Passwort wählen"
