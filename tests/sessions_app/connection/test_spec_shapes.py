"""The specification's examples are accepted as printed, over a real socket (UAMP §5, §8)."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from chat_app.models import Message
from sessions_app.models import Session
from tests.client import TERMINAL, new_event, text_of
from tests.live_server import counted_rows, shared_chat
from tests.sessions_app.model_server import model_server

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Dial, Person

FALSY = {"temperature": 0, "instructions": ""}


# --- Options that are zero or empty ---


@pytest.mark.parametrize("place", ["response", "session"])
def test_an_option_that_is_zero_or_empty_reaches_the_provider(
    dial: Dial, alice: Person, place: str
) -> None:
    with model_server() as model:
        agent_options = {"params": {"temperature": 1.5}}
        model.agent(options=agent_options)
        client = dial(alice)
        session: dict[str, Any] = {"extensions": {"temperature": 0.7}, "instructions": "Be loud."}
        if place == "session":
            session = {"extensions": {"temperature": 0}}
        client.create_session(agent="model", session=session)
        client.send("input.text", text="Hi")
        client.send("response.create", response=FALSY if place == "response" else {})
        client.until("response.done")
        assert model.last["temperature"] == 0
        assert [m["role"] for m in model.last["messages"]] == ["user"]


# --- Options by vendor ---


def test_options_of_the_vendor_reach_it_and_no_others_do(dial: Dial, alice: Person) -> None:
    with model_server() as model:
        model.agent(options={"models": ["gpt-4o"], "params": {"top_p": 0.5, "seed": 3}})
        client = dial(alice)
        extensions = {
            "openai": {"model": "gpt-4o", "temperature": 0, "seed": 7, "stop": ["END"], "n": 9},
            "anthropic": {"thinking": True, "top_k": 5},
            "google": {"topK": 5},
        }
        client.create_session(agent="model", session={"extensions": extensions})
        client.answer("Hi")
        request = model.last
        assert (request["model"], request["temperature"], request["stop"]) == ("gpt-4o", 0, ["END"])
        assert (request["top_p"], request["seed"]) == (0.5, 7)
        assert not {"n", "thinking", "top_k", "topK"} & set(request)
        # What a response says counts more than its session.
        client.send("input.text", text="Hi")
        client.send("response.create", response={"temperature": 0.3})
        client.until("response.done")
        assert model.last["temperature"] == 0.3
        # A patch takes the place of all extensions; a model that is not offered is not taken.
        patch = {"extensions": {"openai": {"model": "o1-pro", "max_completion_tokens": 50}}}
        client.send("session.update", session=patch)
        client.expect("session.updated")
        client.answer("Hi")
        assert (model.last["model"], model.last["max_completion_tokens"]) == ("m", 50)
        assert "stop" not in model.last


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "openai",
    [
        {"temperature": "hot"},
        {"temperature": -1},
        {"max_tokens": -5},
        {"max_completion_tokens": 10**12},
        {"stop": [5]},
        {"seed": 0.5},
        {"reasoning_effort": "infinite"},
        {"top_p": 2},
        5,
    ],
)
def test_an_option_of_a_vendor_has_bounds(dial: Dial, alice: Person, openai: Any) -> None:
    client = dial(alice)
    session_id = client.create_session(agent="echo")["session_id"]
    before = counted_rows()
    session = {"extensions": {"openai": openai}}
    client.send("session.create", session=session, agent="echo")
    assert client.expect("session.error")["error"]["code"] == "invalid_event"
    client.send("session.update", session=session, session_id=session_id)
    assert client.expect("session.error")["error"]["code"] == "invalid_event"
    assert counted_rows() == before


# --- Media as URLs ---


@pytest.mark.parametrize("kind", ["image", "audio", "video", "file"])
def test_a_medium_as_a_plain_url_is_kept_as_one(dial: Dial, alice: Person, kind: str) -> None:
    url = f"https://example.com/a.{kind}"
    needed = {"filename": "a", "mime_type": "text/plain"} if kind == "file" else {"format": "mp3"}
    client = dial(alice)
    client.create_session(agent="echo")
    client.send(f"input.{kind}", **{kind: url}, **needed)
    assert text_of(client.answer("Look")) == "Look"
    items = Message.objects.get(role="user").content_items
    assert {"url": url} in [item.get(kind) for item in items]


# --- Roles ---


def test_an_unknown_role_is_refused_by_every_transport(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    client = dial(alice)
    session_id = client.create_session(agent="echo")["session_id"]
    before = counted_rows()
    wrong = [
        new_event("input.text", text="x", role="wizard"),
        new_event("input.text", text="x", messages=[{"role": "wizard", "content": "x"}]),
        new_event("response.create", response={"messages": [{"role": "wizard", "content": "x"}]}),
    ]
    for event in wrong:
        event_id = client.send(**_spread(event))
        error = client.expect("session.error")["error"]
        assert (error["code"], error["details"]["event_id"]) == ("invalid_event", event_id)
        headers = {**alice.headers, "X-Session-ID": session_id}
        posted = web.post("/events", json=event, headers=headers)
        assert (posted.status_code, posted.json()["code"]) == (400, "invalid_event")
        batch = [{**event, "session_id": session_id}]
        answered = web.post("/uamp", json=batch, headers=alice.headers).json()
        assert answered[-1]["error"]["code"] == "invalid_event"
    assert counted_rows() == before
    assert text_of(client.answer("Still here")) == "Still here"


def _spread(event: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in event.items() if name not in {"type", "event_id"}}
    return {"type_": event["type"], **fields}


# --- Which agent, which model ---


def test_an_agent_may_be_named_by_its_id(dial: Dial, alice: Person) -> None:
    agent = Agent.objects.get(name="echo")
    private = Agent.objects.create(name="hidden", options={"script": "echo"})
    client = dial(alice)
    created = client.create_session(agent=agent.pk)
    assert (created["agent"], created["session"]["agent_id"]) == (agent.pk, agent.pk)
    assert Session.objects.get().agent_id == agent.pk
    assert text_of(client.answer("Hi")) == "Hi"
    reported = []
    for name in (private.pk, f"agent_{'0' * 32}"):
        client.send("session.create", session={}, agent=name)
        error = client.expect("session.error")["error"]
        reported.append((error["code"], error["message"].replace(name, "ID")))
    assert reported[0] == reported[1]
    assert reported[0][0] == "agent_not_found"


def test_a_session_receives_what_its_server_does_with_chats(dial: Dial, alice: Person) -> None:
    able = []
    for chosen in ({}, {"agent": "echo"}):
        client = dial(alice)
        client.send("session.create", session={}, **chosen)
        announced = client.until("capabilities")[-1]["capabilities"]
        able.append(announced["conversation"])
    assert able[0] == able[1]
    assert "reaction.add" in able[0]["client_events"]
    assert "reaction.added" in able[0]["server_events"]
    assert "versions" in able[0]["features"]


def test_capabilities_of_a_model_are_those_of_an_agent_that_has_it(
    dial: Dial, alice: Person
) -> None:
    with model_server() as model:
        model.agent(model="gpt-4o", options={"models": ["gpt-4o-mini"], "context_window": 128_000})
        client = dial(alice)
        client.create_session(agent="echo")
        for name in ("gpt-4o", "gpt-4o-mini"):
            client.send("capabilities.query", model=name)
            reported = client.expect("capabilities")["capabilities"]
            assert (reported["id"], reported["context_window"]) == (name, 128_000)
            assert "image" in reported["modalities"]
        client.send("capabilities.query", model="model")
        assert client.expect("capabilities")["capabilities"]["id"] == "model"
        # A model that nothing here has: what answers in its place says its own name.
        client.send("capabilities.query", model="gpt-unknown")
        assert client.expect("capabilities")["capabilities"]["id"] == "echo"
        alone = dial(alice)
        alone.send("capabilities.query", model="gpt-4o")
        assert alone.expect("capabilities")["capabilities"]["id"] == "gpt-4o"
        alone.send("capabilities.query", model="gpt-unknown")
        assert alone.expect("session.error")["error"]["code"] == "agent_not_found"


def test_a_model_of_an_agent_of_another_person_is_not_reported(dial: Dial, bob: Person) -> None:
    with model_server() as model:
        model.agent(model="secret-model")
        Agent.objects.filter(name="model").update(is_public=False)
        client = dial(bob)
        client.send("capabilities.query", model="secret-model")
        assert client.expect("session.error")["error"]["code"] == "agent_not_found"


# --- A session that is refused ---


REFUSED_SESSIONS: list[tuple[dict[str, Any], int]] = [
    ({"agent": "missing"}, 4404),
    ({"chat": "chat_unknown"}, 4404),
    ({"resume": {"session_id": "sess_unknown"}}, 4404),
    ({"token": "uak_00000000_guessed"}, 4401),
    ({"session": 5}, 4400),
]


def test_a_refused_session_closes_a_socket_that_has_no_other(dial: Dial, alice: Person) -> None:
    clients = []
    for fields, code in REFUSED_SESSIONS:
        client = dial(alice)
        client.send("session.create", **{"uamp_version": "1.0", "session": {}, **fields})
        client.expect("session.error")
        clients.append((client, code))
    for client, code in clients:
        assert client.close_code() == code


def test_a_client_that_recovers_keeps_its_socket(dial: Dial, alice: Person) -> None:
    several, again = dial(alice), dial(alice)
    several.create_session(agent="echo")
    several.send("session.create", session={}, agent="missing")
    again.send("session.create", session={}, agent="missing")
    again.expect("session.error")
    again.send("session.create", session={}, agent="echo")
    again.until("capabilities")
    several.expect("session.error")
    # Longer than a client without a session may be silent.
    assert again.during(1.3) == several.during(0.01) == []
    for client in (several, again):
        assert text_of(client.answer("Hello")) == "Hello"


# --- Payment tokens ---


@pytest.mark.sampled(2)
@pytest.mark.parametrize("place", ["create", "update", "input", "header", "query"])
def test_a_foreign_payment_token_is_not_looked_at_while_nothing_is_due(
    dial: Dial, alice: Person, place: str
) -> None:
    path = "/uamp?payment_token=foreign" if place == "query" else "/uamp"
    headers = {"X-Payment-Token": "foreign"} if place == "header" else None
    client = dial(alice, path, headers)
    extra = {"payment_token": "foreign"} if place == "create" else {}
    client.create_session(agent="echo", **extra)
    if place == "update":
        client.send("session.update", payment_token="foreign")
        client.expect("session.updated")
    with_input = {"payment_token": "foreign"} if place == "input" else {}
    client.send("input.text", text="Hello", **with_input)
    client.send("response.create")
    frames = client.until(*TERMINAL)
    assert frames[-1]["type"] == "response.done"
    assert not [frame for frame in frames if frame["type"].startswith("payment.")]


# --- Calls ---


def test_a_call_needs_no_id_and_its_description_may_be_text(
    dial: Dial, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice, bob)
    caller, called = dial(alice), dial(bob)
    for client in (caller, called):
        client.send("session.create", session={}, chat=chat.pk)
        client.until("capabilities")
    caller.send("voice.accept")
    assert caller.until("session.error")[-1]["error"]["code"] == "call_not_found"
    caller.send("voice.invite", sdp="v=0 offer")
    received = called.until("voice.invite")[-1]
    assert received["sdp"] == {"type": "offer", "sdp": "v=0 offer"}
    assert received["from"] == str(alice.user.pk)
    invite = caller.until("voice.invite")[-1]
    assert invite["call_id"] == received["call_id"]
    called.send("voice.accept", sdp="v=0 answer")
    accept = caller.until("voice.accept")[-1]
    assert (accept["call_id"], accept["sdp"]["type"]) == (received["call_id"], "answer")
    caller.send("voice.end", duration_ms=5)
    assert called.until("voice.end")[-1]["call_id"] == received["call_id"]


def test_an_agent_declines_a_call(dial: Dial, alice: Person) -> None:
    for who in (alice, None):
        client = dial(who)
        client.create_session(agent="echo")
        client.send("voice.invite", sdp={"type": "offer", "sdp": "v=0"})
        assert client.expect("voice.decline")["reason"] == "unsupported"


# --- Sound ---

WAV = b"RIFF\x2c\x00\x00\x00WAVEfmt \x10\x00\x00\x00" + bytes(16) + b"data" + bytes(8)


def test_sound_reaches_a_model_that_accepts_audio(
    dial: Dial, web: httpx.Client, alice: Person
) -> None:
    with model_server() as model:
        model.agent(options={"audio": True})
        model.agent("deaf")
        reported = web.get("/agents/model/capabilities").json()
        assert "audio" in reported["modalities"]
        assert reported["audio"]["input_formats"] == ["wav", "mp3"]
        assert "audio" not in web.get("/agents/deaf/capabilities").json()["modalities"]
        assert "video" not in web.get("/capabilities").json()["modalities"]
        client = dial(alice)
        client.send("session.create", session={}, agent="model")
        assert "audio" in client.until("capabilities")[-1]["capabilities"]["modalities"]
        encoded = base64.b64encode(WAV).decode()
        client.send("input.audio", audio=encoded, format="wav", is_final=True)
        client.answer("What is said?")
        parts = model.last["messages"][-1]["content"]
        (sound,) = [part["input_audio"] for part in parts if part["type"] == "input_audio"]
        assert sound == {"data": encoded, "format": "wav"}
        # What it cannot hear it is not sent as a name.
        client.send("input.audio", audio="AAAA", format="pcm16", is_final=True)
        client.send("response.create")
        assert client.until("session.error")[-1]["error"]["code"] == "unsupported_modality"
