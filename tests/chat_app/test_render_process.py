"""No text holds the server: what takes too long to render is stopped, and others are answered."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import httpx
import psutil
import pytest

from agents_app.workers import child_processes
from chat_app import markdown
from chat_app.rest.messages import history
from tests import factories
from tests.client import wait_until
from tests.live_server import alice, demo, impatience, web
from tests.threads import join_threads

if TYPE_CHECKING:
    from tests.live_server import Person

pytestmark = pytest.mark.any_database

__all__ = ["alice", "demo", "impatience", "web"]

TOO_MANY_SECONDS = 8.0


@pytest.fixture(autouse=True)
def _nothing_kept() -> None:
    markdown._rendered.clear()


def slow_text(seconds: float) -> str:
    """Return a text that the renderer itself needs longer for."""
    size = 2000
    while size < 2_000_000:
        text = ("*a_ " * size)[: 2 * size]
        started = time.monotonic()
        markdown.render_here(text.encode())
        if time.monotonic() - started > seconds:
            return text
        size *= 2
    raise AssertionError("the renderer became faster than this test")


@pytest.mark.parametrize(
    "language", ["gherkin", "cucumber", "python", "rst", "perl", "markdown", "js", "html", "sql"]
)
@pytest.mark.parametrize(
    "piece", ["Feature: a", "  \n", "(", '"', "<a ", "a ", "/*", "`", "[", "{%"]
)
def test_no_code_block_takes_long(language: str, piece: str) -> None:
    code = piece * (29_000 // len(piece))
    started = time.monotonic()
    html = markdown.render(f"```{language}\n{code}\n```")
    assert time.monotonic() - started < TOO_MANY_SECONDS
    assert "data-language" in html or "<p>" in html


def test_a_text_that_takes_too_long_is_stopped_and_shown_as_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    markdown.render("a process that is there")
    monkeypatch.setattr(markdown, "RENDER_SECONDS", 0.05)
    text = slow_text(1.0)
    started = time.monotonic()
    html = markdown.render(text + "<script>")
    assert time.monotonic() - started < TOO_MANY_SECONDS
    assert html.startswith("<p>*a_ *a_")
    assert html.endswith("&lt;script&gt;</p>")
    monkeypatch.undo()
    # The process that was stopped has a successor.
    assert markdown.render("**next**") == "<p><strong>next</strong></p>"


def test_one_asker_does_not_keep_others_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    for asker in ("alice", "bob"):
        markdown.render(f"a process for {asker}", asker=asker)
    slow = slow_text(1.0)
    monkeypatch.setattr(markdown, "RENDER_SECONDS", 1.0)
    texts = [slow + str(number) for number in range(4)]
    threads = [
        threading.Thread(target=markdown.render, args=(text,), kwargs={"asker": "mallory"})
        for text in texts
    ]
    for thread in threads:
        thread.start()
    wait_until(lambda: markdown._processes.free < child_processes.PROCESSES)
    for number in range(5):
        html = markdown.render(f"**{number}**", asker="alice")
        assert html == f"<p><strong>{number}</strong></p>"
    # Without turns hers would have been given up, or come after all of theirs.
    assert all(thread.is_alive() for thread in threads[1:])
    join_threads(threads)


def test_a_page_of_slow_texts_is_given_up_and_known_the_next_time(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = factories.chat(alice.user)
    for number in range(8):
        factories.message(chat, alice.user, f"*slow* {number}")
    monkeypatch.setattr(markdown, "RENDER_SECONDS", 0.2)
    monkeypatch.setattr(history, "PAGE_SECONDS", 0.5)
    calls: list[tuple[bytes, float]] = []

    def stopped(text: bytes, *, asker: str, seconds: float) -> bytes:
        assert asker == f"user:{alice.user.pk}"
        calls.append((text, seconds))
        time.sleep(seconds)
        raise child_processes.TooSlow

    monkeypatch.setattr(markdown._processes, "ask", stopped)
    for reading in range(1, 40):
        before = len(calls)
        page = web.get(
            f"/api/v1/chats/{chat.pk}/messages", params={"render": "html"}, headers=alice.headers
        )
        unrendered = [m["html"].startswith("<p>*slow* ") for m in page.json()["data"]]
        assert unrendered == [True] * 8
        assert sum(seconds for _, seconds in calls) <= 0.5 * reading
        if len(calls) == before and reading > 1:
            break
    # Each was stopped once after its whole time, and is known.
    stopped_at_last = [text for text, seconds in calls if seconds == 0.2]
    assert len(stopped_at_last) == len(set(stopped_at_last)) == 8


def test_a_process_that_died_has_a_successor_at_once() -> None:
    markdown.render("a process that is there")
    for process in list(markdown._processes._all):
        psutil.Process(process._process.pid).kill()
    assert markdown.render("**next**") == "<p><strong>next</strong></p>"


@pytest.mark.long
def test_others_are_answered_while_texts_are_rendered(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = factories.chat(alice.user)
    texts = [slow_text(0.5) + str(number) for number in range(6)]
    for text in texts[:3]:
        factories.message(chat, alice.user, text)
    monkeypatch.setattr(markdown, "RENDER_SECONDS", 0.3)

    def render(text: str) -> None:
        httpx.post(
            f"{web.base_url}/api/v1/render",
            json={"text": text[:60_000]},
            headers=alice.headers,
            timeout=60,
            trust_env=False,
        )

    threads = [threading.Thread(target=render, args=(text,)) for text in texts]
    for thread in threads:
        thread.start()
    slowest = 0.0
    while any(thread.is_alive() for thread in threads):
        started = time.monotonic()
        assert web.get("/api/v1/me", headers=alice.headers).status_code == httpx.codes.OK
        slowest = max(slowest, time.monotonic() - started)
    assert slowest < TOO_MANY_SECONDS
    page = web.get(
        f"/api/v1/chats/{chat.pk}/messages", params={"render": "html"}, headers=alice.headers
    )
    assert [m["html"].startswith("<p>*a_") for m in page.json()["data"]] == [True] * 3


def test_the_processes_know_no_secret_of_the_server() -> None:
    markdown.render("a process that is there")
    for process in [p for p in markdown._processes._all if p._process.poll() is None]:
        environment = psutil.Process(process._process.pid).environ()
        assert set(environment) <= {"PATH", "PYTHONPATH", "LC_CTYPE"}
    assert markdown._processes.free == child_processes.PROCESSES
