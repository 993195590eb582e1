"""Nothing in, nothing run: a request without anything to answer is refused and costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import pytest
from websockets.sync.client import connect

from chat_app.models import ChatEvent, Message
from payments_app.models import Hold
from sessions_app.models import PaymentRequest, Response
from tests import factories
from tests.client import TERMINAL
from tests.gateway_app.a2a.calls import call, old_message, text_message
from tests.gateway_app.acp.socket_client import AcpClient
from tests.gateway_app.acp.test_one_shot import call as call_acp
from tests.gateway_app.ag_ui.runs import run_input
from tests.gateway_app.completions.requests import PICTURE, ask
from tests.gateway_app.openai_responses.requests import respond
from tests.gateway_app.openai_responses.test_socket import responses
from tests.gateway_app.realtime.client import realtime
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich

if TYPE_CHECKING:
    import httpx

    from tests.conftest import ServerAddress
    from tests.gateway_app.realtime.client import Realtime
    from tests.live_server import Dial, Person

__all__ = ["realtime"]

BLANK: Final = ("", " ", "\n\t ", "\u3000", "\u200b\u2060\ufeff\u00ad", "\u3164 \u2800")
NOTHING: Final = "There is nothing to answer"


@pytest.fixture(autouse=True)
def _paid(demo: object, alice: Person) -> None:
    """Let every answer cost something, and alice have money for it."""
    priced("dear", per_answer="0.25")
    rich(alice)


def nothing_ran() -> None:
    """Assert that nothing was said, asked or paid."""
    assert not Response.objects.exists()
    assert not Hold.objects.exists()
    assert not PaymentRequest.objects.exists()
    assert not Message.objects.exists()
    assert not ChatEvent.objects.filter(type__startswith="message").exists()


def _contents(kind: str) -> list[Any]:
    """Return contents of a message that say nothing, in OpenAI's words."""
    parts = [[{"type": kind, "text": text}] for text in BLANK]
    return [*BLANK, [], *parts, [{"type": kind, "text": ""}] * 3]


@pytest.mark.sampled(4)
@pytest.mark.parametrize("content", [*_contents("text"), None])
def test_completions(web: httpx.Client, alice: Person, content: Any) -> None:
    for messages in (
        [{"role": "user", "content": content}],
        [{"role": "system", "content": ""}, {"role": "user", "content": content}],
        [{"role": "user", "content": content}] * 3,
    ):
        for stream in (False, True):
            answer = ask(web, "dear", {"messages": messages, "stream": stream}, alice)
            assert (answer.status_code, NOTHING in answer.text) == (400, True), answer.text
    nothing_ran()


INPUTS: Final = [
    [],
    *BLANK,
    *([{"role": "user", "content": content}] for content in _contents("input_text")),
    [{"type": "message", "role": "developer", "content": ""}],
    [{"type": "reasoning", "id": "rs_1", "summary": []}],
]


@pytest.mark.sampled(6)
@pytest.mark.parametrize("empty_input", INPUTS)
def test_responses(web: httpx.Client, alice: Person, empty_input: Any) -> None:
    for more in ({}, {"stream": True}, {"background": True}, {"instructions": "Be brief."}):
        answer = respond(web, "dear", {"input": empty_input, **more}, alice)
        assert (answer.status_code, NOTHING in answer.text) == (400, True), answer.text
    nothing_ran()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("content", [*BLANK, [], [{"type": "text", "text": ""}]])
def test_ag_ui(web: httpx.Client, alice: Person, content: Any) -> None:
    user = {"id": "m1", "role": "user", "content": content}
    for messages in ([], [user], [{**user, "role": "system"}, user]):
        body = run_input("", messages=messages, state={"kept": True})
        answer = web.post("/agents/dear/agui", json=body, headers=alice.headers)
        assert (answer.status_code, NOTHING in answer.text) == (400, True), answer.text
    nothing_ran()
    # Not even the state: the request was refused as a whole.
    assert not ChatEvent.objects.exists()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("text", BLANK)
def test_a2a(web: httpx.Client, alice: Person, text: str) -> None:
    messages = {"SendMessage": text_message(text), "message/send": old_message(text)}
    for method, message in messages.items():
        error = call(web, "dear", method, {"message": message}, who=alice)["error"]
        assert (error["code"], NOTHING in error["message"]) == (-32602, True)
    for path, message in (
        ("a2a/rest/message:send", text_message(text)),
        ("a2a/rest/message:stream", text_message(text)),
        ("tasks", {"role": "user", "parts": [{"type": "text", "text": text}]}),
    ):
        answer = web.post(f"/agents/dear/{path}", json={"message": message}, headers=alice.headers)
        assert (answer.status_code, NOTHING in answer.text) == (400, True), answer.text
    nothing_ran()


@pytest.mark.parametrize("text", BLANK)
def test_acp(web: httpx.Client, alice: Person, text: str) -> None:
    messages = [{"role": "user", "content": text}]
    answer = call_acp(web, "dear", "prompt/submit", alice, messages=messages)
    assert NOTHING in answer["error"]["message"]
    nothing_ran()


def test_acp_on_a_socket(demo: ServerAddress, alice: Person) -> None:
    url = f"{demo.ws}/agents/dear/acp"
    with connect(url, additional_headers=alice.headers, proxy=None) as socket:
        client = AcpClient(socket)
        session_id = client.new_session()
        for text in BLANK:
            for prompt in ([{"type": "text", "text": text}], [{"type": "text", "text": text}] * 2):
                answer = client.call("session/prompt", sessionId=session_id, prompt=prompt)
                assert NOTHING in answer["error"]["message"]
    nothing_ran()


def test_responses_on_a_socket(demo: ServerAddress, alice: Person) -> None:
    with responses(demo, alice, "/agents/dear/responses") as client:
        for empty_input in INPUTS:
            assert NOTHING in client.ask(input=empty_input)["error"]["message"]
    nothing_ran()


def test_a_message_is_not_edited_into_nothing(web: httpx.Client, alice: Person) -> None:
    chat = shared_chat(alice)
    message = factories.message(chat, alice.user, "here")
    for text in BLANK:
        path = f"/api/v1/messages/{message.pk}"
        answer = web.patch(path, json={"content": text}, headers=alice.headers)
        assert answer.status_code == 400, answer.text
    message.refresh_from_db()
    assert message.content == "here"


@pytest.mark.parametrize("text", BLANK)
def test_uamp(dial: Dial, alice: Person, text: str) -> None:
    client = dial(alice)
    client.create_session(agent="dear")
    turns: list[tuple[list[str], dict[str, Any]]] = [
        ([text], {}),
        ([text, text], {}),
        ([], {}),
        ([], {"response": {"messages": []}}),
        ([], {"response": {"messages": [{"role": "user", "content": text}]}}),
        ([text], {"queue": True}),
    ]
    for texts, create in turns:
        for empty_text in texts:
            client.send("input.text", text=empty_text)
        client.send("response.create", **create)
        refused = client.until("session.error", *TERMINAL)[-1]
        assert refused["error"]["code"] == "invalid_event"
        assert NOTHING in refused["error"]["message"]
    nothing_ran()


@pytest.mark.parametrize("text", BLANK)
def test_realtime(realtime: Realtime, alice: Person, text: str) -> None:
    client = realtime("v1/realtime?model=dear", alice)
    client.send("response.create")
    assert NOTHING in client.until("error")[-1]["error"]["message"]
    client.say(text)
    client.send("response.create")
    assert NOTHING in client.until("error")[-1]["error"]["message"]
    nothing_ran()


@pytest.mark.parametrize("text", BLANK)
def test_a_shared_chat_has_no_blank_messages(
    web: httpx.Client, dial: Dial, alice: Person, text: str
) -> None:
    chat = shared_chat(alice, agents=("dear",), trigger="always")
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.send("input.text", text=text)
    client.send("response.create")
    assert client.until("session.error", *TERMINAL)[-1]["error"]["code"] == "invalid_event"
    headers = {**alice.headers, "X-Chat-Id": chat.pk}
    user = {"role": "user", "content": text}
    for path, body in (
        ("chat/completions", {"messages": [user]}),
        ("responses", {"input": text}),
        ("agents/dear/v1/messages", {"model": "m", "max_tokens": 9, "messages": [user]}),
        ("agents/dear/agui", run_input(text)),
        (f"api/v1/chats/{chat.pk}/messages", {"content": text}),
    ):
        answer = web.post(f"/{path}", json=body, headers=headers)
        assert answer.status_code in {400, 422}, answer.text
    assert not Message.objects.exists()
    nothing_ran()


# --- What says something ---


def test_what_says_something_is_answered(web: httpx.Client, alice: Person) -> None:
    for messages in (
        [{"role": "system", "content": "Greet me."}],
        [{"role": "system", "content": "Greet me."}, {"role": "user", "content": ""}],
        [{"role": "user", "content": [PICTURE]}],
        [{"role": "user", "content": "."}],
    ):
        assert ask(web, "echo", {"messages": messages}, alice).status_code == 200
    first = respond(web, "echo", {"input": "Hi"}, alice).json()
    again = respond(web, "echo", {"input": [], "previous_response_id": first["id"]}, alice)
    assert again.status_code == 200


def test_an_agent_may_speak_first_by_instructions(
    dial: Dial, realtime: Realtime, alice: Person
) -> None:
    client = dial(alice)
    client.create_session(agent="echo", session={"instructions": "Greet me."})
    client.send("response.create")
    assert client.until("session.error", *TERMINAL)[-1]["type"] == "response.done"
    spoken = realtime("v1/realtime?model=echo", alice)
    spoken.send("response.create", response={"instructions": "Greet me."})
    assert spoken.until("response.done")[-1]["response"]["status"] == "completed"


# --- The form of an answer ---

FORMATS: Final = {
    "json_object": {"type": "json_object"},
    "json_schema": {
        "type": "json_schema",
        "json_schema": {"name": "a", "schema": {"type": "object", "required": ["a"]}},
    },
}


@pytest.mark.sampled
@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize(
    ("script", "fits"),
    [("not json", False), ("[1]", False), ('"a"', False), ("{", False), ('{"a": 1}', True)],
)
def test_a_script_keeps_to_the_form_or_fails(
    web: httpx.Client, alice: Person, form: str, script: str, *, fits: bool
) -> None:
    messages = [{"role": "user", "content": script}]
    body = {"messages": messages, "response_format": FORMATS[form]}
    answer = ask(web, "echo", body, alice)
    assert (answer.status_code == 200) == fits, answer.text
    assert fits or answer.json()["error"]["code"] == "invalid_output"
    text = {"format": {"type": "json_object"}}
    answer = respond(web, "echo", {"input": script, "text": text}, alice)
    assert (answer.status_code == 200) == fits, answer.text
    assert fits or answer.json()["error"]["code"] == "invalid_output"
