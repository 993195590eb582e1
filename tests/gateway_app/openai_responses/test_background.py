"""Background responses, their streams, and answers that wait."""

from __future__ import annotations

from typing import TYPE_CHECKING

import httpx
import pytest

from agents_app.providers import scripts
from sessions_app.models import Response
from tests.client import wait_until
from tests.gateway_app.openai_responses.requests import (
    PICTURE,
    events_of,
    read,
    respond,
    text_of,
    text_of_deltas,
)
from tests.live_server import quick_agent
from tests.sessions_app.billing.paid_agents import token_of
from upp.providers.scripted import Pause, Reasoning, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from tests.live_server import Person
    from upp import LLMRequest


def test_background_work_continues_and_can_be_cancelled(web: httpx.Client, alice: Person) -> None:
    response = respond(web, "echo", {"background": True}, alice).json()
    assert (response["background"], response["status"] in {"in_progress", "completed"}) == (
        True,
        True,
    )
    wait_until(lambda: read(web, response["id"], alice).json()["status"] == "completed")
    assert text_of(read(web, response["id"], alice).json()) == "Hello there"

    slow = respond(web, "slow", {"background": True}, alice).json()
    assert (slow["status"], slow["usage"]) == ("in_progress", None)
    too_early = respond(web, "slow", {"previous_response_id": slow["id"]}, alice)
    assert (too_early.status_code, too_early.json()["error"]["param"]) == (
        400,
        "previous_response_id",
    )
    ended = [
        web.post(f"/v1/responses/{slow['id']}/cancel", headers=alice.headers).json()
        for _ in range(2)
    ]
    assert [response_body["status"] for response_body in ended] == ["cancelled", "cancelled"]
    assert read(web, slow["id"], alice).json() == ended[0]
    stream = events_of(read(web, slow["id"], alice, stream="true"))
    assert stream[-1]["type"] == "response.incomplete"


def test_a_response_is_cancelled_by_its_caller_alone(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    slow = respond(web, "slow", {"background": True}, alice).json()

    refused = web.post(f"/v1/responses/{slow['id']}/cancel", headers=bob.headers)

    assert refused.status_code == 404
    assert read(web, slow["id"], alice).json()["status"] == "in_progress"
    web.post(f"/v1/responses/{slow['id']}/cancel", headers=alice.headers)


def test_a_stream_resumes_from_every_place(web: httpx.Client, alice: Person) -> None:
    events = events_of(respond(web, "thinker", {"stream": True}, alice))
    response_id = events[0]["response"]["id"]
    thoughts = "response.reasoning_summary_text.delta"
    last = events[-1]["sequence_number"]

    for place in range(0, last, 7):
        seen = [event for event in events if event["sequence_number"] <= place]
        # A client's place is that of an event that it has.
        after = seen[-1]["sequence_number"]
        rest = events_of(read(web, response_id, alice, stream="true", starting_after=after))

        assert rest[0]["sequence_number"] > after
        assert text_of_deltas([*seen, *rest]) == text_of_deltas(events)
        assert text_of_deltas([*seen, *rest], thoughts) == text_of_deltas(events, thoughts)
        assert rest[-1]["response"]["output"] == events[-1]["response"]["output"]
    assert read(web, response_id, alice, stream="true", starting_after=last).text == ""
    inside = events_of(read(web, response_id, alice, stream="true", starting_after=10))
    assert inside[0]["delta"].startswith(text_of_deltas(events, thoughts)[7:17])
    again = events_of(read(web, response_id, alice, stream="true"))
    assert [e for e in again if e["type"] == "response.output_item.done"] == [
        e for e in events if e["type"] == "response.output_item.done"
    ]


@pytest.mark.usefixtures("brisk")
def test_a_running_response_is_streamed_to_its_end(web: httpx.Client, alice: Person) -> None:
    response = respond(web, "slow", {"background": True}, alice).json()
    wait_until(lambda: bool(text_of(read(web, response["id"], alice).json())))
    web.timeout = httpx.Timeout(60)

    query: dict[str, str | int] = {"stream": "true", "starting_after": 8}
    events = events_of(read(web, response["id"], alice, **query))

    full_text = text_of(read(web, response["id"], alice).json())
    assert events[-1]["type"] == "response.completed"
    # Four events come before the text.
    assert text_of_deltas(events) == full_text[5:]


async def thoughtful(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
    """Think, say a word, and then nothing for a minute."""
    yield Reasoning("Hm.")
    yield Text("Well")
    yield Pause(60)


def test_a_place_among_thoughts_is_refused_while_an_answer_runs(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(scripts.SCRIPTS, "thoughtful", thoughtful)
    quick_agent("thoughtful", "thoughtful")
    response = respond(web, "thoughtful", {"background": True}, alice).json()
    wait_until(lambda: bool(text_of(read(web, response["id"], alice).json())))

    refused = read(web, response["id"], alice, stream="true", starting_after=5)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "starting_after")
    web.post(f"/v1/responses/{response['id']}/cancel", headers=alice.headers)
    events = events_of(read(web, response["id"], alice, stream="true", starting_after=5))
    assert text_of_deltas(events) == "Well"
    assert events[-1]["response"]["status"] == "cancelled"


@pytest.mark.usefixtures("celery_worker_thread")
def test_an_answer_that_needs_a_person_is_refused_or_waits(
    web: httpx.Client, alice: Person
) -> None:
    content = [{"type": "input_text", "text": "make it black and white"}, PICTURE]
    body = {"input": [{"role": "user", "content": content}]}

    refused = respond(web, "careful", body, alice)
    last = events_of(respond(web, "careful", {**body, "stream": True}, alice))[-1]
    background_response = respond(web, "careful", {**body, "background": True}, alice).json()

    assert (refused.status_code, refused.json()["error"]["code"]) == (403, "forbidden")
    assert (last["type"], last["code"]) == ("error", "forbidden")
    assert "edit_picture" in last["message"]
    ended = Response.objects.filter(status="cancelled")
    wait_until(lambda: ended.count() == 2)
    wait_until(lambda: Response.objects.get(pk=background_response["id"]).status == "waiting")
    assert read(web, background_response["id"], alice).json()["status"] == "in_progress"
    web.post(f"/v1/responses/{background_response['id']}/cancel", headers=alice.headers)
    assert read(web, background_response["id"], alice).json()["status"] == "cancelled"


def test_a_payment_header_pays_once_for_a_request_and_its_repeat(
    web: httpx.Client, alice: Person
) -> None:
    headers = {"X-PAYMENT": token_of(alice), "Idempotency-Key": "1"}

    for more in ({}, {"background": True}):
        first, again = (respond(web, "paid-echo", more, None, **headers) for _ in range(2))

        assert first.status_code == again.status_code == 200, first.text
        assert first.headers["PAYMENT-RESPONSE"]
        assert first.json()["id"] == again.json()["id"]
    assert Response.objects.count() == 2
