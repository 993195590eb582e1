"""Responses that their clients come back to: by their ids, in the background, by a chain."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING

import httpx
import pytest
from django.utils import timezone

from agents_app.providers import scripts
from chat_app.models import Message, Participant
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
    result,
    text_of,
    written,
)
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import token_of
from tests.sessions_app.model_server import called, model_server, said
from tests.threads import thread_pool
from upp.providers.scripted import Pause, Reasoning, Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from upp import LLMRequest


def test_a_response_is_read_by_its_caller_alone(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    made = respond(web, "echo", {"instructions": "Be kind.", "temperature": 0.5}, alice).json()

    assert read(web, made["id"], alice).json() == made
    assert (made["instructions"], made["temperature"]) == ("Be kind.", 0.5)
    for other in (bob, None):
        missing = read(web, made["id"], other)
        assert (missing.status_code, missing.json()["error"]["type"]) == (404, "not_found_error")
    for unknown in ("resp_" + "0" * 32, "x" * 300, "resp_" + "g" * 32):
        assert read(web, unknown, alice).status_code == 404
    elsewhere = web.get(f"/agents/thinker/responses/{made['id']}", headers=alice.headers)
    assert elsewhere.status_code == 404
    refused = web.delete(f"/v1/responses/{made['id']}", headers=alice.headers)
    assert (refused.status_code, refused.headers["Allow"]) == (405, "GET, HEAD")
    assert read(web, made["id"], alice).status_code == 200


def test_a_response_has_one_time_whenever_it_is_shown(web: httpx.Client, alice: Person) -> None:
    key = {"Idempotency-Key": "1"}
    made = respond(web, "echo", {}, alice, **key).json()
    began = timezone.now() - timedelta(hours=1)
    Response.objects.filter(pk=made["id"]).update(created_at=began)

    again = respond(web, "echo", {}, alice, **key).json()

    assert again == {**made, "created_at": int(began.timestamp())}
    assert read(web, made["id"], alice).json() == again


def test_who_has_left_a_chat_reads_nothing_of_it_any_more(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    made = respond(web, "echo", {"conversation": chat.pk}, bob).json()
    assert read(web, made["id"], bob).status_code == 200

    left = Participant.objects.filter(chat=chat, user=bob.user)
    left.update(left_at=timezone.now())

    assert read(web, made["id"], bob).status_code == 404
    assert read(web, f"{made['id']}/input_items", bob).status_code == 404


def test_a_visitor_finds_a_response_by_its_id(web: httpx.Client) -> None:
    made = respond(web, "echo", {}).json()

    assert read(web, made["id"]).json() == made
    again = respond(web, "echo", {"previous_response_id": made["id"], "input": "Again"}).json()
    assert text_of(again) == "Again"


def test_what_is_not_stored_cannot_be_read_and_goes(web: httpx.Client, alice: Person) -> None:
    made = respond(web, "echo", {"store": False}, alice).json()

    assert (text_of(made), made["store"]) == ("Hello there", False)
    assert read(web, made["id"], alice).status_code == 404
    more = respond(web, "echo", {"previous_response_id": made["id"]}, alice)
    assert more.json()["error"]["code"] == "previous_response_not_found"
    let_a_day_go_by()
    assert retention.sweep() == 1
    respond(web, "echo", {}, alice)
    let_a_day_go_by()
    assert retention.sweep() == 0


def test_a_chain_is_one_chat_with_the_conversation_of_its_own(
    web: httpx.Client, alice: Person
) -> None:
    with model_server(said("One"), said("Two"), said("Three")) as model:
        model.agent()
        first = respond(web, "model", {"input": "a", "instructions": "Be kind."}, alice)
        more = {"previous_response_id": first.json()["id"]}
        second = respond(web, "model", {**more, "input": "b"}, alice)
        words = [message["content"] for message in model.last["messages"]]
        assert words[-3:] == ["a", "One", "b"]
        assert "Be kind." not in str(words)
        # Another answer to the first one knows nothing of the second.
        respond(web, "model", {**more, "input": "c"}, alice)
        assert [m["content"] for m in model.last["messages"]][-3:] == ["a", "One", "c"]
        longer = {"previous_response_id": second.json()["id"], "input": "d"}
        third = respond(web, "model", longer, alice).json()
        assert [m["content"] for m in model.last["messages"]][-5:] == ["a", "One", "b", "Two", "d"]

    assert first.headers["X-Chat-Id"] == second.headers["X-Chat-Id"]
    assert third["previous_response_id"] == second.json()["id"]
    items = read(web, f"{third['id']}/input_items", alice, order="asc", limit=3).json()
    assert [item["content"][0]["text"] for item in items["data"]] == ["a", "One", "b"]
    assert (items["has_more"], items["first_id"]) == (True, items["data"][0]["id"])
    rest = read(
        web, f"{third['id']}/input_items", alice, order="asc", after=items["last_id"]
    ).json()
    assert [item["content"][0]["text"] for item in rest["data"]] == ["Two", "d"]
    assert not rest["has_more"]
    newest = read(web, f"{third['id']}/input_items", alice).json()["data"][0]
    assert newest["content"] == [{"type": "input_text", "text": "d"}]


def test_a_chain_has_no_deleted_message_and_edited_ones_as_they_are(
    web: httpx.Client, alice: Person
) -> None:
    with model_server(*(said(word) for word in ("One", "Two", "Three", "Four", "Five"))) as model:
        model.agent()
        first = respond(web, "model", {"input": "a"}, alice).json()
        second = respond(
            web, "model", {"input": "b", "previous_response_id": first["id"]}, alice
        ).json()
        inline = [{**first["output"][0], "role": "assistant"}, {"role": "user", "content": "c"}]
        third = respond(web, "model", {"input": inline}, alice).json()
        assert [m["content"] for m in model.last["messages"]][-2:] == ["One", "c"]
        asked = Message.objects.get(response_id="", content="a")
        path = f"/api/v1/messages/{asked.pk}"
        edited = web.patch(path, json={"content": "A"}, headers=alice.headers)
        said_one = Message.objects.get(response_id=first["id"])
        deleted = web.delete(f"/api/v1/messages/{said_one.pk}", headers=alice.headers)
        assert (edited.status_code, deleted.status_code) == (200, 204)

        for answer, before in ((second, ["A", "b", "Two"]), (third, ["c", "Three"])):
            shown = read(web, f"{answer['id']}/input_items", alice, order="asc").json()["data"]
            assert [item["content"][0]["text"] for item in shown] == before[:-1]
            more = {"previous_response_id": answer["id"], "input": "more"}
            last = respond(web, "model", more, alice).json()
            words = [message["content"] for message in model.last["messages"]]
            assert words[-len(before) - 1 :] == [*before, "more"]
            assert "One" not in words
        # What is kept of the last one is deleted as well.
        assert web.delete(path, headers=alice.headers).status_code == 204
        answer = respond(web, "model", {"previous_response_id": second["id"], "input": "x"}, alice)
        shown = read(web, f"{answer.json()['id']}/input_items", alice, order="asc").json()["data"]
    assert [item["content"][0]["text"] for item in shown] == ["b", "Two", "x"]
    assert "One" not in read(web, last["id"], alice).text


def test_a_deleted_answer_that_called_functions_is_not_restored(
    web: httpx.Client, alice: Person
) -> None:
    calling = called(("call_1", "search", "{}"), text="The word is plover.")
    with model_server(calling, said("Two"), said("Three")) as model:
        model.agent()
        first = respond(web, "model", {"tools": [SEARCH]}, alice).json()
        call = next(item for item in first["output"] if item["type"] == "function_call")
        body = {"tools": [SEARCH], "input": [{"role": "user", "content": "Hi"}, call, result(call)]}
        respond(web, "model", body, alice)
        assert "plover" in str(model.last["messages"])
        message = Message.objects.get(response_id=first["id"])
        web.delete(f"/api/v1/messages/{message.pk}", headers=alice.headers)

        again = respond(web, "model", body, alice)

    assert again.status_code == 200
    assert "three cats" in str(model.last["messages"])
    assert "plover" not in str(model.last["messages"])


def test_another_agent_goes_on_in_a_chat_of_its_own(web: httpx.Client, alice: Person) -> None:
    first = respond(web, "echo", {}, alice)
    more = {"input": "Again", "model": "thinker", "previous_response_id": first.json()["id"]}

    second = web.post("/v1/responses", json=more, headers=alice.headers)
    third = web.post(
        "/v1/responses",
        json={"input": "More", "previous_response_id": first.json()["id"]},
        headers=alice.headers,
    )

    assert "You asked: Again" in text_of(second.json())
    assert second.headers["X-Chat-Id"] != first.headers["X-Chat-Id"]
    assert (text_of(third.json()), third.json()["model"]) == ("More", "echo")


def test_calls_and_results_have_to_fit(web: httpx.Client, alice: Person) -> None:
    first = respond(web, "tool-user", {"tools": [SEARCH]}, alice).json()
    (call,) = first["output"]
    more = {"previous_response_id": first["id"], "tools": [SEARCH]}

    without = respond(web, "tool-user", {**more, "input": "What now?"}, alice)
    unknown = [{**result(call), "call_id": "call_x"}]
    wrong = respond(web, "tool-user", {**more, "input": unknown}, alice)
    alone = respond(web, "tool-user", {"input": [result(call)]}, alice)
    hanging = respond(web, "tool-user", {"input": [call]}, alice)

    for answer, said_id in (
        (without, call["call_id"]),
        (wrong, "call_x"),
        (alone, call["call_id"]),
        (hanging, call["call_id"]),
    ):
        assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")
        assert said_id in answer.json()["error"]["message"]


def test_references_are_items_of_stored_answers(
    web: httpx.Client, alice: Person, bob: Person
) -> None:
    (call,) = respond(web, "tool-user", {"tools": [SEARCH]}, alice).json()["output"]
    reference = {"type": "item_reference", "id": call["id"]}
    body = {"tools": [SEARCH], "input": [{"role": "user", "content": "Hi"}, reference]}
    body["input"].append(result(call))

    assert text_of(respond(web, "tool-user", body, alice).json()) == "The tool answered: three cats"
    foreign = respond(web, "tool-user", body, bob)
    assert (foreign.status_code, foreign.json()["error"]["param"]) == (404, "input[1]")
    many = [{"type": "item_reference", "id": f"msg_{number:032x}_0"} for number in range(60)]
    answer = respond(web, "echo", {"input": many}, alice)
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "input")


def test_references_count_as_often_as_they_are_there(web: httpx.Client, alice: Person) -> None:
    (large,) = respond(web, "echo", {"input": "x" * 200_000}, alice).json()["output"]
    reference = {"type": "item_reference", "id": large["id"]}
    asked = {"role": "user", "content": "And now?"}

    refused = respond(web, "echo", {"input": [*[reference] * 400, asked]}, alice)

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "event_too_large")
    assert refused.json()["error"]["param"] == "input"
    taken = respond(web, "echo", {"input": [reference, reference, asked]}, alice)
    assert text_of(taken.json()) == "And now?"


def test_work_in_the_background_goes_on_and_is_cancelled(web: httpx.Client, alice: Person) -> None:
    made = respond(web, "echo", {"background": True}, alice).json()
    assert (made["background"], made["status"] in {"in_progress", "completed"}) == (True, True)
    wait_until(lambda: read(web, made["id"], alice).json()["status"] == "completed")
    assert text_of(read(web, made["id"], alice).json()) == "Hello there"

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
    assert [one["status"] for one in ended] == ["cancelled", "cancelled"]
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


def test_a_stream_goes_on_from_every_place(web: httpx.Client, alice: Person) -> None:
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
        assert written([*seen, *rest]) == written(events)
        assert written([*seen, *rest], thoughts) == written(events, thoughts)
        assert rest[-1]["response"]["output"] == events[-1]["response"]["output"]
    assert read(web, response_id, alice, stream="true", starting_after=last).text == ""
    inside = events_of(read(web, response_id, alice, stream="true", starting_after=10))
    assert inside[0]["delta"].startswith(written(events, thoughts)[7:17])
    again = events_of(read(web, response_id, alice, stream="true"))
    assert [e for e in again if e["type"] == "response.output_item.done"] == [
        e for e in events if e["type"] == "response.output_item.done"
    ]


@pytest.mark.usefixtures("brisk")
def test_a_running_response_is_streamed_to_its_end(web: httpx.Client, alice: Person) -> None:
    made = respond(web, "slow", {"background": True}, alice).json()
    wait_until(lambda: bool(text_of(read(web, made["id"], alice).json())))
    web.timeout = httpx.Timeout(60)

    query: dict[str, str | int] = {"stream": "true", "starting_after": 8}
    events = events_of(read(web, made["id"], alice, **query))

    whole = text_of(read(web, made["id"], alice).json())
    assert events[-1]["type"] == "response.completed"
    # Four events come before the text.
    assert written(events) == whole[5:]


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
    made = respond(web, "thoughtful", {"background": True}, alice).json()
    wait_until(lambda: bool(text_of(read(web, made["id"], alice).json())))

    refused = read(web, made["id"], alice, stream="true", starting_after=5)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "starting_after")
    web.post(f"/v1/responses/{made['id']}/cancel", headers=alice.headers)
    events = events_of(read(web, made["id"], alice, stream="true", starting_after=5))
    assert written(events) == "Well"
    assert events[-1]["response"]["status"] == "cancelled"


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
        asked = {"input": "Hello", "stream": True}
        for more, status in (({}, "cancelled"), ({"background": True}, "in_progress")):
            with client.stream(
                "POST", "/agents/slow/responses", json={**asked, **more}, headers=alice.headers
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
        made = [events_of(answer)[-1]["response"] for answer in answers]
    else:
        made = [answer.json() for answer in answers]
    assert made[0]["id"] == made[1]["id"]
    assert text_of(made[1]) == "Again"
    assert Response.objects.count() == 2


def test_the_session_of_a_request_has_little_of_it(web: httpx.Client, alice: Person) -> None:
    respond(web, "tool-user", {"tools": [SEARCH], "metadata": {"a": "b"}}, alice)

    kept = Session.objects.get().config["extensions"]["openai_responses"]
    assert kept["metadata"] == {"a": "b"}
    assert "tools" not in kept


@pytest.mark.parametrize("is_known", [True, False])
def test_a_picture_stays_in_the_conversation(
    web: httpx.Client, alice: Person, *, is_known: bool
) -> None:
    who = alice if is_known else None
    asked = [{"role": "user", "content": [{"type": "input_text", "text": "Look"}, PICTURE]}]
    with model_server(said("A dot")) as model:
        model.agent()
        first = respond(web, "model", {"input": asked}, who)
        more = {"previous_response_id": first.json()["id"], "input": "And now?"}
        second = respond(web, "model", more, who)

        assert second.status_code == 200, second.text
        assert PIXEL in json.dumps(model.last["messages"])
        shown = [m["role"] for m in model.last["messages"]]
    assert shown == ["user", "assistant", "user"]


@pytest.mark.usefixtures("celery_worker_thread")
def test_an_answer_that_needs_a_person_is_refused_or_waits(
    web: httpx.Client, alice: Person
) -> None:
    content = [{"type": "input_text", "text": "make it black and white"}, PICTURE]
    body = {"input": [{"role": "user", "content": content}]}

    whole = respond(web, "careful", body, alice)
    last = events_of(respond(web, "careful", {**body, "stream": True}, alice))[-1]
    kept = respond(web, "careful", {**body, "background": True}, alice).json()

    assert (whole.status_code, whole.json()["error"]["code"]) == (403, "forbidden")
    assert (last["type"], last["code"]) == ("error", "forbidden")
    assert "edit_picture" in last["message"]
    ended = Response.objects.filter(status="cancelled")
    wait_until(lambda: ended.count() == 2)
    wait_until(lambda: Response.objects.get(pk=kept["id"]).status == "waiting")
    assert read(web, kept["id"], alice).json()["status"] == "in_progress"
    web.post(f"/v1/responses/{kept['id']}/cancel", headers=alice.headers)
    assert read(web, kept["id"], alice).json()["status"] == "cancelled"


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
