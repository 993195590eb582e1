"""The people, agents, chat and money of a new server.

Generated passwords and keys are stored in DATA_DIR/demo.json (0600), so preparing the demo again
yields the same ones. Changes that people made are kept: once a person chooses another password or
revokes a key, the stored one is dropped. The demo's people are recognised by a special e-mail
address; any other account of the same name is left alone.
"""

import fcntl
import json
import os
import secrets
from collections.abc import Container, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from agents_app.connections import NameNotYours
from agents_app.demo import CONNECTED_DESCRIPTION, prepare_agents
from agents_app.models import Agent, AgentKind
from agents_app.rest.rights import ALL
from chat_app.members.chats import create_chat
from chat_app.models import Chat
from payments_app import services as ledger
from payments_app.money import Money
from sessions_app.access import connect_tokens
from sessions_app.models import ApiKey

PEOPLE = ("alice", "bob", "admin")
CHAT_TITLE = "Welcome"
KEY_NAME = "demo"
CHAT_PEOPLE = ("alice", "bob")
CHAT_AGENTS = ("assistant", "echo", "paid-echo", "slow")
CONNECTED = "connected"
"""The agent that a program of the reader's answers as, over a socket; it belongs to admin."""
MONEY = Money.parse("5")
"""The amount with which each demo account is topped up."""


class NameIsTakenError(Exception):
    """An account with this name exists but does not belong to the demo."""


def demo_path() -> Path:
    """Return the path of the generated passwords and keys."""
    return Path(settings.DATA_DIR) / "demo.json"


def read_users() -> list[dict[str, str]]:
    """Return the stored `{username, password, api_key}` of each person, or [] without a demo."""
    users: list[dict[str, str]] = _read().get("users", [])
    return users


def _read() -> dict[str, Any]:
    path = demo_path()
    stored: dict[str, Any] = json.loads(path.read_text()) if path.exists() else {}
    return stored


def prepare(*, is_starting: bool = False) -> dict[str, Any]:
    """Create missing parts; return `{users, agents, chats}`. `is_starting`: see prepare_agents.

    The connected agent has a `connect_token`, which is empty if it was revoked.

    Raises NameIsTakenError if an account of a demo name belongs to another person.
    """
    with _alone():
        return _prepare(is_starting=is_starting)


@contextmanager
def _alone() -> Iterator[None]:
    """Let processes prepare the demo one at a time, so that each finds what earlier ones stored."""
    with (Path(settings.DATA_DIR) / "demo.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _prepare(*, is_starting: bool) -> dict[str, Any]:
    stored = {user["username"]: user for user in read_users()}
    users = [stored.get(name) or _new_user(name) for name in PEOPLE]
    if password := os.environ.get("DEMO_PASSWORD"):
        users = [{**user, "password": password} for user in users]
    prepare_agents(is_starting=is_starting)
    token = str(_read().get("connect_token", ""))
    # Decided before DEMO_PASSWORD sets a password, as for the keys of people.
    was_revoked = bool(token) and _has_connected() and not _is_in_force(token)
    with transaction.atomic():
        for user in users:
            _prepare_user(user, stored=stored)
        if not was_revoked and not _is_in_force(token):
            token = _connect_token()
        chat = _prepare_chat()
    _write(users, token)
    rows = Agent.objects.order_by("name").values_list("name", "description")
    agents = [{"name": name, "description": description} for name, description in rows]
    for agent in agents:
        if agent["name"] == CONNECTED and _has_connected():
            agent["connect_token"] = "" if was_revoked else token
    return {
        "users": users,
        "agents": agents,
        "chats": [{"id": chat.pk, "title": chat.title}],
    }


def _new_user(name: str) -> dict[str, str]:
    return {
        "username": name,
        "password": secrets.token_urlsafe(9),
        "api_key": ApiKey.make_secret(),
    }


def _prepare_user(user: dict[str, str], *, stored: Container[str]) -> None:
    """Create the account; `stored` are the people whose password and key are in DATA_DIR."""
    name = user["username"]
    email = f"{name}@demo.invalid"
    row, created = User.objects.get_or_create(username=name, defaults={"email": email})
    if row.email != email:
        raise NameIsTakenError(f"the account {name!r} is not the demo's")
    if created:
        user["password"] = user["password"] or secrets.token_urlsafe(9)
        row.is_staff = row.is_superuser = name == "admin"
    # Decided before DEMO_PASSWORD sets a password below, which revokes all keys: only a key that
    # its person revoked stays revoked.
    is_kept = user["username"] in stored
    keeps_key = created or (_is_in_force(user["api_key"]) if is_kept else _has_key(row))
    if created or "DEMO_PASSWORD" in os.environ:
        if not row.check_password(user["password"]):
            row.set_password(user["password"])
        row.save()
    elif not row.check_password(user["password"]):
        # The person has chosen another password, which the demo neither knows nor resets.
        user["password"] = ""
    # With a fixed key, preparing the demo again does not add the credit twice.
    ledger.top_up(
        key=f"demo:{row.pk}",
        account=ledger.account_of_user(row.pk, MONEY.asset).id,
        amount=MONEY,
        provider="manual",
        external_id=f"demo:{row.pk}",
        memo="to try the demo with",
    )
    if not keeps_key:
        user["api_key"] = ""
    elif not _is_in_force(user["api_key"]):
        if not created or not user["api_key"]:
            user["api_key"] = ApiKey.make_secret()
        prefix, sha256 = ApiKey.split_secret(user["api_key"])
        ApiKey.objects.create(user=row, prefix=prefix, sha256=sha256, name=KEY_NAME)


def _is_in_force(secret: str) -> bool:
    prefix, sha256 = ApiKey.split_secret(secret)
    keys = ApiKey.objects.filter(prefix=prefix, sha256=sha256, revoked_at__isnull=True)
    return keys.exists()


def _has_key(person: Any) -> bool:
    return ApiKey.objects.filter(user=person, name=KEY_NAME, revoked_at__isnull=True).exists()


def _has_connected() -> bool:
    owner = {"owner__username": "admin"}
    return Agent.objects.filter(name=CONNECTED, kind=AgentKind.CONNECTED, **owner).exists()


def _connect_token() -> str:
    """Create the connected agent if it is missing; return a token for it.

    Return "" if the name is someone else's.
    """
    admin = User.objects.get(username="admin")
    # Of a database whose people were deleted.
    Agent.objects.filter(name=CONNECTED, kind=AgentKind.CONNECTED, owner=None).update(owner=admin)
    is_new = not _has_connected()
    try:
        agent, made = connect_tokens.issue(admin.pk, CONNECTED, by=ALL)
    except NameNotYours:
        return ""
    if is_new:
        row = Agent.objects.get(pk=agent.id)
        row.description, row.is_public = CONNECTED_DESCRIPTION, True
        row.save()
    return made.secret


def _prepare_chat() -> Chat:
    owner = User.objects.get(username=CHAT_PEOPLE[0])
    chat = Chat.objects.filter(title=CHAT_TITLE, created_by=owner).first()
    if chat is not None:
        return chat
    agents = Agent.objects.filter(name__in=CHAT_AGENTS).order_by("name")
    return create_chat(
        title=CHAT_TITLE,
        created_by_id=owner.pk,
        user_ids=[User.objects.get(username=name).pk for name in CHAT_PEOPLE],
        agents=[(agent.pk, "mention") for agent in agents],
    )


def _write(users: list[dict[str, str]], connect_token: str) -> None:
    draft = demo_path().with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps({"users": users, "connect_token": connect_token}, indent=2) + "\n")
    draft.replace(demo_path())
