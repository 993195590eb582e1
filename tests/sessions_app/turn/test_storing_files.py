"""Files of turns and tool results: stored after admission, on threads of their own."""

from __future__ import annotations

import asyncio
import base64
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from django.db import connection

from chat_app.contents import extents, storage
from chat_app.models import Content
from sessions_app.billing.media_weights import read_extents
from sessions_app.database import LONG_THREADS, run_long
from sessions_app.models import ToolCall
from sessions_app.turn import start
from tests import factories
from tests.client import wait_until
from uamp import ErrorCode, RemoteProtocolError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pytest_django import Settings

    from tests.client import Frame, UampClient
    from tests.live_server import Dial, Person

PDF = b"%PDF-1.4"
SEARCH = {"type": "function", "function": {"name": "search"}}
FILE: Frame = {
    "type": "file",
    "file": base64.b64encode(PDF).decode(),
    "filename": "a.pdf",
    "mime_type": "application/pdf",
}
"""A content item with its data."""


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> Path:
    """Store files in a folder of the test's own."""
    settings.MEDIA_ROOT = tmp_path
    return tmp_path


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, bool]]:
    """Return the place where files are measured: the thread, and whether in a transaction."""
    places: list[tuple[str, bool]] = []

    def extent_of(*_: Any, **__: Any) -> int:
        thread = threading.current_thread().name.split("_")[0]
        places.append((thread, connection.in_atomic_block))
        return 1

    monkeypatch.setattr(storage, "extent_of", extent_of)
    monkeypatch.setattr(extents, "extent_of", extent_of)
    return places


def send_with_message(client: UampClient) -> None:
    client.send("input.file", **{key: FILE[key] for key in ("file", "filename", "mime_type")})
    client.send("response.create")


def send_with_history(client: UampClient) -> None:
    earlier = {"role": "user", "content": "See", "content_items": [FILE]}
    messages = [earlier, {"role": "user", "content": "Hello"}]
    client.send("response.create", response={"messages": messages})


def send_with_tool_result(client: UampClient) -> None:
    client.ask("Hello")
    call_id = client.until("tool.call")[-1]["call_id"]
    client.send("tool.result", call_id=call_id, result="", content_items=[FILE])


def opened(dial: Dial, who: Person) -> UampClient:
    client = dial(who)
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    return client


@pytest.mark.parametrize("send", [send_with_message, send_with_history, send_with_tool_result])
def test_files_are_measured_on_threads_for_it_and_without_a_lock(
    dial: Dial,
    alice: Person,
    measured: list[tuple[str, bool]],
    send: Callable[[UampClient], None],
) -> None:
    client = opened(dial, alice)
    send(client)
    client.until("tool.call", "response.done")
    assert measured == [("long", False)]
    assert storage.read(Content.objects.get()) == PDF


def test_files_that_were_not_measured_are_measured_there_too(
    alice: Person, measured: list[tuple[str, bool]]
) -> None:
    content = factories.content(alice.user, PDF, mime_type="application/pdf")
    measured.clear()
    for _ in range(2):
        (extent,) = asyncio.run(read_extents([str(content.pk)], "user:1"))[str(content.pk)]
        assert extent.amount == 1
    assert measured == []
    Content.objects.update(extent=None)
    for _ in range(2):
        (extent,) = asyncio.run(read_extents([str(content.pk)], "user:1"))[str(content.pk)]
        assert extent.amount == 1
    assert measured == [("long", False)]


@pytest.mark.parametrize("send", [send_with_message, send_with_history])
def test_a_turn_beyond_its_rate_measures_and_stores_no_file(
    dial: Dial,
    alice: Person,
    settings: Settings,
    measured: list[tuple[str, bool]],
    send: Callable[[UampClient], None],
) -> None:
    client = opened(dial, alice)
    settings.UAMP_RESPONSES_PER_MINUTE = 0
    send(client)
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"
    assert measured == []
    assert not Content.objects.exists()


@pytest.mark.parametrize("send", [send_with_message, send_with_history])
def test_a_turn_with_too_much_text_leaves_no_file(
    dial: Dial,
    alice: Person,
    settings: Settings,
    folder: Path,
    send: Callable[[UampClient], None],
) -> None:
    client = opened(dial, alice)
    settings.UAMP_TEXT_BYTES_PER_DAY = 1
    send(client)
    assert client.until("session.error")[-1]["error"]["code"] == "rate_limited"
    assert not Content.objects.exists()
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("send", [send_with_message, send_with_history])
def test_a_turn_that_is_refused_before_it_is_written_leaves_no_file(
    dial: Dial,
    alice: Person,
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    send: Callable[[UampClient], None],
) -> None:
    async def refuse(*_: Any, **__: Any) -> None:
        raise RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, "No one pays.")

    client = opened(dial, alice)
    monkeypatch.setattr(start, "reservations_of", refuse)
    send(client)
    assert client.until("response.error")[-1]["error"]["code"] == "payment_required"
    assert not Content.objects.exists()
    assert [path for path in folder.rglob("*") if path.is_file()] == []


def test_a_cancelled_turn_keeps_its_files_for_the_writer(
    dial: Dial, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    stored: list[int] = []

    async def cancel(*_: Any, **__: Any) -> None:
        stored.append(1)
        raise asyncio.CancelledError

    client = opened(dial, alice)
    monkeypatch.setattr(start, "_insist", cancel)
    send_with_message(client)
    wait_until(lambda: bool(stored))
    time.sleep(0.3)
    assert Content.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_long_calls_of_one_asker_run_one_after_another() -> None:
    began: queue.Queue[str] = queue.Queue()
    may_end = threading.Event()

    def work(asker: str) -> None:
        began.put(asker)
        may_end.wait(10)

    async def calls() -> None:
        askers = ["user:1"] * LONG_THREADS + ["user:2"]
        tasks = [asyncio.ensure_future(run_long(asker, work, asker)) for asker in askers]
        first = [await asyncio.to_thread(began.get, timeout=10) for _ in range(2)]
        assert set(first) == {"user:1", "user:2"}
        await asyncio.sleep(0.1)
        assert began.empty()
        may_end.set()
        await asyncio.gather(*tasks)

    asyncio.run(asyncio.wait_for(calls(), 20))
    assert began.qsize() == LONG_THREADS - 1


def test_a_tool_result_whose_call_ends_while_it_is_stored_leaves_no_file(
    dial: Dial, alice: Person, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_call(*_: Any, **__: Any) -> int:
        ToolCall.objects.update(status="failed", result="too late")
        return 1

    monkeypatch.setattr(storage, "extent_of", end_call)
    client = opened(dial, alice)
    send_with_tool_result(client)
    assert client.until("session.error")[-1]["error"]["code"] == "unknown_call"
    assert not Content.objects.exists()
    assert [path for path in folder.rglob("*") if path.is_file()] == []
