"""The Responses API on a WebSocket."""

from __future__ import annotations

import json
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from agents_app.providers import scripts
from payments_app.models import Hold
from payments_app.tokens import issuance
from sessions_app.models import Response, Session
from tests.gateway_app.openai_responses.requests import SEARCH, read, respond, text_of
from tests.live_server import shared_chat
from tests.sessions_app.billing.paid_agents import priced, rich, token_of, usd
from tests.sessions_app.response.approval.questions import TOOLS, asker, task
from tests.sessions_app.turn.delegation import doer, task_for
from tests.sessions_app.turn.team_tools import order
from upp.providers.scripted import Step, Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    import httpx
    from pytest_django import Settings
    from websockets.sync.client import ClientConnection

    from agents_app.selectors import AgentSpec
    from tests.conftest import ServerAddress
    from tests.live_server import Person
    from upp import LLMRequest

pytestmark = pytest.mark.any_database

ENDS = ("response.completed", "response.incomplete", "response.failed", "error")


class Client:
    """A client of the socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket

    def send(self, event: Any) -> None:
        """Send an event, or a frame as it is."""
        self._socket.send(event if isinstance(event, str) else json.dumps(event))

    def events(self) -> list[dict[str, Any]]:
        """Return the events up to the end of a response."""
        seen: list[dict[str, Any]] = []
        while not seen or seen[-1]["type"] not in ENDS:
            seen.append(json.loads(self._socket.recv(30)))
        return seen

    def ask(self, **body: Any) -> dict[str, Any]:
        """Ask, and return the last event."""
        self.send({"type": "response.create", "model": "echo", **body})
        return self.events()[-1]


@contextmanager
def responses(
    address: ServerAddress, who: Person | None, path: str = "/v1/responses", **more: str
) -> Iterator[Client]:
    headers = {**(who.headers if who else {}), **more}
    with connect(f"{address.ws}{path}", additional_headers=headers, proxy=None) as socket:
        yield Client(socket)


def test_a_socket_streams_the_events_of_http(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    streamed = respond(web, "thinker", {"stream": True, "model": "m"}, alice).text
    with responses(demo, alice, "/agents/thinker/responses") as client:
        client.send({"type": "response.create", "model": "m", "input": "Hello there"})
        events = client.events()
    of_http = [json.loads(line[6:]) for line in streamed.splitlines() if line.startswith("data: {")]

    assert kinds(events) == kinds(of_http)
    assert [event["sequence_number"] for event in events] == sorted(
        event["sequence_number"] for event in events
    )
    assert text_of(events[-1]["response"]) == text_of(of_http[-1]["response"])
    stored = read(web, events[-1]["response"]["id"], alice).json()
    assert stored["output"] == events[-1]["response"]["output"]
    assert (stored["model"], stored["usage"]) == ("m", events[-1]["response"]["usage"])


def kinds(events: list[dict[str, Any]]) -> list[str]:
    """Return the types of events, without repeated deltas."""
    types = [event["type"] for event in events]
    return [kind for at, kind in enumerate(types) if at == 0 or types[at - 1] != kind]


def test_a_conversation_continues_with_tools_and_over_http(
    demo: ServerAddress, web: httpx.Client, alice: Person
) -> None:
    with responses(demo, alice) as client:
        first = client.ask(input="Hello there", model="tool-user", tools=[SEARCH])["response"]
        (call,) = first["output"]
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": "cats"}
        second = client.ask(
            input=[result], model="tool-user", tools=[SEARCH], previous_response_id=first["id"]
        )["response"]
        assert text_of(second) == "The tool answered: cats"
        for number in range(3):
            assert text_of(client.ask(input=f"{number}")["response"]) == f"{number}"
    body = {"input": "Again", "previous_response_id": second["id"]}
    assert respond(web, "tool-user", body, alice).status_code == 200
    gone = client_answer(demo, alice, store=False)
    assert read(web, gone["response"]["id"], alice).status_code == 404
    assert set(Session.objects.values_list("transport", flat=True)) == {"responses"}


def client_answer(demo: ServerAddress, who: Person | None, **body: Any) -> dict[str, Any]:
    with responses(demo, who) as client:
        return client.ask(**{"input": "Hello there", **body})


def test_what_is_refused_leaves_the_socket_open(
    demo: ServerAddress, alice: Person, bob: Person
) -> None:
    priced("dear", per_answer="1")
    with responses(demo, alice) as client:
        for body, status, code in (
            ({"input": ""}, 400, "invalid_event"),
            ({"input": "x", "model": "missing"}, 404, "agent_not_found"),
            ({"input": "x", "model": "dear"}, 402, "payment_required"),
            ({"input": "x", "background": True}, 400, "invalid_event"),
            ({"input": "x", "temperature": 9}, 400, "invalid_event"),
            ({"input": "x", "previous_response_id": "resp_0"}, 400, "previous_response_not_found"),
        ):
            refused = client.ask(**body)
            assert (refused["type"], refused["status"], refused["error"]["code"]) == (
                "error",
                status,
                code,
            ), body
        for frame in ("{", "[]", json.dumps({"type": "session.update"})):
            client.send(frame)
            assert client.events()[-1]["status"] == 400
        assert not Response.objects.exists()
        client.send({"type": "response.create", "model": "slow", "input": "a"})
        client.send({"type": "response.create", "model": "echo", "input": "b"})
        assert client.events()[-1]["error"]["code"] == "busy"
        assert Response.objects.count() == 1
    assert text_of(client_answer(demo, bob)["response"]) == "Hello there"


def test_an_answer_that_outgrew_its_payment_ends_with_an_error(
    demo: ServerAddress, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def long(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        for _ in range(400):
            yield Text("word after word ")

    monkeypatch.setitem(scripts.SCRIPTS, "long", long)
    agent = priced("dear", "long", output_per_1k="1")
    agent.max_output_tokens = 100
    agent.save()
    issued_token = issuance.issue(
        key="token", user_id=rich(alice).user.pk, amount=usd("0.3"), expires_in=600
    )
    with responses(demo, alice, **{"X-Payment-Token": issued_token.token}) as client:
        client.send({"type": "response.create", "model": "dear", "input": "Hello there"})
        events = client.events()
        assert "response.output_text.delta" in kinds(events)
        assert (events[-1]["type"], events[-1]["code"]) == ("error", "payment_required")
        assert text_of(client.ask(input="Again")["response"]) == "Again"


def test_an_answer_that_waits_for_a_person_ends_with_an_error(
    demo: ServerAddress, alice: Person, settings: Settings, tmp_path: Path
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    asker()
    with responses(demo, alice) as client:
        last = client.ask(input=task(tmp_path / "journal"), model="asker")
        assert (last["type"], last["code"]) == ("error", "forbidden")
        assert text_of(client.ask(input="Again")["response"]) == "Again"


@pytest.mark.parametrize("in_chat", [False, True])
def test_a_refused_answer_is_cancelled_unless_its_chat_keeps_it(
    demo: ServerAddress, alice: Person, settings: Settings, tmp_path: Path, *, in_chat: bool
) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    asker(pricing={"per_answer": "0.1", "input_per_1k": "0.001"})
    more = {"conversation": shared_chat(alice, agents=("asker",)).pk} if in_chat else {}
    with responses(demo, alice, **{"X-Payment-Token": token_of(alice)}) as client:
        last = client.ask(input=task(tmp_path / "journal"), model="asker", **more)
        response = Response.objects.get()
        assert (last["code"], last["response_id"]) == ("forbidden", response.pk)
        if in_chat:
            assert (response.status, last["charged"]) == ("waiting", [])
            assert Hold.objects.filter(state="active").exists()
        else:
            assert response.status == "cancelled"
            assert not Hold.objects.filter(state="active").exists()
            # The tokens, without the price of the answer.
            (charged,) = last["charged"]
            assert 0 < usd(charged["amount"]).amount < usd("0.1").amount
        assert text_of(client.ask(input="Again")["response"]) == "Again"


def test_a_failed_answer_has_what_was_charged_of_it(demo: ServerAddress, alice: Person) -> None:
    doer("dear", pricing={"per_answer": "0.1"})
    with responses(demo, alice, **{"X-Payment-Token": token_of(alice)}) as client:
        last = client.ask(input=order(say="I begin.", fail=True), model="dear")
        assert last["type"] == "response.failed"
        assert last["response"]["charged"] == [{"amount": "0.1", "currency": "USD"}]
        assert text_of(client.ask(input="Again")["response"]) == "Again"


def test_a_socket_may_answer_in_a_chat(demo: ServerAddress, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice)
    done = client_answer(demo, alice, conversation=chat.pk)
    assert text_of(done["response"]) == "Hello there"
    assert done["response"]["conversation"] == {"id": chat.pk}
    assert client_answer(demo, bob, conversation=chat.pk)["error"]["code"] == "chat_not_found"
    wrong = type(alice)(alice.user, "uak_00000000_wrong")
    with pytest.raises(InvalidStatus, match="HTTP 40"), responses(demo, wrong):
        pass


def test_a_header_names_the_chat_of_a_socket(demo: ServerAddress, alice: Person) -> None:
    chat = shared_chat(alice)
    with responses(demo, alice, **{"X-Chat-Id": chat.pk}) as client:
        refused = client.ask(input="Hello there", tools=[SEARCH])
        done = client.ask(input=[{"role": "user", "content": "Hello there"}])

    assert (refused["type"], refused["error"]["param"]) == ("error", "tools")
    assert done["response"]["conversation"] == {"id": chat.pk}
    assert [message.content for message in chat.messages.all()] == ["Hello there"] * 2


def test_a_socket_with_a_chat_continues_previous_responses(
    demo: ServerAddress, web: httpx.Client, alice: Person, bob: Person
) -> None:
    chat = shared_chat(alice)
    elsewhere, foreign = (
        respond(web, "echo", {"input": "Before"}, who).json()["id"] for who in (alice, bob)
    )
    with responses(demo, alice, **{"X-Chat-Id": chat.pk}) as client:
        first = client.ask(input="One")["response"]
        second = client.ask(input="Two", previous_response_id=first["id"])["response"]
        third = client.ask(input="Three", previous_response_id=second["id"])["response"]
        outside = client.ask(input="After", previous_response_id=elsewhere)["response"]
        other = client.ask(input="After", previous_response_id=elsewhere, store=False)["response"]
        refused = client.ask(input="After", previous_response_id=foreign)

    assert [answer["conversation"] for answer in (first, second, third)] == [{"id": chat.pk}] * 3
    assert [outside["conversation"], other["conversation"]] == [None, None]
    assert [m.content for m in chat.messages.filter(role="user").order_by("seq")] == [
        "One", "Two", "Three",
    ]  # fmt: skip
    before, after = (Response.objects.get(pk=pk) for pk in (elsewhere, outside["id"]))
    assert before.chat_id == after.chat_id
    assert Response.objects.get(pk=other["id"]).chat_id not in {chat.pk, before.chat_id}
    assert refused["error"]["code"] == "previous_response_not_found"


def test_an_answer_whose_delegated_work_has_to_be_paid_ends_with_an_error(
    demo: ServerAddress, alice: Person
) -> None:
    doer("boss", "paid")
    doer("paid", pricing={"per_answer": "0.25"})
    rich(alice)
    with responses(demo, alice) as client:
        last = client.ask(input=task_for("paid", order(say="done")), model="boss")
        assert (last["type"], last["code"]) == ("error", "payment_required")
        work = Response.objects.get(agent__name="paid")
        assert last["demand"]["response_id"] == work.pk
        boss = Response.objects.get(agent__name="boss")
        assert (last["response_id"], last["charged"]) == (boss.pk, [])
        assert (boss.status, work.finished_at is not None) == ("cancelled", True)
        assert text_of(client.ask(input="Again")["response"]) == "Again"
