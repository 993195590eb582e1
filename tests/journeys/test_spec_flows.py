"""The flows drawn in UAMP's specification, frame by frame (§3, §5, §6, §9.1, §10.3, §14)."""

import json
import logging
import uuid
from typing import Any

import pytest

from sessions_app.access.auth import create_api_key
from sessions_app.models import Session
from tests.client import TERMINAL, UampClient, output_text, text_of
from tests.live_server import Dial, Person, counted_rows, person

pytestmark = pytest.mark.any_database

SEARCH_TOOL = {
    "type": "function",
    "function": {
        "name": "search",
        "description": "Search the web",
        "parameters": {
            "type": "object",
            "properties": {"query": {"type": "string"}},
            "required": ["query"],
        },
    },
}


# --- §3: the drawn flows ---


def test_basic_text_chat_is_the_drawn_sequence(dial: Dial) -> None:
    client = dial()
    client.send("session.create", uamp_version="1.0", session={"modalities": ["text"]})
    client.expect("session.created")
    client.expect("capabilities")
    client.send("input.text", text="What's the weather in Paris?")
    client.send("response.create")
    created = client.expect("response.created")
    deltas = client.until("response.done")
    done = deltas.pop()
    used = [frame for frame in deltas if frame["type"] == "usage.delta"]
    assert [frame["response_id"] for frame in used] == [created["response_id"]]
    deltas.remove(*used)
    assert {frame["type"] for frame in deltas} == {"response.delta"}
    assert {frame["response_id"] for frame in [*deltas, done]} == {created["response_id"]}
    assert done["response"]["id"] == created["response_id"]
    assert done["response"]["status"] == "completed"
    assert text_of(deltas) == output_text(done) != ""
    assert client.settle() == []


def test_every_frame_has_an_id_of_its_own_a_time_and_its_session(dial: Dial) -> None:
    client = dial()
    client.send("session.create", uamp_version="1.0", session={})
    created = client.expect("session.created")
    frames = [created, client.expect("capabilities"), *client.answer("one two")]
    assert len({uuid.UUID(frame["event_id"]) for frame in frames}) == len(frames)
    assert {frame["session_id"] for frame in frames} == {created["session_id"]}
    assert all(1.7e12 < frame["timestamp"] < 1e13 for frame in frames)


def test_a_tool_call_is_the_drawn_sequence(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH_TOOL]})
    client.ask("weather Paris")
    created = client.expect("response.created")
    call = client.expect("tool.call")
    assert call["name"] == "search"
    assert json.loads(call["arguments"]) == {"query": "weather Paris"}
    result = '{"temperature": 22, "unit": "celsius"}'
    client.send("tool.result", call_id=call["call_id"], result=result, is_error=False)
    frames = [f for f in client.until("response.done") if f["type"] != "usage.delta"]
    assert {frame["type"] for frame in frames[:-1]} == {"response.delta"}
    assert {frame["delta"]["type"] for frame in frames[:-1]} == {"text"}
    assert {frame["response_id"] for frame in frames} == {created["response_id"]}
    assert output_text(frames[-1]) == text_of(frames) == f"The tool answered: {result}"
    assert client.settle() == []


# --- §5.1, §6.1: the session ---


def test_session_created_echoes_what_was_asked(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    config = {
        "modalities": ["text"],
        "instructions": "You are a helpful assistant.",
        "tools": [SEARCH_TOOL],
        "voice": {"provider": "openai", "voice_id": "alloy"},
        "input_audio_format": "pcm16",
        "output_audio_format": "pcm16",
        "turn_detection": {"type": "server_vad", "threshold": 0.5, "silence_duration_ms": 500},
        "response_format": {
            "type": "json_schema",
            "json_schema": {
                "name": "weather",
                "schema": {"type": "object", "properties": {"temp": {"type": "number"}}},
                "strict": True,
            },
        },
        "extensions": {"openai": {"model": "gpt-4o", "temperature": 0.7}},
    }
    created = client.create_session(agent="echo", session=config)
    session = created["session"]
    row = Session.objects.get()
    assert created["uamp_version"] == "1.0"
    assert created["agent"] == session["agent"] == "echo"
    assert created["chat"] == row.chat_id
    assert session["id"] == created["session_id"] == row.pk
    assert session["created_at"] == int(row.created_at.timestamp())
    assert session["status"] == "active"
    assert session["config"] == config


def test_an_agent_is_echoed_as_it_was_written(dial: Dial) -> None:
    created = dial().create_session(agent="ECHO")
    assert created["agent"] == created["session"]["agent"] == "ECHO"


def test_the_path_of_an_agent_names_it(dial: Dial) -> None:
    for path in ("/agents/echo/uamp", "/echo/uamp"):
        client = dial(path=path)
        assert client.create_session()["agent"] == "echo"
        assert output_text(client.answer("one two")[-1]) == "one two"


def test_the_end_of_a_session_is_confirmed(dial: Dial) -> None:
    client = dial()
    created = client.create_session(agent="echo")
    client.send("session.end", reason="user_left")
    ended = client.expect("session.end")
    assert ended["session_id"] == created["session_id"]
    assert ended["reason"] == "user_left"
    row = Session.objects.get()
    assert (row.status, row.close_reason) == ("closed", "user_left")
    client.send("input.text", text="Hello", session_id=created["session_id"])
    assert client.expect("session.error")["error"]["code"] == "unknown_session"
    assert client.create_session(agent="echo")["session_id"] != created["session_id"]


# --- §5.2, §10.3: session.update ---


def test_an_update_changes_the_configuration(dial: Dial) -> None:
    client = dial()
    created = client.create_session(agent="tool-user", session={"instructions": "Be kind."})
    client.send("session.update", session={"tools": [SEARCH_TOOL]})
    updated = client.expect("session.updated")
    assert updated["session_id"] == created["session_id"]
    config = Session.objects.get().config
    assert config["instructions"] == "Be kind."
    assert config["tools"] == [SEARCH_TOOL]
    client.ask("anything")
    client.expect("response.created", "tool.call")


def test_a_new_token_of_the_same_person_is_taken(dial: Dial, alice: Person) -> None:
    client = dial()
    created = client.create_session(agent="echo", token=alice.key)
    client.send(
        "session.update",
        session_id=created["session_id"],
        token=create_api_key(alice.user, name="second"),
    )
    assert client.expect("session.updated")["session_id"] == created["session_id"]


def test_a_token_of_another_person_is_refused_and_the_old_one_stays(
    dial: Dial, alice: Person, bob: Person
) -> None:
    client = dial()
    created = client.create_session(agent="echo", token=alice.key)
    client.send("session.update", session_id=created["session_id"], token=bob.key)
    assert client.expect("session.error")["error"]["code"] == "unauthorized"
    assert output_text(client.answer("still here")[-1]) == "still here"
    assert Session.objects.get().user == alice.user


# --- §6.4, §9: capabilities ---

FLAGS = ("supports_streaming", "supports_thinking", "supports_caching")


def assert_is_capabilities(capabilities: dict[str, Any]) -> None:
    """Check the required fields of §9."""
    assert isinstance(capabilities["id"], str)
    assert isinstance(capabilities["provider"], str)
    assert "text" in capabilities["modalities"]
    assert all(isinstance(capabilities[flag], bool) for flag in FLAGS)


def test_capabilities_follow_the_session_and_answer_a_query(dial: Dial) -> None:
    client = dial()
    client.send("session.create", uamp_version="1.0", session={}, agent="tool-user")
    client.expect("session.created")
    announced = client.expect("capabilities")
    assert_is_capabilities(announced["capabilities"])
    assert announced["capabilities"]["tools"]["supports_tools"] is True
    client.send("capabilities.query")
    assert client.expect("capabilities")["capabilities"] == announced["capabilities"]
    client.send("capabilities.query", model="tool-user")
    assert client.expect("capabilities")["capabilities"] == announced["capabilities"]


def test_capabilities_can_be_asked_for_before_a_session(dial: Dial) -> None:
    client = dial()
    client.send("capabilities.query")
    answer = client.expect("capabilities")
    assert_is_capabilities(answer["capabilities"])
    assert "session_id" not in answer
    client.send("capabilities.query", model="no-such-model")
    assert client.expect("session.error")["error"]["code"] == "agent_not_found"


def test_client_capabilities_are_kept_from_both_events(dial: Dial) -> None:
    first = {
        "id": "web-app",
        "provider": "robutler",
        "modalities": ["text", "image", "audio"],
        "supports_streaming": True,
        "supports_thinking": False,
        "supports_caching": False,
        "widgets": ["chart", "table", "form"],
        "extensions": {"supports_html": True, "platform": "web"},
    }
    client = dial()
    client.create_session(agent="echo", client_capabilities=first)
    assert Session.objects.get().client_capabilities == first
    # As printed in §5.5: without the flags that §9 requires.
    second = {
        "id": "web-app",
        "provider": "robutler",
        "modalities": ["text", "image", "audio"],
        "supports_streaming": True,
        "widgets": ["chart", "table"],
    }
    client.send("client.capabilities", capabilities=second)
    assert client.settle() == []
    capabilities = Session.objects.get().client_capabilities
    assert capabilities is not None
    assert {name: capabilities[name] for name in second} == second


# --- §5.17, §14: keepalive, versions, unknown fields ---


def test_a_ping_is_answered_before_any_session(dial: Dial) -> None:
    client = dial()
    event_id = client.send("ping")
    pong = client.expect("pong")
    assert pong["reply_to"] == event_id
    assert "session_id" not in pong


def test_another_major_version_is_refused_and_the_socket_closed(dial: Dial) -> None:
    client = dial()
    before = counted_rows()
    event_id = client.send("session.create", uamp_version="2.0", session={})
    error = client.expect("response.error")["error"]
    assert error["code"] == "version_mismatch"
    assert error["details"] == {"event_id": event_id, "supported": ["1.0"]}
    assert client.close_code() == 4426
    assert counted_rows() == before


def test_a_newer_minor_version_is_spoken_with(dial: Dial) -> None:
    created = dial().create_session(uamp_version="1.7", agent="echo")
    assert created["uamp_version"] == "1.0"


@pytest.mark.parametrize(
    "event",
    [
        {"type": "brand.new", "event_id": "e1", "anything": [1, {"two": 3}]},
        {"type": "response.delta", "response_id": "r", "delta": {"type": "text", "text": "x"}},
        {"type": "system.stop", "event_id": "e2"},
    ],
    ids=["unknown", "of the server", "internal"],
)
def test_events_that_are_not_known_are_ignored(dial: Dial, event: dict[str, Any]) -> None:
    client = dial()
    client.create_session(agent="echo")
    before = counted_rows()
    client.send_raw(json.dumps(event))
    assert client.settle() == []
    assert counted_rows() == before


def test_an_event_of_an_unknown_type_is_logged(
    dial: Dial, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="sessions_app")
    client = dial()
    client.create_session(agent="echo")
    client.send("brand.new")
    assert client.settle() == []
    assert "ignored an event of the unknown type 'brand.new'" in caplog.messages


def test_fields_that_are_not_known_are_ignored(dial: Dial) -> None:
    client = dial()
    created = client.create_session(agent="echo", invented={"a": 1}, session={"invented": True})
    assert "invented" not in created["session"]["config"]
    client.send("input.text", text="Hello", mood="good")
    client.send("response.create", colour="blue", response={"shape": "round"})
    assert text_of(client.until("response.done")) == "Hello"


def test_the_socket_stays_open_after_a_done_response(dial: Dial) -> None:
    client: UampClient = dial()
    client.create_session(agent="echo")
    for text in ("one", "two", "three"):
        frames = client.answer(text)
        assert frames[-1]["type"] in TERMINAL
        assert text_of(frames) == text


def test_sessions_of_strangers_do_not_share_anything(dial: Dial) -> None:
    people = [person(name) for name in ("carol", "dave")]
    created = [dial(who).create_session(agent="echo") for who in people]
    assert created[0]["chat"] != created[1]["chat"]
