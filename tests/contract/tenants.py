"""Two people who have nothing to do with each other, each with a row of every kind."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import Permission

from agents_app.models import Agent
from agents_app.rest.rights import ALL
from chat_app.contents import uploads
from chat_app.contents.quota import ContentOwner
from chat_app.contents.storage import store
from chat_app.members.chats import create_chat
from chat_app.models import ContentUse, Participant
from payments_app import services as ledger
from sessions_app.access import connect_tokens
from sessions_app.models import ToolCallKind
from sessions_app.states import ToolCallState
from sessions_app.webhooks import chat_webhooks
from sessions_app.webhooks.chat_webhooks import WebhookRequest
from tests import factories
from tests.live_server import Person, person
from tests.payments_app.funded_accounts import authorize, usd
from tests.payments_app.tokens.issued_tokens import issue


@dataclass
class Tenant:
    """A person with rows; `ids` are those of one row of each kind, by the parameter of a path."""

    who: Person
    ids: dict[str, str] = field(default_factory=dict)
    secret: str = ""


def tenant(name: str) -> Tenant:
    """Make a person, and of each kind of row one that has their secret in its text."""
    owner = Tenant(person(name), secret=f"secret-of-{name}")
    user = owner.who.user
    rights = ("add_agent", "change_agent")
    user.user_permissions.set(Permission.objects.filter(codename__in=rights))
    agent = factories.agent(f"agent-of-{name}", is_public=False, owner=user)
    chat = create_chat(
        title=f"{owner.secret} title",
        created_by_id=user.pk,
        user_ids=[user.pk],
        agents=[(agent.pk, "mention"), (Agent.objects.get(name="echo").pk, "mention")],
    )
    session = factories.session(user, chat, chat_scoped=True)
    question = factories.message(chat, user, f"{owner.secret} question")
    response = factories.response(agent, chat, session=session, message_id=question.pk)
    factories.message(chat, agent, f"{owner.secret} answer", response_id=response.pk)
    call = factories.tool_call(
        response, kind=ToolCallKind.CLIENT, status=ToolCallState.WAITING, result=owner.secret
    )
    queued = factories.queued_turn(user, session)
    content = store(
        factories.png(),
        mime_type="image/png",
        filename=f"{owner.secret}.png",
        owner=ContentOwner(user_id=user.pk),
    )
    ContentUse.objects.create(content=content, chat=chat)
    account = ledger.account_of_user(user.pk)
    ledger.top_up(key=name, account=account.id, amount=usd("9"), provider="t", external_id=name)
    lock = authorize(key=f"lock {name}", account_id=account.id, amount=usd("1")).hold_id
    member = Participant.objects.get(chat=chat, agent=agent)
    upload = uploads.begin(
        user_id=user.pk, length=9, filename=f"{owner.secret}.txt", mime_type="text/plain"
    )
    webhook = chat_webhooks.make(
        user.pk,
        WebhookRequest(chat_id=chat.pk, url="https://example.org/", name=f"{owner.secret} webhook"),
    ).webhook
    owner.ids = {
        "webhook_id": str(webhook.pk),
        "delivery_id": str(chat_webhooks.ping(webhook).pk),
        "upload_id": str(upload.pk),
        "chat_id": chat.pk,
        "message_id": question.pk,
        "response_id": response.pk,
        "call_id": str(call.pk),
        "item_id": str(queued.pk),
        "content_id": str(content.pk),
        "participant_id": str(member.pk),
        "token_id": issue(user).id,
        "lock_id": lock,
        "key_id": str(connect_tokens.issue(user.pk, f"daemon-of-{name}", by=ALL)[1].key.pk),
        "agent": agent.name,
        "name": agent.name,
        "user_id": str(user.pk),
    }
    return owner


def texts_of(owner: Tenant) -> list[str]:
    """Return the texts that no answer to another person may have."""
    rows: list[Any] = ["chat_id", "message_id", "response_id", "content_id", "token_id", "lock_id"]
    return [owner.secret, *(owner.ids[name] for name in rows)]
