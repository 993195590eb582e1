"""Subscriptions to tasks with an open question: they end with their key and with the process."""

from __future__ import annotations

import asyncio
import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from django.utils import timezone

from gateway_app.a2a import service
from gateway_app.backend import exchange
from gateway_app.backend.responses import ResponseReader
from sessions_app import lifespan, session_states
from sessions_app.models import ApiKey, Response
from sessions_app.process import periodic
from sessions_app.transports import http_exchange
from tests.gateway_app.a2a.calls import call, send
from tests.gateway_app.a2a.test_waits import SEARCH
from tests.sessions_app.access.scoped_keys import key_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

WAIT_SECONDS = 20


@contextmanager
def followed(web: httpx.Client, task_id: str, who: Person) -> Iterator[Iterator[Any]]:
    """Subscribe to a task; yield what follows its question: answers, and None for a keepalive."""
    body = {"jsonrpc": "2.0", "id": 1, "method": "SubscribeToTask", "params": {"id": task_id}}

    def answers(lines: Iterator[str]) -> Iterator[Any]:
        end = time.monotonic() + WAIT_SECONDS
        for line in lines:
            assert time.monotonic() < end, "the stream goes on"
            if line.startswith(":"):
                yield None
            elif line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))

    path = "/agents/tool-user/a2a"
    with web.stream("POST", path, json=body, headers=who.headers) as answer:
        later = answers(answer.iter_lines())
        assert next(later)["result"]["task"]["id"] == task_id
        state = next(later)["result"]["statusUpdate"]["status"]["state"]
        assert state == "TASK_STATE_INPUT_REQUIRED"
        yield later


@pytest.fixture
def task_id(web: httpx.Client, alice: Person) -> str:
    """Return a task that waits for the result of a tool."""
    task = send(web, "tool-user", "Find it", who=alice, metadata={"uamp_tools": [SEARCH]})
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    return str(task["id"])


def test_a_subscription_ends_with_its_key(web: httpx.Client, alice: Person, task_id: str) -> None:
    other = key_of(alice)
    with followed(web, task_id, other) as answers:
        ApiKey.objects.filter(name="narrow").update(revoked_at=timezone.now())
        (error,) = filter(None, answers)

    assert "signed out, or the token was revoked" in error["error"]["message"]


def test_a_subscription_whose_session_ends_with_its_task_has_the_end_of_the_task(
    web: httpx.Client, alice: Person, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The session is detached before the task is looked at again.
    monkeypatch.setattr(service, "ASKING_SECONDS", 4 * periodic.PRINCIPALS_SECONDS)
    with followed(web, task_id, alice) as answers:
        assert next(answers) is None
        call(web, "tool-user", "CancelTask", {"id": task_id}, who=alice)
        session_id = Response.objects.get(pk=task_id).session_id
        assert session_states.close_session(session_id or "", reason="ended")
        (last,) = filter(None, answers)

    assert last["result"]["statusUpdate"]["status"]["state"] == "TASK_STATE_CANCELED"


def test_a_subscription_whose_session_ends_after_the_answer_has_the_answer(
    web: httpx.Client, alice: Person, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "ASKING_SECONDS", 4 * periodic.PRINCIPALS_SECONDS)
    with followed(web, task_id, alice) as answers:
        assert next(answers) is None
        send(web, "tool-user", "42", who=alice, taskId=task_id)
        session_id = Response.objects.get(pk=task_id).session_id
        assert session_states.close_session(session_id or "", reason="ended")
        *updates, last = [answer["result"] for answer in filter(None, answers)]

    assert any("artifactUpdate" in update for update in updates)
    assert last["statusUpdate"]["status"]["state"] == "TASK_STATE_COMPLETED"


def test_a_subscription_ends_with_its_process(
    web: httpx.Client,
    alice: Person,
    task_id: str,
    monkeypatch: pytest.MonkeyPatch,
    settings: Settings,
) -> None:
    settings.UAMP_GRACE_SECONDS = 0
    loops: list[asyncio.AbstractEventLoop] = []

    async def note_loop(*args: Any, **options: Any) -> Any:
        loops.append(asyncio.get_running_loop())
        return await http_exchange.principal_of(*args, **options)

    monkeypatch.setattr(exchange, "principal_of", note_loop)
    with followed(web, task_id, alice) as answers:
        asyncio.run_coroutine_threadsafe(lifespan.drain(), loops[0]).result(WAIT_SECONDS)
        assert list(filter(None, answers)) == []


def test_an_open_question_is_looked_for_without_reading_the_task(
    web: httpx.Client, alice: Person, task_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reads: list[str] = []
    find = ResponseReader.find

    async def note_read(reader: ResponseReader, response_id: str) -> Any:
        reads.append(response_id)
        return await find(reader, response_id)

    with followed(web, task_id, alice) as answers:
        monkeypatch.setattr(ResponseReader, "find", note_read)
        assert [next(answers) for _ in range(3)] == [None] * 3
        assert reads == []
        send(web, "tool-user", "42", who=alice, taskId=task_id)
        states = [
            answer["result"]["statusUpdate"]["status"]["state"]
            for answer in filter(None, answers)
            if "statusUpdate" in answer["result"]
        ]
    assert states[-1] == "TASK_STATE_COMPLETED"
