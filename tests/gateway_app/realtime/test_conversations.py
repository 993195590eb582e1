"""Realtime conversations as the model receives them, and calls and pictures in its answers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.gateway_app.realtime.client import (
    END,
    GA,
    SEARCH,
    Realtime,
    item,
    message,
    picture,
    text_of,
    types_of,
)
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database


# --- What reaches the model ---


def test_a_session_and_a_response_set_what_the_model_gets(
    realtime: Realtime, alice: Person
) -> None:
    with model_server(text_chunks("One"), text_chunks("Two")) as model:
        model.agent()
        client = realtime("agents/model/realtime", alice)
        client.ask(
            "session.update",
            session={
                "instructions": "Be brief.",
                "tools": [SEARCH],
                "tool_choice": "auto",
                "temperature": 0.7,
                "max_response_output_tokens": 50,
                "modalities": ["text", "audio"],
                "voice": "nova",
            },
        )
        client.say("First")
        assert text_of(client.answer()) == "One"
        first = model.last
        client.say("Second")
        client.answer(instructions="Be long.", temperature=0.2, max_output_tokens="inf")

        assert "Be brief." in json.dumps(first["messages"])
        assert (first["temperature"], first["max_tokens"]) == (0.7, 50)
        assert first["tools"][0]["function"]["name"] == "search"
        assert "Be long." in json.dumps(model.last["messages"])
        assert "Be brief." not in json.dumps(model.last["messages"])
        assert model.last["temperature"] == 0.2
        assert "max_tokens" not in model.last or model.last["max_tokens"] != 50
        written_text = [m["content"] for m in model.last["messages"] if m["role"] != "system"]
        assert written_text == ["First", "One", "Second"]


def test_items_are_inserted_found_and_deleted(realtime: Realtime, alice: Person) -> None:
    with model_server(text_chunks("One")) as model:
        model.agent()
        client = realtime("realtime?model=model", alice)
        first = client.say("Second", id="item_a")
        assert first["id"] == "item_a"
        early = {"type": "message", "role": "user", "content": [{"type": "text", "text": "First"}]}
        added = client.ask("conversation.item.create", item=early, previous_item_id="root")
        client.next()
        assert added["previous_item_id"] is None
        gone = client.say("Gone")
        deleted = client.ask("conversation.item.delete", item_id=gone["id"])
        assert (deleted["type"], deleted["item_id"]) == ("conversation.item.deleted", gone["id"])

        client.answer()

        prompt = json.dumps(model.last["messages"])
        assert prompt.index("First") < prompt.index("Second")
        assert "Gone" not in prompt
        reply = client.ask("conversation.item.retrieve", item_id="item_a")
        assert reply["type"] == "conversation.item.retrieved"
        assert reply["item"]["content"] == [{"type": "input_text", "text": "Second"}]


def test_a_picture_reaches_the_model(realtime: Realtime, alice: Person) -> None:
    with model_server(text_chunks("Red")) as model:
        model.agent()
        client = realtime("realtime?model=model", alice)
        parts = [{"type": "input_text", "text": "See"}, picture()]
        created = client.ask(**message(*parts), event_id="picture")
        client.next()
        assert created["item"]["content"] == parts

        assert text_of(client.answer()) == "Red"

        prompt_parts = model.last["messages"][-1]["content"]
        assert prompt_parts[-1]["type"] == "image_url"
        assert prompt_parts[0]["text"] == "See"


def test_calls_in_a_row_are_one_message_and_results_follow(
    realtime: Realtime, alice: Person
) -> None:
    with model_server(
        call_chunks(("one", "search", "{}"), ("two", "search", "{}"), text="Wait."),
        text_chunks("Done"),
    ) as model:
        model.agent()
        client = realtime("realtime?model=model", alice)
        client.ask("session.update", session={"type": "realtime", "tools": [SEARCH]})
        client.say("Search twice")
        output = client.answer()["output"]
        assert [output_item["type"] for output_item in output] == [
            "message",
            "function_call",
            "function_call",
        ]
        for call in output[1:]:
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}
            client.ask(**item(**result))
            client.next()

        assert text_of(client.answer()) == "Done"

        roles = [m["role"] for m in model.last["messages"] if m["role"] != "system"]
        assert roles == ["user", "assistant", "tool", "tool"]


def test_a_response_beside_the_conversation_leaves_it_alone(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime(GA, alice)
    item = client.say("Kept")
    part = {"type": "input_text", "text": "Beside"}
    message = {"type": "message", "role": "user", "content": [part]}

    client.send(
        "response.create",
        response={"conversation": "none", "input": [message], "metadata": {"for": "test"}},
    )
    events = client.until(END)

    assert text_of(events[-1]["response"]) == "Beside"
    assert events[-1]["response"]["metadata"] == {"for": "test"}
    assert not [kind for kind in types_of(events) if kind.startswith("conversation.")]
    reference = {"type": "item_reference", "id": item["id"]}
    assert text_of(client.answer(conversation="none", input=[reference])) == "Kept"
    item_id = events[-1]["response"]["output"][0]["id"]
    missing = client.ask("conversation.item.retrieve", item_id=item_id)
    assert missing["error"]["param"] == "item_id"


# --- Functions of the client ---


def test_a_function_of_the_client_is_called_and_answered(realtime: Realtime, alice: Person) -> None:
    client = realtime("v1/realtime?model=tool-user", alice)
    client.ask("session.update", session={"type": "realtime", "tools": [SEARCH]})
    client.say("weather")

    client.send("response.create")
    events = client.until(END)

    assert types_of(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    call = events[-1]["response"]["output"][0]
    assert (call["type"], call["name"]) == ("function_call", "search")
    assert json.loads(call["arguments"]) == {"query": "weather"}
    output = {"type": "function_call_output", "call_id": call["call_id"], "output": '"sunny"'}
    assert client.ask("conversation.item.create", item=output)["type"].endswith(".added")
    client.next()
    assert "sunny" in text_of(client.answer())


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_call_that_needs_approval_is_allowed_on_the_socket(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime("realtime?model=careful", alice)
    text = {"type": "input_text", "text": "black and white"}
    client.ask(**message(text, picture()))
    client.next()
    client.send("response.create")
    approval = client.until("tool.approval_required")[-1]

    client.send("tool.approve", call_id=approval["call_id"], response_id=approval["response_id"])
    events = client.until(END)

    assert "tool.approval_done" in types_of(events)
    assert events[-1]["response"]["status"] == "completed"
    assert "black and white" in text_of(events[-1]["response"])


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_picture_of_the_agent_is_a_link(
    realtime: Realtime, alice: Person, demo: ServerAddress
) -> None:
    client = realtime("realtime?model=studio", alice)
    text = {"type": "input_text", "text": "black and white"}
    client.ask(**message(text, picture()))
    client.next()

    answer = text_of(client.answer())

    assert f"]({demo.http}/api/content/" in answer
    assert answer.count("![") == 1
