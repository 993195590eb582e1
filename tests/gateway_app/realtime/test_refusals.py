"""Realtime events that are refused, and the limits of a session."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tests.gateway_app.realtime.client import END, GA, Realtime, Shown, item, message

if TYPE_CHECKING:
    from pytest_django import Settings

    from tests.live_server import Person

pytestmark = pytest.mark.any_database


def test_few_requests_left_are_sent_and_none_is_refused(
    realtime: Realtime, alice: Person, settings: Settings
) -> None:
    settings.UAMP_RESPONSES_PER_MINUTE = 1
    client = realtime(GA, alice)
    client.say("Hello there")
    client.send("response.create")
    limits = client.until(END)[0]
    assert limits["type"] == "rate_limits.updated"
    left = limits["rate_limits"][0]
    assert (left["name"], left["limit"], left["remaining"]) == ("requests", 1, 0)

    client.send("response.create", event_id="more")

    error = client.until("error")[-1]["error"]
    assert (error["code"], error["type"]) == ("rate_limited", "rate_limit_error")
    assert error["event_id"] == "more"
    client.say("Hello again")


@pytest.mark.sampled(9)
@pytest.mark.parametrize(
    ("event", "code", "param"),
    [
        ({"type": "session.fork"}, "invalid_event", "type"),
        ({"type": 5}, "invalid_event", "type"),
        ({}, "invalid_event", "type"),
        ({"type": "session.update"}, "invalid_event", None),
        (
            {"type": "session.update", "session": {"temperature": 9}},
            "invalid_event",
            "session.temperature",
        ),
        (
            {"type": "session.update", "session": {"max_output_tokens": 10**9}},
            "invalid_event",
            "session.max_output_tokens",
        ),
        (
            {"type": "session.update", "session": {"output_modalities": ["audio"]}},
            "unsupported_modality",
            "session.output_modalities",
        ),
        (
            {"type": "session.update", "session": {"type": "transcription"}},
            "unsupported_parameter",
            "session.type",
        ),
        (
            {"type": "response.create", "response": {"modalities": ["audio"]}},
            "unsupported_modality",
            "response.modalities",
        ),
        (
            {"type": "response.create", "response": {"audio": {"output": {"voice": "marin"}}}},
            "unsupported_modality",
            "response.audio.output.voice",
        ),
        (
            {"type": "response.create", "response": {"metadata": {"k": "v" * 513}}},
            "invalid_event",
            "response.metadata[...]",
        ),
        (
            {"type": "input_audio_buffer.append", "audio": "AAAA"},
            "unsupported_modality",
            "input_audio_buffer",
        ),
        ({"type": "input_audio_buffer.commit"}, "unsupported_modality", "input_audio_buffer"),
        ({"type": "input_audio_buffer.clear"}, "unsupported_modality", "input_audio_buffer"),
        (message({"type": "input_audio"}), "unsupported_modality", "item.content[0]"),
        (message({"type": "input_text"}), "invalid_event", "item.content[0].text"),
        (message({"type": "input_image"}), "invalid_event", "item.content[0].image_url"),
        (item(type="message", role="user"), "invalid_event", "item.content"),
        (
            item(type="function_call_output", call_id="none", output="1"),
            "invalid_event",
            "item.call_id",
        ),
        (item(type="item_reference", id="x"), "invalid_event", "item.type"),
        (
            {**message({"type": "input_text", "text": "x"}), "previous_item_id": "missing"},
            "invalid_event",
            "previous_item_id",
        ),
        (
            {"type": "conversation.item.retrieve", "item_id": "missing"},
            "invalid_event",
            "item_id",
        ),
        ({"type": "conversation.item.delete", "item_id": "missing"}, "invalid_event", "item_id"),
        (
            {
                "type": "conversation.item.truncate",
                "item_id": "missing",
                "content_index": 0,
                "audio_end_ms": 1,
            },
            "invalid_event",
            "item_id",
        ),
        ({"type": "response.cancel"}, "nothing_to_cancel", None),
        ({"type": "tool.approve", "call_id": "missing"}, "unknown_call", None),
    ],
)
def test_a_bad_event_is_answered_with_its_id_and_the_socket_stays(
    realtime: Realtime, event: Shown, code: str, param: str | None
) -> None:
    client = realtime(GA)
    client.socket.send(json.dumps({**event, "event_id": "mine"}))

    answer = client.next()

    assert answer["type"] == "error"
    error = answer["error"]
    assert (error["code"], error["param"], error["event_id"]) == (code, param, "mine")
    assert client.say("Hello")


@pytest.mark.parametrize("frame", ["{", "[]", '{"type":"response.create"'])
def test_a_frame_that_is_not_an_event_gets_an_error(realtime: Realtime, frame: str) -> None:
    client = realtime(GA)
    client.socket.send(frame)

    assert client.next()["error"]["event_id"] is None
    assert client.say("Hello")


def test_text_of_the_agent_is_not_truncated_as_audio(realtime: Realtime) -> None:
    client = realtime(GA)
    client.say("Hello")
    answer = client.answer()["output"][0]

    refused = client.ask(
        "conversation.item.truncate", item_id=answer["id"], content_index=0, audio_end_ms=0
    )

    assert refused["error"]["code"] == "unsupported_modality"


def test_a_conversation_is_bounded_in_items_and_in_bytes(realtime: Realtime, alice: Person) -> None:
    client = realtime(GA, alice)
    for _ in range(4):
        client.say("x" * 250_000)

    large = {"type": "input_text", "text": "x" * 250_000}
    client.socket.send(json.dumps(message(large)))

    assert client.next()["error"]["code"] == "too_many_items"


def test_an_answer_has_room_in_its_conversation(realtime: Realtime, alice: Person) -> None:
    client = realtime(GA, alice)
    text = "x" * 200_000
    for _ in range(5):
        assert client.say(text)["id"]
    items = [message({"type": "input_text", "text": text})["item"]]
    assert client.answer(input=items)["status"] == "completed"

    refused = client.ask("response.create", response={"input": items})

    assert refused["error"]["code"] == "too_many_items"
    assert client.answer(input=items, conversation="none")["status"] == "completed"


def test_references_count_as_often_as_they_are_there(realtime: Realtime, alice: Person) -> None:
    client = realtime(GA, alice)
    client.say("x" * 200_000, id="large")
    references = [{"type": "item_reference", "id": "large"}] * 500

    refused = client.ask("response.create", response={"input": references})

    assert refused["error"]["code"] == "event_too_large"
    assert client.answer(input=references[:2])["status"] == "completed"


def test_a_visitor_who_says_too_much_is_refused_and_the_socket_stays(realtime: Realtime) -> None:
    client = realtime(GA)
    for number in range(2):
        client.say("x" * 10_000, id=f"item{number}")

    assert client.ask("response.create")["error"]["code"] == "event_too_large"
    client.send("conversation.item.delete", item_id="item0")
    assert client.next()["type"] == "conversation.item.deleted"
    assert client.answer()["status"] == "completed"


def test_an_id_is_taken_once(realtime: Realtime) -> None:
    client = realtime(GA)
    client.say("Hello", id="one")
    again = {**message({"type": "input_text", "text": "x"})["item"], "id": "one"}

    assert client.ask("conversation.item.create", item=again)["error"]["param"] == "item.id"
