"""Creates the first account, its assistant and a chat, and connects the assistant to a model."""

from __future__ import annotations

import fcntl
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction

from agents_app import editing
from agents_app.models import Agent, AgentKind
from audit_app.record import AuditAction, record
from chat_app.browser.site import name_site
from chat_app.members.chats import create_chat
from uamp_project.first_start import token

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ASSISTANT = "assistant"


class AccountExists(Exception):
    """Another person has created the first account in the meantime."""


def make_operator(
    username: str, password: str, *, site: str, assistant: Mapping[str, Any], title: str
) -> tuple[User, str]:
    """Return the first account, and the id of its chat; `assistant` are the agent's fields.

    `site` becomes the name of the server.

    Raises AccountExists, and ValidationError for fields that make no agent.
    """
    with _alone(), transaction.atomic():
        if User.objects.exists():
            raise AccountExists
        user = User.objects.create_superuser(username, password=password)
        agent = editing.make(
            {"name": ASSISTANT, "is_public": True, **assistant},
            owner=user,
        )
        chat = create_chat(
            title=title, created_by_id=user.pk, user_ids=[user.pk], agents=[(agent.pk, "always")]
        )
        name_site(site)
        record(user, AuditAction.PERSON_MADE, user, detail="on the setup page")
    token.forget()
    return user, chat.pk


def connect(fields: Mapping[str, Any], user: User) -> None:
    """Connect the assistant to a model, creating the assistant if needed.

    Raises ValidationError for fields that make no agent.
    """
    with transaction.atomic():
        agent = Agent.objects.filter(name__iexact=ASSISTANT).first()
        if agent is None:
            agent = editing.make({"name": ASSISTANT, "is_public": True, **fields}, owner=user)
        else:
            # Without a new key, the stored one goes: it was for another model.
            editing.change(agent, {"key": "", "kind": AgentKind.HOSTED, **fields})
        record(user, AuditAction.ROW_CHANGED, agent, detail="model, on the page Connect a model")


@contextmanager
def _alone() -> Iterator[None]:
    """Let one process after the other look for accounts and make one."""
    with (Path(settings.DATA_DIR) / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
