"""Payment tokens of people who were deactivated or erased."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from payments_app import services
from payments_app.models import Account, Hold, PaymentToken
from sessions_app.data_rights.erasure import erase_person
from tests import factories
from tests.payments_app.rest.rest_caller import Caller
from tests.payments_app.tokens.issued_tokens import delegate, issue, rich, wallet

if TYPE_CHECKING:
    from django.contrib.auth.models import User

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture
def ada() -> User:
    """Return a person with ten dollars."""
    return rich("ada")


@pytest.fixture
def smith() -> Caller:
    """Return the owner of an agent who is paid with tokens."""
    person = factories.user("smith")
    factories.agent("worker", owner=person)
    return Caller(person)


def refuses(smith: Caller, token: str) -> bool:
    """Return whether every use of a token is refused, and reserves nothing."""
    before = Hold.objects.count()
    uses = {
        "lock": {"token": token, "amount": "0.1"},
        "settle": {"token": token, "amount": "0.1"},
        "delegate": {"parentToken": token, "amount": "0.1", "delegateTo": "worker"},
    }
    codes = {smith.refused("POST", path, body)["code"] for path, body in uses.items()}
    answer = smith.post("verify", {"token": token})
    unchanged = Hold.objects.count() == before
    return codes == {"payment_token_invalid"} and not answer["valid"] and unchanged


@pytest.mark.parametrize("form", ["opaque", "jwt"])
def test_a_deactivated_person_pays_only_what_is_held(ada: User, smith: Caller, form: str) -> None:
    token = issue(ada, "1", form=form)
    child = delegate(token, to="worker", amount="0.5")
    lock = smith.post("lock", {"token": token.token, "amount": "0.2"})["lockId"]

    ada.is_active = False
    ada.save()

    assert refuses(smith, token.token)
    assert refuses(smith, child.token)
    smith.refused("PATCH", f"lock/{lock}", {"amount": "0.1"})
    assert smith.post("settle", {"lockId": lock, "amount": "0.2"})["charged"] == "0.2"
    ada.is_active = True
    ada.save()
    assert smith.post("settle", {"token": child.token, "amount": "0.1"})["charged"] == "0.1"


def test_the_tokens_of_an_erased_person_end_and_return_what_they_have(
    ada: User, smith: Caller
) -> None:
    token = issue(ada, "1")
    child = delegate(token, to="worker", amount="0.5")
    other = issue(ada, "2")
    lock = smith.post("lock", {"token": other.token, "amount": "0.5"})["lockId"]
    factories.user("eve")
    bobs = issue(rich("bob"), "1")

    erase_person(ada, by=None, reason="asked for it")

    assert all(refuses(smith, issued_token.token) for issued_token in (token, child, other))
    mine = PaymentToken.objects.filter(owner=ada)
    assert (mine.count(), mine.filter(revoked_at__isnull=True).count()) == (3, 0)
    assert wallet(ada) == "9.5"
    assert smith.post("settle", {"lockId": lock, "amount": "0.1", "release": True})["success"]
    services.expire_and_audit()
    assert wallet(ada) == "9.9"
    assert not Account.objects.filter(kind="token", owner=ada).exclude(posted=0).exists()
    assert smith.post("settle", {"token": bobs.token, "amount": "0.1"})["charged"] == "0.1"
    assert services.audit().clean
