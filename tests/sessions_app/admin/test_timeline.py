"""Timelines in the admin: what stands in them, who may see what of it, and what is recorded."""

from __future__ import annotations

import json
from typing import Any

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import AsyncClient, Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from audit_app.models import AuditRecord
from chat_app.ids import new_event_id
from chat_app.log import entries
from chat_app.log.entries import NewEvent
from chat_app.models import Chat, ChatEvent, Message
from payments_app import services as ledger
from payments_app.models import Hold, Transfer
from payments_app.money import Money
from sessions_app.admin.timeline import tail
from sessions_app.models import PaymentRequest, Response, ToolCall
from tests import factories
from tests.payments_app.funded_accounts import authorize, capture_response

pytestmark = pytest.mark.django_db

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


def shown(client: Client, url: str) -> str:
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


def pages_of(response: Response) -> dict[str, str]:
    """Return the admin's pages of all that belongs to a response."""
    hold, call = Hold.objects.get(response_id=response.pk), ToolCall.objects.get()
    transfer = Transfer.objects.get(response_id=response.pk)
    found: dict[str, Any] = {
        "chat_app_message": response.message_id,
        "sessions_app_response": response.pk,
        "sessions_app_session": response.session_id,
        "sessions_app_toolcall": call.pk,
        "sessions_app_paymentrequest": PaymentRequest.objects.get().pk,
        "payments_app_hold": hold.pk,
        "payments_app_transfer": transfer.pk,
        "payments_app_account": hold.account_id,
    }
    return {name: reverse(f"admin:{name}_change", args=[quote(pk)]) for name, pk in found.items()}


def test_one_page_leads_from_the_words_to_the_ledger() -> None:
    response = paid_and_failed()
    client = staff("Auditor")
    for url in (of_chat(response.chat), of_response(response)):
        page = shown(client, url)
        for name, way in pages_of(response).items():
            assert f'href="{way}"' in page, (url, name)
        assert CAUSE in page
    # Each way leads to a page, and those lead back to the timeline of the response.
    for name, way in pages_of(response).items():
        back = shown(client, way)
        if name not in {"payments_app_account", "sessions_app_session"}:
            assert of_response(response) in back, name


def test_model_calls_are_shown_with_their_attempts_tokens_and_times() -> None:
    response, client = paid_and_failed(), staff("Support")
    for url in (of_chat(response.chat), of_response(response)):
        page = shown(client, url)
        for text in (
            "Model call 1 was sent", "openai_compat small", "Model call 1 was answered",
            "after 1.25 s, first output after 0.40 s, 1,200 tokens in, 34 out, request req_2",
            "Attempt 1 failed: TIMEOUT (HTTP 504, request req_1): late", "Model call 2 failed",
            "Attempt 1 failed: RATE_LIMITED (HTTP 429): slow down", "its end was not recorded",
            "The hold of 2 USD is settled", "1 captured, after",
        ):  # fmt: skip
            assert (text in page) == ("USD" not in text and "captured" not in text), text
    assert "The hold of 2 USD is settled" in shown(staff(), of_response(response))


def test_a_tool_call_says_when_a_person_and_a_worker_took_it() -> None:
    response = paid_and_failed()
    now = timezone.now()
    ToolCall.objects.update(started_at=now, decided_at=now, decided_by=factories.user("eve"))
    page = shown(staff("Support"), of_response(response))
    assert "eve decided on csv_report" in page
    assert "after 0.0 s in the queue" in page


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("loss", ["role", "sign-in", "account"])
async def test_a_tail_ends_when_its_reader_loses_the_right(
    loss: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "RUNNING_SECONDS", 0.01)

    def running() -> tuple[AsyncClient, User, Response]:
        ada, agent = factories.user(), factories.agent()
        response = factories.response(agent, factories.chat(ada, agent))
        eve = factories.user("eve", is_staff=True)
        eve.groups.set(Group.objects.filter(name="Support"))
        client = AsyncClient()
        client.force_login(eve)
        return client, eve, response

    client, eve, response = await sync_to_async(running)()
    answer: Any = await client.get(of_response(response, "timeline_tail"))
    frames = answer.streaming_content
    assert b'"is_running": true' in await anext(frames)
    # What is new is sent at once.
    call = await sync_to_async(factories.tool_call)(response)
    assert f"call-{call.pk}".encode() in await anext(frames)
    match loss:
        case "role":
            await eve.groups.aclear()
        case "sign-in":
            await client.alogout()
        case "account":
            await User.objects.filter(pk=eve.pk).aupdate(is_active=False)
    assert await anext(frames) == b"event: gone\ndata: {}\n\n"
    with pytest.raises(StopAsyncIteration):
        await anext(frames)
    assert not tail._tails


def test_one_person_follows_few_timelines_at_once() -> None:
    response, client = paid_and_failed(), staff()
    reader = User.objects.get(username="root")
    tail._tails[reader.pk] = tail.MAX_TAILS
    try:
        assert client.get(of_response(response, "timeline_tail")).status_code == 429
    finally:
        tail._tails.clear()


def test_roles_see_what_is_theirs() -> None:
    response = paid_and_failed()
    secrets = (WORDS, "secret-argument", "secret-result")
    # Support sees why it failed; neither words nor the ledger.
    page = shown(staff("Support"), of_chat(response.chat, texts=1))
    assert CAUSE in page
    assert "2 USD" not in page
    assert not any(secret in page for secret in secrets)
    assert not AuditRecord.objects.exists()
    # Finance sees the ledger, and not the messages.
    page = shown(staff("Finance"), of_response(response))
    assert "2 USD held from" in page
    assert "wrote" not in page
    # An auditor sees words where they ask for them, and that is recorded.
    client = staff("Auditor")
    assert WORDS not in shown(client, of_chat(response.chat))
    assert not AuditRecord.objects.exists()
    page = shown(client, of_chat(response.chat, texts=1))
    assert all(secret in page for secret in secrets)
    (row,) = AuditRecord.objects.all()
    assert (row.action, row.object_id) == ("transcript.read", response.chat_id)


@pytest.mark.parametrize("of", ["chat", "response"])
def test_a_tail_records_that_it_shows_texts(of: str) -> None:
    response, client = paid_and_failed(), staff("Auditor")
    url = of_chat(response.chat, "timeline_tail")
    if of == "response":
        url = f"{of_response(response, 'timeline_tail')}?"
    assert WORDS not in json.dumps(part_of(client, url))
    assert not AuditRecord.objects.exists()
    assert WORDS in json.dumps(part_of(client, f"{url}texts=1"))
    (row,) = AuditRecord.objects.all()
    row_id = response.chat_id if of == "chat" else response.pk
    assert (row.action, row.object_id) == ("transcript.read", row_id)
    assert row.detail == "The live timeline."


@pytest.mark.django_db(transaction=True)
async def test_a_tail_is_recorded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tail, "RUNNING_SECONDS", 0.01)

    def running() -> tuple[AsyncClient, Response]:
        ada, agent = factories.user(), factories.agent()
        response = factories.response(agent, factories.chat(ada, agent))
        client = AsyncClient()
        client.force_login(factories.superuser("root"))
        return client, response

    client, response = await sync_to_async(running)()
    answer: Any = await client.get(f"{of_response(response, 'timeline_tail')}?texts=1")
    frames = answer.streaming_content
    await anext(frames)
    await sync_to_async(factories.tool_call)(response, arguments='{"safe": "secret-argument"}')
    assert b"secret-argument" in await anext(frames)
    assert await AuditRecord.objects.acount() == 1
    await frames.aclose()


def test_a_tail_has_only_the_newest_page() -> None:
    response, client = paid_and_failed(), staff("Auditor")
    newest = part_of(client, of_chat(response.chat, "timeline_tail"))
    for place in ({"before": 1}, {"before": 2}):
        url = of_chat(response.chat, "timeline_tail", **place)
        assert part_of(client, url)["items"] == newest["items"]


def test_a_raw_entry_is_for_readers_of_contents_and_recorded() -> None:
    response = paid_and_failed()
    entry = reverse("admin:sessions_app_chat_entry", args=[quote(response.chat_id), 1])
    assert staff("Support").get(entry).status_code == 403
    client = staff("Auditor")
    assert WORDS in shown(client, entry)
    assert AuditRecord.objects.get().action == "content.read"
    missing = reverse("admin:sessions_app_chat_entry", args=[quote(response.chat_id), 99])
    assert client.get(missing).status_code == 404


def test_strangers_have_no_time_line() -> None:
    response = paid_and_failed()
    addresses = (of_chat(response.chat), of_response(response))
    without, person, root = staff("no role"), Client(), staff()
    person.force_login(factories.user("bob"))
    for url in addresses:
        assert without.get(url).status_code == 403
        assert person.get(url).status_code == 302
    assert root.get(of_chat(Chat(pk="chat_absent"))).status_code == 404
    assert root.get(of_response(Response(pk="resp_absent"))).status_code == 404


def seqs(client: Client, chat: Chat, **query: Any) -> list[int]:
    page = client.get(of_chat(chat, **query)).context["page"]
    return [item.seq for item in page.items if item.seq]


def test_pages_have_each_entry_once() -> None:
    ada = factories.user()
    chat = factories.chat(ada)
    for number in range(230):
        factories.message(chat, ada, str(number))
    client, found, before = staff(), list[int](), None
    while True:
        answer = client.get(of_chat(chat, **({} if before is None else {"before": before})))
        page = answer.context["page"]
        found = [*[item.seq for item in page.items], *found]
        assert len(page.items) <= 100
        before = page.older
        if before is None:
            break
    last = ChatEvent.objects.filter(chat=chat).count()
    assert found == list(range(1, last + 1))
    assert seqs(client, chat, at=60)[-1] == 109


def test_filters_look_further_than_one_page() -> None:
    response = paid_and_failed()
    ada = response.chat.created_by
    assert ada is not None
    for number in range(150):
        factories.message(response.chat, ada, str(number))
    client = staff()
    page = client.get(of_chat(response.chat, track="tools")).context["page"]
    assert [item.title.split()[0] for item in page.items] == ["csv_report", "csv_report"]
    page = client.get(of_chat(response.chat, who=f"agent:{response.agent_id}")).context["page"]
    assert {item.who for item in page.items} == {f"agent:{response.agent_id}"}
    assert page.looked_at > 100
    assert not client.get(of_chat(response.chat, who="user:0")).context["page"].items


def test_the_live_part_follows_an_answer() -> None:
    ada, agent = factories.user(), factories.agent()
    chat = factories.chat(ada, agent)
    response = factories.response(agent, chat)
    log(response, "response.created", agent=agent.name)
    client = staff()
    part = part_of(client, of_chat(chat, "timeline_tail"))
    assert part["is_running"]
    before = {item["key"]: item["version"] for item in part["items"]}
    call = factories.tool_call(response)
    part = part_of(client, of_response(response, "timeline_tail"))
    assert f"call-{call.pk}" in {item["key"] for item in part["items"]}
    Response.objects.update(status="completed", finished_at=timezone.now())
    log(response, "response.done", response={"id": response.pk})
    part = part_of(client, of_chat(chat, "timeline_tail"))
    after = {item["key"]: item["version"] for item in part["items"]}
    assert not part["is_running"]
    changed = {key for key in before if before[key] != after[key]}
    assert changed == {f"seq-{ChatEvent.objects.get(type='response.created').seq}"}


def test_a_time_line_takes_as_many_queries_for_many_entries() -> None:
    response = paid_and_failed()
    client = staff()

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            shown(client, of_chat(response.chat, texts=1))
        return len(captured)

    few = queries()
    sender, agent = response.chat.created_by, response.agent
    assert sender is not None
    for _ in range(15):
        more = factories.response(
            agent, response.chat, message=factories.message(response.chat, sender), status="failed"
        )
        log(more, "response.created", agent=agent.name)
        factories.tool_call(more)
    assert Message.objects.count() == 16
    assert queries() == few
