"""Chained responses, and references to their items."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from websockets.sync.client import connect

from chat_app.models import Message, Participant
from gateway_app.openai_responses import service
from tests.gateway_app.openai_responses.requests import SEARCH, read, respond, result, text_of
from tests.live_server import shared_chat
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    import httpx
    import pytest
    from pytest_django import Settings

    from chat_app.models import Chat
    from tests.client import UampClient
    from tests.conftest import ServerAddress
    from tests.live_server import Dial, Person


def test_a_chain_is_one_chat_with_the_conversation_of_its_own(
    web: httpx.Client, alice: Person
) -> None:
    with model_server(text_chunks("One"), text_chunks("Two"), text_chunks("Three")) as model:
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
    with model_server(
        *(text_chunks(word) for word in ("One", "Two", "Three", "Four", "Five"))
    ) as model:
        model.agent()
        first = respond(web, "model", {"input": "a"}, alice).json()
        second = respond(
            web, "model", {"input": "b", "previous_response_id": first["id"]}, alice
        ).json()
        inline = [{**first["output"][0], "role": "assistant"}, {"role": "user", "content": "c"}]
        third = respond(web, "model", {"input": inline}, alice).json()
        assert [m["content"] for m in model.last["messages"]][-2:] == ["One", "c"]
        question = Message.objects.get(response_id="", content="a")
        path = f"/api/v1/messages/{question.pk}"
        edited = web.patch(path, json={"content": "A"}, headers=alice.headers)
        said_one = Message.objects.get(response_id=first["id"])
        deleted = web.delete(f"/api/v1/messages/{said_one.pk}", headers=alice.headers)
        assert (edited.status_code, deleted.status_code) == (200, 204)

        for answer, before in ((second, ["A", "b", "Two"]), (third, ["c", "Three"])):
            items = read(web, f"{answer['id']}/input_items", alice, order="asc").json()["data"]
            assert [item["content"][0]["text"] for item in items] == before[:-1]
            more = {"previous_response_id": answer["id"], "input": "more"}
            last = respond(web, "model", more, alice).json()
            words = [message["content"] for message in model.last["messages"]]
            assert words[-len(before) - 1 :] == [*before, "more"]
            assert "One" not in words
        # What is kept of the last one is deleted as well.
        assert web.delete(path, headers=alice.headers).status_code == 204
        answer = respond(web, "model", {"previous_response_id": second["id"], "input": "x"}, alice)
        items = read(web, f"{answer.json()['id']}/input_items", alice, order="asc").json()["data"]
    assert [item["content"][0]["text"] for item in items] == ["b", "Two", "x"]
    assert "One" not in read(web, last["id"], alice).text


def test_a_deleted_answer_that_called_functions_is_not_restored(
    web: httpx.Client, alice: Person
) -> None:
    calling = call_chunks(("call_1", "search", "{}"), text="The word is plover.")
    with model_server(calling, text_chunks("Two"), text_chunks("Three")) as model:
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


def test_another_agent_continues_in_a_chat_of_its_own(web: httpx.Client, alice: Person) -> None:
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
    question = {"role": "user", "content": "And now?"}

    refused = respond(web, "echo", {"input": [*[reference] * 400, question]}, alice)

    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "event_too_large")
    assert refused.json()["error"]["param"] == "input"
    accepted = respond(web, "echo", {"input": [reference, reference, question]}, alice)
    assert text_of(accepted.json()) == "And now?"


def test_referenced_answers_are_read_up_to_a_size(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "READ_BYTES", 300_000)
    answers = [respond(web, "echo", {"input": "x" * 100_000}, alice).json() for _ in range(2)]
    # No items have these ids, so only the responses count.
    references = [
        {"type": "item_reference", "id": f"{answer['output'][0]['id'][:-1]}7"} for answer in answers
    ]

    alone = respond(web, "echo", {"input": references[:1]}, alice)
    both = respond(web, "echo", {"input": references}, alice)

    assert alone.status_code == 404
    assert (both.status_code, both.json()["error"]["code"]) == (400, "event_too_large")


def test_each_referenced_answer_counts_as_an_event(
    demo: ServerAddress, web: httpx.Client, alice: Person, settings: Settings
) -> None:
    settings.UAMP_HTTP_EVENTS_PER_MINUTE = 20
    many = [{"type": "item_reference", "id": f"msg_{number:032x}_0"} for number in range(30)]
    create = {"type": "response.create", "model": "echo", "input": many}

    few = respond(web, "echo", {"input": many[:15]}, alice)
    over_http = respond(web, "echo", {"input": many}, alice)
    with connect(f"{demo.ws}/v1/responses", additional_headers=alice.headers, proxy=None) as socket:
        socket.send(json.dumps(create))
        over_a_socket = json.loads(socket.recv(30))

    assert (few.status_code, few.headers["RateLimit-Remaining"]) == (404, "4")
    assert (over_http.status_code, over_http.json()["error"]["code"]) == (429, "rate_limited")
    assert (over_a_socket["status"], over_a_socket["error"]["code"]) == (429, "rate_limited")


def test_a_planted_origin_shows_no_text_of_a_chat_that_the_person_left(
    web: httpx.Client, dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob, agents=("echo",))
    body = {"content": "@echo draft", "wait": 20}
    path = f"/api/v1/chats/{chat.pk}/messages"
    sent_body = web.post(path, json=body, headers=alice.headers).json()
    foreign = sent_body["responses"][0]["id"]
    history = [("user", "x"), ("assistant", "y"), ("user", "z")]
    items = [{"role": role, "content": text} for role, text in history]
    response = respond(web, "echo", {"input": items}, bob)
    planted = {"store": True, "model": "echo", "metadata": {}, "origins": [[0, foreign, False]]}
    overwrite(dial(bob), response.headers["X-Session-Id"], planted)
    for is_member, seen in ((True, "secret 1"), (False, "x")):
        if not is_member:
            left = web.delete(
                f"/api/v1/chats/{chat.pk}/participants/{participant(chat, bob)}",
                headers=bob.headers,
            )
            assert left.status_code == 204, left.text
        edit = {"content": "secret 1" if is_member else "secret 2"}
        message = f"/api/v1/messages/{sent_body['message']['id']}"
        assert web.patch(message, json=edit, headers=alice.headers).status_code == 200
        shown_items = read(web, f"{response.json()['id']}/input_items", bob).json()["data"]
        assert shown_items[-1]["content"][0]["text"] == seen


def test_a_spoilt_extension_breaks_no_read(web: httpx.Client, dial: Dial, alice: Person) -> None:
    for spoilt in ({"store": True, "origins": "x"}, {"store": True, "origins": [[1]], "tools": 7}):
        response = respond(web, "echo", {}, alice)
        overwrite(dial(alice), response.headers["X-Session-Id"], spoilt)

        assert text_of(read(web, response.json()["id"], alice).json()) == "Hello there"
        assert read(web, f"{response.json()['id']}/input_items", alice).status_code == 200
    for nothing in ("x", [1], 7):
        response = respond(web, "echo", {}, alice)
        overwrite(dial(alice), response.headers["X-Session-Id"], nothing)

        assert read(web, response.json()["id"], alice).status_code == 404


def overwrite(client: UampClient, session_id: str, extension: Any) -> None:
    """Write the extension in which the Responses API stores its facts, as any client can."""
    resume = {"session_id": session_id, "after": 0}
    client.send("session.create", uamp_version="1.0", session={}, resume=resume)
    client.until("session.created", "session.resumed")
    changed = {"extensions": {"openai_responses": extension}}
    client.send("session.update", session_id=session_id, session=changed)
    client.until("session.updated")


def participant(chat: Chat, person: Person) -> int:
    """Return the id of a person's membership."""
    return Participant.objects.get(chat=chat, user=person.user).pk
