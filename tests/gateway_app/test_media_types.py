"""A file is what its bytes are, whichever protocol it arrives by and whatever its label says."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any, Final

import pytest

from chat_app.models import Content, Message
from tests.chat_app.contents import samples
from tests.client import new_event
from tests.gateway_app.a2a.calls import send
from tests.gateway_app.ag_ui.runs import run
from tests.gateway_app.completions.requests import ask

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import httpx
    from pytest_django import Settings

    from tests.live_server import Person

    Route = Callable[[httpx.Client, Person, str, str], None]


@pytest.fixture(autouse=True)
def folder(settings: Settings, tmp_path: Path) -> None:
    """Store files in a folder of the test's own."""
    settings.MEDIA_ROOT = tmp_path


def by_uamp(web: httpx.Client, who: Person, data: str, label: str) -> None:
    events = [
        new_event("session.create", uamp_version="1.0", session={}, agent="echo"),
        new_event("input.image", image=data, format=label.partition("/")[2]),
        new_event("response.create"),
    ]
    assert web.post("/uamp", json=events, headers=who.headers).json()[-1]["type"] == "response.done"


def by_completions(web: httpx.Client, who: Person, data: str, label: str) -> None:
    picture = {"type": "image_url", "image_url": {"url": f"data:{label};base64,{data}"}}
    body = {"messages": [{"role": "user", "content": [{"type": "text", "text": "Look"}, picture]}]}
    answer = ask(web, "echo", body, who)
    assert answer.status_code == 200, answer.text


def by_responses(web: httpx.Client, who: Person, data: str, label: str) -> None:
    picture = {"type": "input_image", "image_url": f"data:{label};base64,{data}"}
    body = {"input": [{"role": "user", "content": [picture]}]}
    answer = web.post("/agents/echo/v1/responses", json=body, headers=who.headers)
    assert answer.status_code == 200, answer.text


def by_a2a(web: httpx.Client, who: Person, data: str, label: str) -> None:
    part = {"raw": data, "mediaType": label, "filename": "photo"}
    send(web, "echo", "", parts=[part], who=who)


def by_ag_ui(web: httpx.Client, who: Person, data: str, label: str) -> None:
    source = {"type": "data", "value": data, "mimeType": label}
    parts: list[Any] = [{"type": "text", "text": "Look"}, {"type": "image", "source": source}]
    message = {"id": "m1", "role": "user", "content": parts}
    events = run(web, "echo", {"threadId": "t1", "runId": "r1", "messages": [message]}, who)
    assert events[-1]["type"] == "RUN_FINISHED"


ROUTES: Final[list[Route]] = [by_uamp, by_completions, by_responses, by_a2a, by_ag_ui]


@pytest.mark.sampled
@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(
    ("data", "label", "stored", "item_type"),
    [
        (samples.MPO, "image/jpeg", "image/jpeg", "image"),
        (samples.JPEG, "image/jpg", "image/jpeg", "image"),
        (samples.PNG, "image/jpeg", "image/png", "image"),
        (samples.TIFF, "image/tiff", "image/tiff", "file"),
        (samples.HEIC, "image/heic", "image/heic", "file"),
    ],
)
def test_a_picture_arrives_as_what_it_is(
    web: httpx.Client,
    alice: Person,
    route: Route,
    data: bytes,
    label: str,
    stored: str,
    item_type: str,
) -> None:
    route(web, alice, base64.b64encode(data).decode(), label)

    assert Content.objects.get().mime_type == stored
    items = Message.objects.get(role="user").content_items
    assert [item["type"] for item in items if item["type"] != "text"] == [item_type]


def test_source_code_with_the_ending_of_a_film_is_a_text(web: httpx.Client, alice: Person) -> None:
    data = base64.b64encode(samples.TYPESCRIPT).decode()
    document = {"filename": "main.ts", "file_data": data}
    body = {"messages": [{"role": "user", "content": [{"type": "file", "file": document}]}]}

    assert ask(web, "echo", body, alice).status_code == 200
    assert Content.objects.get().mime_type == "text/plain"
    file = {"file": ("main.ts", samples.TYPESCRIPT, "video/mp2t")}
    uploaded = web.post("/api/v1/contents", files=file, headers=alice.headers).json()
    assert (uploaded["mime_type"], uploaded["item"]["type"]) == ("text/plain", "file")
