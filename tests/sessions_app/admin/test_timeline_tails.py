"""Live timelines in the admin: who may follow them, and what is recorded."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import Group, User
from django.test import AsyncClient

from audit_app.models import AuditRecord
from sessions_app.admin.timeline import tail
from tests import factories
from tests.sessions_app.admin.timelines import (
    WORDS,
    of_chat,
    of_response,
    paid_and_failed,
    part_of,
    staff,
)

if TYPE_CHECKING:
    from sessions_app.models import Response

pytestmark = pytest.mark.django_db


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
