"""Names that end with the host of a peer are for its people: no account here takes one."""

from __future__ import annotations

from io import StringIO
from typing import TYPE_CHECKING, Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command

from chat_app.people.profiles import InvalidProfile, ProfileChange, update_profile
from federation_app.guests import accounts
from federation_app.guests.contents import RemotePerson
from federation_app.guests.names import read_name
from federation_app.peers import registry
from sessions_app.access.invited import AccountForm
from sessions_app.bearer_tokens.people import make_person
from tests.federation_app.peer import add_peer

if TYPE_CHECKING:
    from django.test import Client

    from federation_app.models import Peer

pytestmark = pytest.mark.django_db
NAME = "gwen@client.example"
SPELLINGS = (NAME, "gwen@CLIENT.example", "other.one@client.example")


@pytest.fixture
def peer() -> Peer:
    """Return a peer, which is suspended."""
    row = add_peer().row
    registry.suspend(row)
    return row


@pytest.mark.parametrize("name", SPELLINGS)
def test_no_way_to_make_an_account_gives_it_the_name_of_a_guest(
    name: str, peer: Peer, admin_client: Client
) -> None:
    before = set(User.objects.values_list("username", flat=True))
    form = AccountForm({"username": name, "password": "a long pass phrase"})
    assert "username" in form.errors
    with pytest.raises(CommandError, match="host of another server"):
        call_command("user", name, stdout=StringIO())
    page = admin_client.post(
        "/admin/auth/user/add/",
        {"username": name, "usable_password": "false", "password1": "", "password2": ""},
    )
    assert b"host of another server" in page.content
    assert set(User.objects.values_list("username", flat=True)) == before
    # A person of an identity provider gets another name, and no one shows such a name.
    person = make_person("https://issuer.example", "7", {"name": name}, name_claim="name")
    assert not accounts.is_of_a_peer(person.username)
    with pytest.raises(InvalidProfile):
        update_profile(user=person, change=ProfileChange(display_name=name))


def test_the_guest_has_the_name(peer: Peer, admin_client: Client) -> None:
    registry.resume(peer)
    peer.refresh_from_db()
    guest = accounts.guest_account(peer, RemotePerson(id="7", name=NAME))
    assert guest.username == NAME
    # An operator can change its account.
    guest.full_clean(exclude=["password"])
    # Other names with a sign are free.
    free = {"username": "gwen@home.example", "password": "a long pass phrase"}
    assert AccountForm(free).is_valid()


def test_the_longest_names_fit_into_an_account_of_a_peer(peer: Peer, settings: Any) -> None:
    settings.UAMP_FEDERATION_HOST = "chat.example"
    people = [User.objects.create(username="n" * 149 + end) for end in "ab"]
    names = [account.name for account in accounts.remote_people(peer, people)]
    assert len(set(names)) == 2
    for person, name in zip(people, names, strict=True):
        assert len(name) <= 150
        # They can be invited by that name.
        assert accounts.person_here(read_name(name)) == person
    plain = User.objects.create(username="n" * 128)
    assert accounts.remote_people(peer, [plain])[0].name == f"{'n' * 128}@chat.example"
    # A number at the end of another name finds no one.
    assert accounts.person_here(read_name(f"n-{people[0].pk}@chat.example")) is None
