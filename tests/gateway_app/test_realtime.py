"""OpenAI's Realtime API on a WebSocket of the real server, in both dialects."""

from __future__ import annotations

import base64
import io
import json
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import ClientConnection, connect

from chat_app.log import fanout
from chat_app.models import Message
from payments_app.tokens import issuance
from sessions_app.models import Response, Session
from tests.sessions_app.billing.paid_agents import priced, rich, usd
from tests.sessions_app.model_server import called, model_server, said

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx
    from pytest_django import Settings

    from tests.conftest import ServerAddress
    from tests.live_server import Person

pytestmark = pytest.mark.any_database

Shown = dict[str, Any]
GA = "v1/realtime?model=echo"
BETA = "agents/echo/realtime"
SEARCH = {
    "type": "function",
    "name": "search",
    "description": "Searches",
    "parameters": {"type": "object", "properties": {"query": {"type": "string"}}},
}
END = "response.done"


class RealtimeClient:
    """A client that keeps what it is sent."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket

    def send(self, kind: str, **members: Any) -> None:
        """Send an event."""
        self.socket.send(json.dumps({"type": kind, **members}))

    def next(self) -> Shown:
        """Return the next event of the server, which has an id."""
        event: Shown = json.loads(self.socket.recv(timeout=60))
        assert event["event_id"]
        return event

    def until(self, kind: str) -> list[Shown]:
        """Return the events up to one of a type."""
        events = [self.next()]
        while events[-1]["type"] != kind:
            events.append(self.next())
        return events

    def ask(self, type: str, **members: Any) -> Shown:  # noqa: A002 - the member's name
        """Send an event and return the one that answers it."""
        self.send(type, **members)
        return self.next()

    def say(self, text: str, role: str = "user", **members: Any) -> Shown:
        """Put a message into the conversation, and return it as the server has it."""
        part = {"type": "text" if role == "assistant" else "input_text", "text": text}
        item = {"type": "message", "role": role, "content": [part], **members}
        created = self.ask("conversation.item.create", item=item)
        if created["type"] == "conversation.item.added":
            assert self.next()["type"] == "conversation.item.done"
        shown: Shown = created["item"]
        return shown

    def answer(self, **response: Any) -> Shown:
        """Ask for a response and return it, whole."""
        self.send("response.create", response=response)
        ended: Shown = self.until(END)[-1]["response"]
        return ended


Realtime = Callable[..., RealtimeClient]


@pytest.fixture
def realtime(demo: ServerAddress) -> Iterator[Realtime]:
    """Give a function that opens a socket."""
    with ExitStack() as sockets:

        def dial(
            path: str, who: Person | None = None, *, is_open: bool = True, **options: Any
        ) -> RealtimeClient:
            headers = {**(who.headers if who else {}), **options.pop("headers", {})}
            opened = connect(f"{demo.ws}/{path}", additional_headers=headers, proxy=None, **options)
            client = RealtimeClient(sockets.enter_context(opened))
            if is_open:
                assert client.next()["type"] == "session.created"
            return client

        yield dial


def picture() -> Shown:
    """Return a picture as a part of a message."""
    file = io.BytesIO()
    Image.new("RGB", (8, 6), "red").save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}


def types_of(events: list[Shown]) -> list[str]:
    """Return the types of events, a run of one type once."""
    types = [event["type"] for event in events]
    return [kind for n, kind in enumerate(types) if not n or types[n - 1] != kind]


def text_of(response: Shown) -> str:
    """Return the text of a response's messages."""
    parts = [part for item in response["output"] for part in item.get("content", ())]
    return "".join(part["text"] for part in parts)


# --- The two dialects ---


def test_a_response_has_the_events_of_ga_in_their_order(realtime: Realtime, alice: Person) -> None:
    client = realtime(GA, alice)
    client.say("Hello there")

    client.send("response.create")
    events = client.until(END)

    assert types_of(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "conversation.item.done",
        "response.done",
    ]
    deltas = [event for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) > 1
    response_id = events[0]["response"]["id"]
    item_id = events[1]["item"]["id"]
    for event in deltas:
        assert (event["response_id"], event["item_id"]) == (response_id, item_id)
        assert (event["output_index"], event["content_index"]) == (0, 0)
    assert "".join(event["delta"] for event in deltas) == "Hello there"
    assert events[3]["part"]["type"] == "text"
    ended = events[-1]["response"]
    assert (ended["id"], ended["status"]) == (response_id, "completed")
    assert ended["output"][0]["content"] == [{"type": "output_text", "text": "Hello there"}]
    assert ended["usage"]["total_tokens"] == 4
    assert Session.objects.get().transport == "realtime"


def test_a_response_has_the_events_of_the_beta_in_their_order(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime(BETA, alice)
    client.say("Hello there")

    client.send("response.create")
    events = client.until(END)

    assert types_of(events) == [
        "response.created",
        "response.output_item.added",
        "conversation.item.created",
        "response.content_part.added",
        "response.text.delta",
        "response.text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.done",
    ]
    assert events[-1]["response"]["output"][0]["content"] == [
        {"type": "text", "text": "Hello there"}
    ]


@pytest.mark.parametrize(
    ("path", "headers", "subprotocols", "is_ga"),
    [
        ("v1/realtime?model=echo", {}, (), True),
        ("realtime?model=echo", {}, (), True),
        ("agents/echo/v1/realtime?model=gpt-realtime", {}, (), True),
        ("agents/echo/realtime", {}, (), False),
        ("realtime?model=echo", {"OpenAI-Beta": "realtime=v1"}, (), False),
        ("realtime?model=echo", {}, ("realtime", "openai-beta.realtime-v1"), False),
    ],
)
def test_the_handshake_chooses_the_dialect(
    realtime: Realtime,
    path: str,
    headers: dict[str, str],
    subprotocols: tuple[str, ...],
    *,
    is_ga: bool,
) -> None:
    client = realtime(path, headers=headers, subprotocols=subprotocols or None, is_open=False)

    session = client.next()["session"]

    assert session["output_modalities" if is_ga else "modalities"] == ["text"]
    assert (session.get("type") == "realtime") is is_ga
    assert client.socket.subprotocol == ("realtime" if subprotocols else None)


def test_a_browser_shows_its_key_in_a_subprotocol(realtime: Realtime, alice: Person) -> None:
    key = alice.headers["Authorization"].removeprefix("Bearer ")
    offered = ["realtime", f"openai-insecure-api-key.{key}"]

    client = realtime(GA, subprotocols=offered)

    assert client.socket.subprotocol == "realtime"
    assert Session.objects.get().user_id == alice.user.pk


def test_an_update_with_the_type_of_ga_switches_to_ga(realtime: Realtime) -> None:
    client = realtime(BETA)

    updated = client.ask("session.update", session={"type": "realtime", "instructions": "Brief."})

    assert updated["type"] == "session.updated"
    assert updated["session"]["output_modalities"] == ["text"]
    assert updated["session"]["instructions"] == "Brief."
    client.say("Hello")
    client.send("response.create")
    assert "response.output_text.delta" in types_of(client.until(END))


@pytest.mark.parametrize(
    ("path", "code"),
    [("realtime?model=missing", 4404), ("realtime", 4404), (f"{BETA}?model={257 * 'm'}", 4404)],
)
def test_a_socket_without_an_agent_closes_with_an_error(
    realtime: Realtime, path: str, code: int
) -> None:
    client = realtime(path, is_open=False)

    assert client.next()["error"]["code"] == "agent_not_found"
    with pytest.raises(ConnectionClosed):
        client.next()
    assert client.socket.close_code == code


def test_a_host_that_is_not_served_is_refused(demo: ServerAddress, settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    sock = socket.create_connection(("127.0.0.1", int(demo.ws.rpartition(":")[2])))

    with pytest.raises(InvalidStatus) as refused:
        connect(f"ws://other.example/{GA}", sock=sock, proxy=None)

    assert refused.value.response.status_code == 403


# --- What reaches the model ---


def test_a_session_and_a_response_set_what_the_model_gets(
    realtime: Realtime, alice: Person
) -> None:
    with model_server(said("One"), said("Two")) as model:
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
        said_so_far = [m["content"] for m in model.last["messages"] if m["role"] != "system"]
        assert said_so_far == ["First", "One", "Second"]


def test_items_are_inserted_found_and_deleted(realtime: Realtime, alice: Person) -> None:
    with model_server(said("One")) as model:
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

        sent = json.dumps(model.last["messages"])
        assert sent.index("First") < sent.index("Second")
        assert "Gone" not in sent
        found = client.ask("conversation.item.retrieve", item_id="item_a")
        assert found["type"] == "conversation.item.retrieved"
        assert found["item"]["content"] == [{"type": "input_text", "text": "Second"}]


def test_a_picture_reaches_the_model(realtime: Realtime, alice: Person) -> None:
    with model_server(said("Red")) as model:
        model.agent()
        client = realtime("realtime?model=model", alice)
        parts = [{"type": "input_text", "text": "See"}, picture()]
        created = client.ask(**message(*parts), event_id="picture")
        client.next()
        assert created["item"]["content"] == parts

        assert text_of(client.answer()) == "Red"

        sent = model.last["messages"][-1]["content"]
        assert sent[-1]["type"] == "image_url"
        assert sent[0]["text"] == "See"


def test_calls_in_a_row_are_one_message_and_results_follow(
    realtime: Realtime, alice: Person
) -> None:
    with model_server(
        called(("one", "search", "{}"), ("two", "search", "{}"), text="Wait."), said("Done")
    ) as model:
        model.agent()
        client = realtime("realtime?model=model", alice)
        client.ask("session.update", session={"type": "realtime", "tools": [SEARCH]})
        client.say("Search twice")
        output = client.answer()["output"]
        assert [one["type"] for one in output] == ["message", "function_call", "function_call"]
        for call in output[1:]:
            result = {"type": "function_call_output", "call_id": call["call_id"], "output": "1"}
            client.ask(**item(**result))
            client.next()

        assert text_of(client.answer()) == "Done"

        sent = [m["role"] for m in model.last["messages"] if m["role"] != "system"]
        assert sent == ["user", "assistant", "tool", "tool"]


def test_a_response_beside_the_conversation_leaves_it_alone(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime(GA, alice)
    kept = client.say("Kept")
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
    reference = {"type": "item_reference", "id": kept["id"]}
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
    asked = client.until("tool.approval_required")[-1]

    client.send("tool.approve", call_id=asked["call_id"], response_id=asked["response_id"])
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


# --- The end of a response ---


def test_a_response_is_cancelled(realtime: Realtime, alice: Person) -> None:
    client = realtime("v1/realtime?model=slow", alice)
    client.say("Count")
    client.send("response.create")
    client.until("response.output_text.delta")
    client.send("response.create", event_id="second")
    refused = client.until("error")[-1]["error"]
    assert (refused["event_id"], refused["type"]) == ("second", "invalid_request_error")

    client.send("response.cancel")
    events = client.until(END)

    ended = events[-1]["response"]
    assert ended["status"] == "cancelled"
    assert ended["output"][0]["status"] == "incomplete"
    assert types_of(events)[-2] == "conversation.item.done"
    assert client.ask("response.cancel")["error"]["code"] == "nothing_to_cancel"


def test_a_response_that_fails_is_done_with_its_error(realtime: Realtime, alice: Person) -> None:
    client = realtime("v1/realtime?model=fail", alice)
    client.say("Hello")

    ended = client.answer()

    assert ended["status"] == "failed"
    assert ended["status_details"]["error"]["code"]
    client.say("Again")


# --- Payments ---


def test_an_unpaid_response_waits_for_a_payment(realtime: Realtime, alice: Person) -> None:
    priced("dear", per_answer="0.25")
    user_id = rich(alice).user.pk
    token = issuance.issue(key="token", user_id=user_id, amount=usd("1"), expires_in=600).token
    client = realtime("agents/dear/realtime", alice)
    client.say("Hello there")
    client.send("response.create")
    before = client.until("payment.required")
    required = before[-1]
    assert types_of(before) == ["response.created", "payment.required"]
    assert required["requirements"]["schemes"]

    client.send("payment.submit", payment={"scheme": "token", "token": token})
    events = client.until(END)

    assert "payment.accepted" in types_of(events)
    assert text_of(events[-1]["response"]) == "Hello there"
    assert Response.objects.count() == 1
    again = client.ask("payment.submit", payment={"scheme": "token", "token": token})
    while again["type"] == "payment.balance":
        again = client.next()
    assert again["error"]["code"] == "payment_not_due"


def test_a_growing_answer_waits_for_a_further_payment(realtime: Realtime, alice: Person) -> None:
    priced("growing", output_per_1k="1")
    user_id = rich(alice).user.pk
    tokens = [
        issuance.issue(key=f"t{n}", user_id=user_id, amount=usd(amount), expires_in=600).token
        for n, amount in enumerate(("0.6", "5"))
    ]
    client = realtime("agents/growing/realtime", alice)
    words = " ".join(f"word{n}" for n in range(800))
    client.say(words)
    client.send("response.create")
    client.until("payment.required")
    client.send("payment.submit", payment={"scheme": "token", "token": tokens[0]})
    client.until("response.text.delta")
    client.until("payment.required")

    client.send("payment.submit", payment={"scheme": "token", "token": tokens[1]})

    assert text_of(client.until(END)[-1]["response"]) == words
    assert Response.objects.count() == 1


# --- What is refused ---


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


def item(**members: Any) -> Shown:
    """Return the event that creates an item."""
    return {"type": "conversation.item.create", "item": members}


def message(*parts: Shown, role: str = "user") -> Shown:
    """Return the event that creates a message."""
    return item(type="message", role=role, content=list(parts))


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
def test_a_frame_that_is_no_event_is_answered(realtime: Realtime, frame: str) -> None:
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
    one = [message({"type": "input_text", "text": text})["item"]]
    assert client.answer(input=one)["status"] == "completed"

    refused = client.ask("response.create", response={"input": one})

    assert refused["error"]["code"] == "too_many_items"
    assert client.answer(input=one, conversation="none")["status"] == "completed"


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


def test_a_session_that_is_ended_elsewhere_closes_its_socket(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime(GA, alice)
    Session.objects.update(status="closed")

    assert client.next()["error"]["code"] == "unknown_session"
    with pytest.raises(ConnectionClosed):
        client.next()
    assert client.socket.close_code == 4404


def test_an_answer_that_is_written_anew_is_a_further_item(
    realtime: Realtime, alice: Person
) -> None:
    client = realtime("v1/realtime?model=slow", alice)
    client.say("Hello there")
    client.send("response.create")
    first = client.until("response.output_text.delta")[-1]
    running = Response.objects.get()
    replaced = fanout.text_message(
        chat_id=running.chat_id, response_id=running.pk, text="Another beginning"
    )
    fanout.publish_from_thread(running.chat_id, [replaced])

    deleted = client.until("conversation.item.deleted")
    written = client.until("response.output_text.delta")[-1]
    client.send("response.cancel")
    ended = client.until(END)[-1]["response"]

    assert deleted[-1]["item_id"] == first["item_id"]
    closed = next(e for e in deleted if e["type"] == "response.output_item.done")
    assert closed["item"]["status"] == "incomplete"
    assert written["delta"] == "Another beginning"
    assert written["item_id"] != first["item_id"]
    assert first["item_id"] not in {item["id"] for item in ended["output"]}
    retrieved = client.ask("conversation.item.retrieve", item_id=first["item_id"])
    assert retrieved["type"] == "error"


def test_items_are_what_their_messages_are_now(
    realtime: Realtime, web: httpx.Client, alice: Person
) -> None:
    with model_server(said("plover"), said("Two"), said("Three")) as model:
        model.agent()
        client = realtime("v1/realtime?model=model", alice)
        question = client.say("kestrel")
        answer = client.answer()["output"][0]
        asked, answered = Message.objects.order_by("seq")
        web.patch(f"/api/v1/messages/{asked.pk}", json={"content": "merlin"}, headers=alice.headers)
        web.delete(f"/api/v1/messages/{answered.pk}", headers=alice.headers)

        client.say("And now?")
        client.send("response.create")
        events = client.until(END)

        assert events[0]["type"] == "conversation.item.deleted"
        assert events[0]["item_id"] == answer["id"]
        words = [message["content"] for message in model.last["messages"]]
        assert words[-2:] == ["merlin", "And now?"]
        assert "plover" not in words
        found = client.ask("conversation.item.retrieve", item_id=question["id"])
        assert found["item"]["content"][0]["text"] == "merlin"
        web.delete(f"/api/v1/messages/{asked.pk}", headers=alice.headers)
        gone = client.ask("conversation.item.retrieve", item_id=question["id"])
        assert (gone["type"], gone["item_id"]) == ("conversation.item.deleted", question["id"])
        assert client.next()["error"]["param"] == "item_id"
