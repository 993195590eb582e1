"""Ids of one person's rows, for a stranger to probe."""

from __future__ import annotations

import base64
import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from agents_app.models import Agent
from chat_app.models import Content, Participant
from payments_app import services as ledger
from sessions_app.models import Session, ToolCallKind, Webhook
from sessions_app.states import ToolCallState
from tests import factories
from tests.live_server import Person, shared_chat
from tests.payments_app.funded_accounts import authorize, usd
from tests.payments_app.tokens.issued_tokens import issue

if TYPE_CHECKING:
    from tests.live_server import Dial

HANDLE = "0f9619ff-8b86-4011-b42d-00c04fc964ff"
NEW = re.compile(
    r'"(event_id|timestamp|epoch|request_id|created_at|expires_at|reset_at|signature|salt)"'
    r': ?("[^"]*"|\d+)'
    r"|(?:sess|chat|msg|resp)_[0-9a-f]{32}|/api/content/[0-9a-f-]{36}"
)


@dataclass(frozen=True)
class KnownIds:
    """Ids that exist for alice, and the stranger who does not know them."""

    foreign: dict[str, str]
    own_chat: str
    own_session: str
    mallory: Person


@pytest.fixture
def known_ids(dial: Dial, alice: Person, mallory: Person) -> KnownIds:
    """Make something of every kind for alice, and a chat of mallory's own."""
    hidden = factories.agent("hidden", is_public=False, owner=alice.user)
    chat = shared_chat(alice, agents=("echo", "hidden"))
    alices = dial(alice)
    alices.create_session(agent="echo", session={"id": "alices-own-session"})
    alices.send("input.image", image=base64.b64encode(factories.png()).decode(), content_id=HANDLE)
    alices.answer("Look")
    content = Content.objects.get()
    response = factories.response(Agent.objects.get(name="echo"), chat)
    call = factories.tool_call(
        response, kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING, id=987654321
    )
    account = ledger.account_of_user(alice.user.pk)
    ledger.top_up(
        key="alice", account=account.id, amount=usd("9"), provider="test", external_id="alice"
    )
    lock = authorize(key="lock", account_id=account.id, amount=usd("1")).hold_id
    factories.agent("mallorys", owner=mallory.user)
    own_chat = shared_chat(mallory)
    own_session = factories.session(mallory.user, own_chat, chat_scoped=True)
    webhook = Webhook.objects.create(
        id=987654322, chat=chat, user=alice.user, url="https://example.org/"
    )
    foreign = {
        "webhook": str(webhook.pk),
        "chat": chat.pk,
        "message": factories.message(chat, alice.user).pk,
        "participant": str(Participant.objects.get(chat=chat, agent=hidden).pk),
        "session": Session.objects.get(client_id="alices-own-session").pk,
        "session name": "alices-own-session",
        "content": str(content.pk),
        "handle": HANDLE,
        "response": response.pk,
        "call": call.call_id,
        "call row": str(call.pk),
        "agent": "hidden",
        "token": issue(alice.user).id,
        "lock": lock,
    }
    return KnownIds(foreign, own_chat.pk, own_session.pk, mallory)


def absent(kind: str, foreign: str) -> str:
    """Return an id like another one that no row has."""
    if kind in {"content", "handle"}:
        return str(uuid.UUID(int=uuid.UUID(foreign).int ^ 1))
    if kind in {"participant", "call row", "webhook"}:
        return str(int(foreign) + 10**9)
    last = "0" if foreign[-1] != "0" else "1"
    return foreign[:-1] + ("x" if kind in {"agent", "session name"} else last)


def normal(text: str, row_id: str) -> str:
    """Return a text without the id that was asked for and without what is new in every answer."""
    if len(row_id) < len("alices"):  # it may stand within another id
        return NEW.sub("<new>", text).replace(row_id, "<id>")
    return NEW.sub("<new>", text.replace(row_id, "<id>"))
