"""The demo: idempotent, private, and never at the cost of a person's own account."""

import json
import stat
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone
from pytest_django import Settings

from agents_app.models import Agent
from chat_app.models import Chat
from sessions_app.access.auth import verify_token
from sessions_app.access.connect_tokens import only_connects
from sessions_app.access.keys import revoke_key
from sessions_app.models import ApiKey
from uamp_project import demo

pytestmark = pytest.mark.django_db


def account(username: str, password: str) -> User | None:
    """Return the account that a name and a password open."""
    person = User.objects.get(username=username)
    return person if person.check_password(password) else None


@pytest.fixture(autouse=True)
def own_data_dir(settings: Settings, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path


def prepare() -> dict[str, Any]:
    out = StringIO()
    call_command("demo", json=True, stdout=out)
    prepared: dict[str, Any] = json.loads(out.getvalue())
    return prepared


def test_the_demo_has_people_agents_and_a_chat_that_they_share() -> None:
    prepared = prepare()

    assert [user["username"] for user in prepared["users"]] == ["alice", "bob", "admin"]
    assert {"echo", "slow"} <= {agent["name"] for agent in prepared["agents"]}
    chat = Chat.objects.get(pk=prepared["chats"][0]["id"])
    members = chat.participants.values_list("user__username", "agent__name")
    assert sorted(members, key=str) == sorted(
        [
            *(("alice", None), ("bob", None)),
            *((None, name) for name in ("assistant", "echo", "paid-echo", "slow")),
        ],
        key=str,
    )


def test_the_printed_passwords_and_keys_are_good() -> None:
    for user in prepare()["users"]:
        signed_in = account(user["username"], user["password"])
        assert isinstance(signed_in, User)
        assert signed_in.is_superuser == (user["username"] == "admin")
        assert verify_token(user["api_key"], protocol="uamp").user_id == signed_in.pk


def test_a_second_preparation_changes_nothing() -> None:
    assert prepare() == prepare()
    assert (User.objects.count(), Chat.objects.count()) == (3, 1)


def connect_token() -> str:
    (token,) = [agent["connect_token"] for agent in prepare()["agents"] if "connect_token" in agent]
    return str(token)


def test_a_program_connects_as_one_of_the_agents() -> None:
    token = connect_token()
    agent = Agent.objects.get(name="connected")
    principal = verify_token(token, protocol="uamp")
    assert only_connects(principal.rights)
    assert principal.rights.agents == frozenset({agent.pk})
    assert (agent.kind, agent.is_public) == ("connected", True)
    assert connect_token() == token
    # Like a key, it is not made anew for who revoked it, and a lost one is joined by another.
    demo.demo_path().unlink()
    other = connect_token()
    assert other not in {"", token}
    ApiKey.objects.filter(agents=[agent.pk]).update(revoked_at=timezone.now())
    assert (connect_token(), connect_token()) == ("", "")
    User.objects.all().delete()
    assert verify_token(connect_token(), protocol="uamp").rights.agents == frozenset({agent.pk})


def test_the_connected_agent_of_another_person_is_left_alone() -> None:
    Agent.objects.create(name="connected", kind="connected", owner=User.objects.create_user("eve"))
    assert not any("connect_token" in agent for agent in prepare()["agents"])


def test_a_new_database_gets_the_same_people() -> None:
    first = prepare()
    User.objects.all().delete()

    assert prepare()["users"] == first["users"]
    assert verify_token(first["users"][0]["api_key"], protocol="uamp").username == "alice"


def test_a_password_that_was_changed_and_rights_that_were_taken_stay_so() -> None:
    prepare()
    admin = User.objects.get(username="admin")
    admin.set_password("a password of my own")
    admin.is_superuser = False
    admin.save()

    again = {user["username"]: user["password"] for user in prepare()["users"]}
    assert again["admin"] == ""
    assert account("admin", "a password of my own") is not None
    assert not User.objects.get(username="admin").is_superuser
    # A new database has people with passwords again.
    User.objects.all().delete()
    assert all(user["password"] for user in prepare()["users"])


@pytest.mark.parametrize("how", ["chose a password", "revoked it"])
def test_the_key_of_a_person_who_ended_it_is_not_made_anew(how: str) -> None:
    first = prepare()
    alice = User.objects.get(username="alice")
    if how == "revoked it":
        (key,) = ApiKey.objects.filter(user=alice)
        assert revoke_key(key, by=alice)
    else:
        alice.set_password("a password of my own")
        alice.save()

    again = prepare()
    assert again == prepare()
    password = "" if how == "chose a password" else first["users"][0]["password"]
    assert again["users"] == [
        {"username": "alice", "password": password, "api_key": ""},
        *first["users"][1:],
    ]
    assert not ApiKey.objects.filter(user=alice, revoked_at__isnull=True).exists()
    out = StringIO()
    call_command("demo", stdout=out)
    assert out.getvalue().count("(create one on /account)") == 1
    # A new database has people with passwords and keys again.
    User.objects.all().delete()
    assert all(user["password"] and user["api_key"] for user in prepare()["users"])


def test_a_key_that_is_not_known_here_is_joined_by_another() -> None:
    demo.prepare()
    demo.demo_path().unlink()
    (alice, *_) = demo.prepare()["users"]
    assert alice["username"] == "alice"
    keys = ApiKey.objects.filter(user__username="alice", revoked_at__isnull=True)
    prefix, sha256 = ApiKey.split_secret(alice["api_key"])
    assert keys.count() == 2
    assert keys.filter(prefix=prefix, sha256=sha256).exists()


def test_a_password_that_is_given_leaves_keys_that_work(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare()
    ApiKey.objects.filter(user__username="bob").update(revoked_at=timezone.now())
    monkeypatch.setenv("DEMO_PASSWORD", "let-me-see-it")

    alice, bob, _ = prepare()["users"]
    assert verify_token(alice["api_key"], protocol="uamp").username == "alice"
    assert bob["api_key"] == ""
    assert alice in prepare()["users"]


def test_the_kept_file_is_private() -> None:
    prepare()

    assert stat.S_IMODE(demo.demo_path().stat().st_mode) == 0o600
    assert not list(demo.demo_path().parent.glob("demo.json?*"))


def test_the_password_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    prepare()
    monkeypatch.setenv("DEMO_PASSWORD", "let-me-see-it")

    assert {user["password"] for user in prepare()["users"]} == {"let-me-see-it"}
    assert account("bob", "let-me-see-it") is not None


def test_an_account_that_is_not_the_demos_is_left_alone() -> None:
    User.objects.create_user("alice", "alice@example.org", "her own password")
    with pytest.raises(CommandError, match="'alice' is not the demo's"):
        prepare()

    assert account("alice", "her own password") is not None
    assert User.objects.count() == 1
