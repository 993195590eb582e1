"""The people, agents and chat of a new server, so that there is something to try.

What was generated is kept in DATA_DIR/demo.json (0600): a second preparation gives the same.
People are known as ours by their address; somebody else's account of the same name is left alone.
"""

import json
import os
import secrets
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from agents_app.demo import prepare_agents
from agents_app.models import Agent
from chat_app.models import Chat
from chat_app.services import create_chat
from sessions_app.models import ApiKey

PEOPLE = ("alice", "bob", "admin")
CHAT_TITLE = "Welcome"
CHAT_PEOPLE = ("alice", "bob")
CHAT_AGENTS = ("echo", "slow")


class NameIsTakenError(Exception):
    """An account with this name exists that is not the demo's."""


def demo_path() -> Path:
    """Return where the generated passwords and keys are kept."""
    return Path(settings.DATA_DIR) / "demo.json"


def read_users() -> list[dict[str, str]]:
    """Return the kept `{username, password, api_key}`, or nothing when there is no demo."""
    path = demo_path()
    if not path.exists():
        return []
    users: list[dict[str, str]] = json.loads(path.read_text())["users"]
    return users


def prepare() -> dict[str, Any]:
    """Make what is missing; return `{users, agents, chats}`.

    Raises NameIsTakenError if an account of a demo name belongs to somebody else.
    """
    kept = {user["username"]: user for user in read_users()}
    users = [kept.get(name) or _new_user(name) for name in PEOPLE]
    if password := os.environ.get("DEMO_PASSWORD"):
        users = [{**user, "password": password} for user in users]
    prepare_agents()
    with transaction.atomic():
        for user in users:
            _prepare_user(user)
        chat = _prepare_chat()
    _write(users)
    return {
        "users": users,
        "agents": list(Agent.objects.order_by("name").values("name", "description")),
        "chats": [{"id": chat.pk, "title": chat.title}],
    }


def _new_user(name: str) -> dict[str, str]:
    return {
        "username": name,
        "password": secrets.token_urlsafe(9),
        "api_key": ApiKey.make_secret(),
    }


def _prepare_user(user: dict[str, str]) -> None:
    name = user["username"]
    email = f"{name}@demo.invalid"
    row, _ = User.objects.get_or_create(username=name, defaults={"email": email})
    if row.email != email:
        raise NameIsTakenError(f"the account {name!r} is not the demo's")
    if not row.check_password(user["password"]):
        row.set_password(user["password"])
    row.is_staff = row.is_superuser = name == "admin"
    row.save()
    prefix, sha256 = ApiKey.split_secret(user["api_key"])
    ApiKey.objects.get_or_create(
        prefix=prefix, defaults={"user": row, "sha256": sha256, "name": "demo"}
    )


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


def _write(users: list[dict[str, str]]) -> None:
    draft = demo_path().with_suffix(f".{os.getpid()}")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps({"users": users}, indent=2) + "\n")
    draft.replace(demo_path())
