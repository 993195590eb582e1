"""Stored responses: reading them by id, and who may."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from django.utils import timezone

from chat_app.models import Participant
from sessions_app.models import Response, Session
from sessions_app.process import retention
from tests.client import wait_until
from tests.gateway_app.completions.requests import PIXEL
from tests.gateway_app.days import let_a_day_go_by
from tests.gateway_app.openai_responses.requests import (
    PICTURE,
    SEARCH,
    events_of,
    read,
    respond,
    text_of,
)
from tests.live_server import shared_chat
from tests.sessions_app.model_server import model_server, text_chunks
from tests.threads import thread_pool

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Person


def test_a_response_is_read_by_its_caller_alone(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    response = respond(web, "echo", {"instructions": "Be kind.", "temperature": 0.5}, alice).json()

    assert read(web, response["id"], alice).json() == response
    assert (response["instructions"], response["temperature"]) == ("Be kind.", 0.5)
    for other in (bob, None):
        missing = read(web, response["id"], other)
        assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
    for unknown in ("resp_" + "0" * 32, "x" * 300, "resp_" + "g" * 32):
        assert read(web, unknown, alice).status_code == 404
    elsewhere = web.get(f"/agents/thinker/responses/{response['id']}", headers=alice.headers)
    assert elsewhere.status_code == 404
    refused = web.delete(f"/v1/responses/{response['id']}", headers=alice.headers)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
    assert read(web, response["id"], alice).status_code == 200


def test_a_response_has_one_time_whenever_it_is_shown(web: httpx.Client, alice: Person) -> None:
    key = {"Idempotency-Key": "1"}
    response = respond(web, "echo", {}, alice, **key).json()
    began = timezone.now() - timedelta(hours=1)
    Response.objects.filter(pk=response["id"]).update(created_at=began)

    again = respond(web, "echo", {}, alice, **key).json()

    assert again == {**response, "created_at": int(began.timestamp())}
    assert read(web, response["id"], alice).json() == again


def test_a_person_who_left_a_chat_can_no_longer_read_its_responses(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    response = respond(web, "echo", {"conversation": chat.pk}, bob).json()
    assert read(web, response["id"], bob).status_code == 200

    left = Participant.objects.filter(chat=chat, user=bob.user)
    left.update(left_at=timezone.now())

    assert read(web, response["id"], bob).status_code == 404
    assert read(web, f"{response['id']}/input_items", bob).status_code == 404


def test_a_visitor_finds_a_response_by_its_id(web: httpx.Client) -> None:
    response = respond(web, "echo", {}).json()

    assert read(web, response["id"]).json() == response
    again = respond(web, "echo", {"previous_response_id": response["id"], "input": "Again"}).json()
    assert text_of(again) == "Again"


def test_an_unstored_response_cannot_be_read_and_is_deleted(
    web: httpx.Client, alice: Person
) -> None:
    response = respond(web, "echo", {"store": False}, alice).json()

    assert (text_of(response), response["store"]) == ("Hello there", False)
    assert read(web, response["id"], alice).status_code == 404
    more = respond(web, "echo", {"previous_response_id": response["id"]}, alice)
    assert more.json()["error"]["code"] == "previous_response_not_found"
    let_a_day_go_by()
    assert retention.sweep() == 1
    respond(web, "echo", {}, alice)
    let_a_day_go_by()
    assert retention.sweep() == 0


def test_answers_to_one_response_do_not_meet(web: httpx.Client, alice: Person) -> None:
    first = respond(web, "thinker", {}, alice).json()
    bodies = [{"previous_response_id": first["id"], "input": f"n{n}"} for n in range(4)]

    with thread_pool(4) as pool:
        answers = list(pool.map(lambda body: respond(web, "thinker", body, alice), bodies))

    said_ones = [text_of(answer.json()) for answer in answers]
    assert said_ones == [f"I thought about it. You asked: n{n}" for n in range(4)]


def test_a_conversation_has_a_bound(web: httpx.Client, alice: Person) -> None:
    many = [{"role": "user", "content": "x"}] * 500
    first = respond(web, "echo", {"input": many}, alice)
    assert first.status_code == 200, first.text

    more = respond(web, "echo", {"previous_response_id": first.json()["id"]}, alice)

    assert (more.status_code, more.json()["error"]["code"]) == (400, "too_many_items")


def test_a_client_that_leaves_ends_its_own_answer(demo: ServerAddress, alice: Person) -> None:
    with httpx.Client(base_url=demo.http, timeout=15, trust_env=False) as client:
        body = {"input": "Hello", "stream": True}
        for more, status in (({}, "cancelled"), ({"background": True}, "in_progress")):
            with client.stream(
                "POST", "/agents/slow/responses", json={**body, **more}, headers=alice.headers
            ) as stream:
                next(stream.iter_lines())
            newest = Response.objects.order_by("-created_at")
            wait_until(lambda: newest[0].status == status)  # noqa: B023 called at once
        client.post(f"/v1/responses/{newest[0].pk}/cancel", headers=alice.headers)


@pytest.mark.parametrize("stream", [False, True])
def test_the_same_request_under_a_key_has_the_same_answer(
    web: httpx.Client, alice: Person, *, stream: bool
) -> None:
    first = respond(web, "echo", {}, alice).json()
    body = {"stream": stream, "previous_response_id": first["id"], "input": "Again"}
    answers = [respond(web, "echo", body, alice, **{"Idempotency-Key": "1"}) for _ in range(2)]

    if stream:
        responses = [events_of(answer)[-1]["response"] for answer in answers]
    else:
        responses = [answer.json() for answer in answers]
    assert responses[0]["id"] == responses[1]["id"]
    assert text_of(responses[1]) == "Again"
    assert Response.objects.count() == 2


def test_the_session_of_a_request_has_little_of_it(web: httpx.Client, alice: Person) -> None:
    respond(web, "tool-user", {"tools": [SEARCH], "metadata": {"a": "b"}}, alice)

    extension = Session.objects.get().config["extensions"]["openai_responses"]
    assert extension["metadata"] == {"a": "b"}
    assert "tools" not in extension


@pytest.mark.parametrize("is_known", [True, False])
def test_a_picture_stays_in_the_conversation(
    web: httpx.Client, alice: Person, *, is_known: bool
) -> None:
    who = alice if is_known else None
    question = [{"role": "user", "content": [{"type": "input_text", "text": "Look"}, PICTURE]}]
    with model_server(text_chunks("A dot")) as model:
        model.agent()
        first = respond(web, "model", {"input": question}, who)
        more = {"previous_response_id": first.json()["id"], "input": "And now?"}
        second = respond(web, "model", more, who)

        assert second.status_code == 200, second.text
        assert PIXEL in json.dumps(model.last["messages"])
        roles = [m["role"] for m in model.last["messages"]]
    assert roles == ["user", "assistant", "user"]
