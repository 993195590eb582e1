"""A paid answer that failed, and the pages of the admin that show its timeline."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from asgiref.sync import async_to_sync
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from chat_app.ids import new_event_id
from chat_app.log import entries
from chat_app.log.entries import NewEvent
from payments_app import services as ledger
from payments_app.money import Money
from sessions_app.models import PaymentRequest, Response
from tests import factories
from tests.payments_app.funded_accounts import authorize, capture_response

if TYPE_CHECKING:
    from chat_app.models import Chat

CAUSE = "openai_compat rate_limited (HTTP 429): slow down"
WORDS = "What is in the vault?"
INFERENCES = [
    {
        "number": 1, "provider": "openai_compat", "model": "small", "at": 1_700_000_000_000,
        "first_ms": 400, "ms": 1250, "input_tokens": 1200, "output_tokens": 34,
        "request_id": "req_2",
        "attempts": [{"code": "TIMEOUT", "status": 504, "request_id": "req_1", "words": "late"}],
    },
    {
        "number": 2, "provider": "openai_compat", "model": "small", "at": 1_700_000_002_000,
        "ms": 90, "end": "failed",
        "attempts": [{"code": "RATE_LIMITED", "status": 429, "words": "slow down"}],
    },
    {"number": 3, "provider": "openai_compat", "model": "small", "at": 1_700_000_003_000},
]  # fmt: skip


def staff(*roles: str) -> Client:
    """Return a client of staff with these roles; of a superuser without one."""
    name = "-".join(roles) or "root"
    user = factories.user(name, is_staff=True) if roles else factories.superuser(name)
    user.groups.set(Group.objects.filter(name__in=roles))
    client = Client()
    client.force_login(user)
    return client


def of_chat(chat: Chat, view: str = "timeline", **query: Any) -> str:
    url = reverse(f"admin:sessions_app_chat_{view}", args=[quote(chat.pk)])
    return f"{url}?{'&'.join(f'{k}={v}' for k, v in query.items())}"


def of_response(response: Response, view: str = "timeline") -> str:
    return reverse(f"admin:sessions_app_response_{view}", args=[quote(response.pk)])


def log(of: Response, name: str, **payload: Any) -> None:
    """Append an event of a response to the log of its chat."""
    event = {
        "type": name,
        "event_id": new_event_id(),
        "timestamp": 0,
        "response_id": of.pk,
        **payload,
    }
    new = NewEvent(type=name, payload=event, response_id=of.pk)
    entries.append(of.chat_id, [new], at=timezone.now())


def paid_and_failed(name: str = "ada") -> Response:
    """Make a chat in which a question was paid for, a tool was run, and the answer failed."""
    ada, agent = factories.user(name), factories.agent(f"agent-{name}")
    chat = factories.chat(ada, agent, title="Vault")
    session = factories.session(ada, chat, agent=agent)
    question = factories.message(chat, ada, WORDS)
    wallet = ledger.account_of_user(ada.pk)
    amount = Money.parse("2")
    ledger.top_up(
        key=name, account=wallet.id, amount=Money.parse("9"), provider="tests", external_id=name
    )
    response = factories.response(
        agent,
        chat,
        session=session,
        message=question,
        status="failed",
        error={"code": "rate_limit_exceeded", "message": "Try again later."},
        error_cause=CAUSE,
        inferences=INFERENCES,
    )
    log(response, "response.created", agent=agent.name, transport="websocket")
    hold = authorize(
        key=f"hold:{name}", account_id=wallet.id, amount=amount, response_id=response.pk
    )
    PaymentRequest.objects.create(
        response=response, number=1, payer=ada, asked_in=chat.pk, amount=amount.amount,
        asset="USD", reason="llm_usage", status="paid", hold_id=hold.hold_id,
        deadline=timezone.now(), decided_at=timezone.now(),
    )  # fmt: skip
    factories.tool_call(
        response, arguments='{"safe": "secret-argument"}', result="secret-result", status="failed",
        is_error=True, finished_at=timezone.now(),
    )  # fmt: skip
    capture_response(
        key=f"settle:{name}", response_id=response.pk, amount=Money.parse("1"), kind="answer",
        splits=[ledger.Split(ledger.account_of_agent(agent.pk).id, Money.parse("1"))],
        release=True, chat_id=chat.pk, agent_id=agent.pk, protocol="uamp",
    )  # fmt: skip
    log(response, "response.error", error=response.error)
    return response


def page_text(client: Client, url: str) -> str:
    answer = client.get(url)
    assert answer.status_code == 200, url
    return answer.content.decode()


def part_of(client: Client, url: str) -> dict[str, Any]:
    """Return the first part of a tail, without waiting for another."""
    answer: Any = client.get(url)

    async def first() -> bytes:
        frame: bytes = await anext(answer.streaming_content)
        return frame

    frame = async_to_sync(first)()
    part: dict[str, Any] = json.loads(frame.partition(b"data: ")[2])
    return part
