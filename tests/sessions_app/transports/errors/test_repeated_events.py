"""Events that are sent twice, on one connection or on two."""

import json

from tests.client import new_event, text_of
from tests.live_server import counted_rows
from tests.sessions_app.transports.errors.scenes import Scene


def test_a_repeated_response_create_names_its_first_response(scene: Scene) -> None:
    client = scene.client
    client.send("input.text", text="Hello")
    event = json.dumps(new_event("response.create"))
    client.send_raw(event)
    first = client.until("response.done")
    before = counted_rows()
    client.send_raw(event)
    again = client.settle()
    types = [frame["type"] for frame in again]
    assert types == ["response.created", "response.delta", "response.done"]
    assert again[0]["response_id"] == first[0]["response_id"]
    assert (again[1]["offset"], again[1]["delta"]["text"]) == (0, "Hello")
    assert again[2]["response"] == first[-1]["response"]
    assert again[2]["event_id"] == first[-1]["event_id"]
    assert counted_rows() == before


def test_a_repeated_input_counts_once(scene: Scene) -> None:
    event = json.dumps(new_event("input.text", text="Hello"))
    for _ in range(3):
        scene.client.send_raw(event)
    scene.client.send("response.create")
    assert text_of(scene.client.until("response.done")) == "Hello"


def test_a_repeated_session_create_gets_its_first_answer(scene: Scene) -> None:
    client = scene.dial(scene.alice)
    event = json.dumps(new_event("session.create", session={}, agent="echo"))
    client.send_raw(event)
    first = [client.receive(), client.receive()]
    before = counted_rows()
    client.send_raw(event)
    assert client.settle() == first
    assert counted_rows() == before


def test_an_event_id_counts_for_one_session_only(scene: Scene) -> None:
    """Otherwise one client could use up the ids of another one."""
    other = scene.dial(scene.bob)
    other.create_session(agent="echo")
    for client, text in ((scene.client, "one"), (other, "two")):
        client.send_raw(json.dumps({"type": "input.text", "event_id": "e1", "text": text}))
        client.send_raw(json.dumps({"type": "response.create", "event_id": "e2"}))
        assert text_of(client.until("response.done")) == text


def test_the_same_turn_again_on_another_connection_has_no_second_effect(scene: Scene) -> None:
    event = json.dumps(new_event("response.create"))
    scene.client.send("input.text", text="Hello")
    scene.client.send_raw(event)
    first = scene.client.until("response.done")
    scene.client.cut()
    again = scene.dial(scene.alice)
    again.create_session(resume={"session_id": scene.session_id, "after": first[-1]["seq"]})
    before = counted_rows()
    again.send_raw(event)
    frames = again.settle()
    types = [frame["type"] for frame in frames]
    assert types == ["response.created", "response.delta", "response.done"]
    assert frames[2]["response"] == first[-1]["response"]
    assert counted_rows() == before


def test_an_event_id_of_a_turn_with_another_body_is_refused_on_another_connection(
    scene: Scene,
) -> None:
    scene.client.send("input.text", text="Hello")
    event_id = scene.client.send("response.create")
    first = scene.client.until("response.done")
    scene.client.cut()
    again = scene.dial(scene.alice)
    again.create_session(resume={"session_id": scene.session_id, "after": first[-1]["seq"]})
    before = counted_rows()
    other = {"type": "response.create", "event_id": event_id, "response": {"instructions": "No."}}
    again.send_raw(json.dumps(other))
    assert again.expect("session.error")["error"]["code"] == "event_id_conflict"
    assert counted_rows() == before
