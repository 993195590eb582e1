"""`POST /responses/compact`: a summary that stands for a conversation in later requests."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_app.providers import scripts
from sessions_app.models import Response
from tests.client import wait_until
from tests.gateway_app.openai_responses.requests import read, respond, text_of
from tests.gateway_app.test_paid_requests import signature, token_of
from tests.live_server import quick_agent, shared_chat
from tests.sessions_app.billing.paid_agents import clean, earned, priced
from upp.providers.scripted import Text

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.selectors import AgentSpec
    from tests.live_server import Person
    from upp import LLMRequest
    from upp.providers.scripted import Step

pytestmark = pytest.mark.any_database

SUMMARY = "Ada asked for her name."
CONVERSATION = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "I am Ada."},
    {"role": "assistant", "content": "Hello, Ada."},
    {
        "role": "user",
        "content": [{"type": "input_text", "text": "What is my name?"}],
    },
]


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Collect the prompts of the model of `noter`, a list of texts for each request."""
    texts_by_request: list[list[str]] = []

    async def note(_agent: AgentSpec, request: LLMRequest) -> AsyncGenerator[Step, None]:
        texts_by_request.append([message.text for message in request.messages])
        yield Text(SUMMARY)

    monkeypatch.setitem(scripts.SCRIPTS, "noter", note)
    return texts_by_request


def compact(web: httpx.Client, who: Person, **body: Any) -> httpx.Response:
    """Ask for a summary of a conversation."""
    request = {"model": "noter", "input": CONVERSATION, **body}
    return web.post("/v1/responses/compact", json=request, headers=who.headers)


def test_a_summary_and_the_users_messages_replace_a_conversation(
    web: httpx.Client, alice: Person, prompts: list[list[str]]
) -> None:
    quick_agent("noter", "noter")
    answer = compact(web, alice, instructions="Write English.")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    first, second, summary = body["output"]

    assert body["object"] == "response.compaction"
    assert [item["content"][0]["text"] for item in (first, second)] == [
        "I am Ada.",
        "What is my name?",
    ]
    assert (summary["type"], SUMMARY in str(summary)) == ("compaction", False)
    assert body["usage"]["output_tokens"] > 0
    assert prompts[0][-1].startswith("Summarise our conversation")
    assert read(web, body["id"], alice).status_code == 404

    again = [*body["output"], {"role": "user", "content": "Go on."}]
    assert text_of(respond(web, "noter", {"input": again}, alice).json()) == SUMMARY
    *_, of_summary, last = prompts[-1]
    assert (SUMMARY in of_summary, last) == (True, "Go on.")
    # A second summary replaces the first one.
    twice = compact(web, alice, input=again).json()["output"]
    assert [item["type"] for item in twice] == ["message"] * 3 + ["compaction"]


def test_a_stored_response_is_the_beginning_of_the_conversation(
    web: httpx.Client, alice: Person, prompts: list[list[str]]
) -> None:
    quick_agent("noter", "noter")
    predecessor = respond(web, "noter", {"input": "I am Ada."}, alice).json()

    body = compact(web, alice, input="And now?", previous_response_id=predecessor["id"]).json()

    texts = [item["content"][0]["text"] for item in body["output"][:-1]]
    assert texts == ["I am Ada.", "And now?"]
    assert prompts[-1][:2] == ["I am Ada.", SUMMARY]


def test_a_summary_costs_what_an_answer_costs(
    web: httpx.Client, alice: Person, prompts: list[list[str]]
) -> None:
    agent = priced("noter", "noter", per_answer="0.2")
    demand = compact(web, alice)
    assert demand.status_code == 402
    headers = alice.headers | signature(demand.json(), token_of(alice, "1"))

    body = {"model": "noter", "input": CONVERSATION}
    answer = web.post("/v1/responses/compact", json=body, headers=headers)

    assert answer.status_code == 200, answer.text
    assert (earned(agent), len(prompts)) == ("0.2", 1)
    assert clean()


@pytest.mark.parametrize(
    ("headers", "end"), [({}, "cancelled"), ({"Idempotency-Key": "1"}, "completed")]
)
def test_a_summary_ends_with_its_client_unless_a_key_can_ask_again(
    web: httpx.Client, alice: Person, headers: dict[str, str], end: str
) -> None:
    body = {"model": "slowly", "input": "a"}
    quick_agent("slowly", "slow", delay=0.01)
    with pytest.raises(httpx.ReadTimeout):
        web.post("/v1/responses/compact", json=body, headers=alice.headers | headers, timeout=0.5)

    wait_until(lambda: Response.objects.filter(status=end).exists())


def test_a_summary_is_for_who_asked_for_it(
    web: httpx.Client, alice: Person, bob: Person, prompts: list[list[str]]
) -> None:
    quick_agent("noter", "noter")
    summary = compact(web, alice).json()["output"][-1]
    visitors = web.post("/v1/responses/compact", json={"model": "noter", "input": CONVERSATION})
    for item, who, status in (
        (summary, alice.headers, 200),
        (summary, bob.headers, 400),
        (summary, {}, 400),
        (visitors.json()["output"][-1], alice.headers, 400),
        (visitors.json()["output"][-1], {}, 200),
    ):
        request = {"model": "noter", "input": [item, {"role": "user", "content": "Go on."}]}
        answer = web.post("/v1/responses", json=request, headers=who)
        assert answer.status_code == status, answer.text


def test_what_cannot_be_compacted_is_refused(
    web: httpx.Client, alice: Person, prompts: list[list[str]]
) -> None:
    quick_agent("noter", "noter")
    chat = shared_chat(alice, agents=("noter",))
    summary = compact(web, alice).json()["output"][-1]
    count = Response.objects.count()
    forged = {**summary, "encrypted_content": summary["encrypted_content"][:-8] + "AAAAAAA="}
    for body in ({"conversation": chat.pk}, {"input": None}, {"model": "missing"}):
        assert compact(web, alice, **body).status_code in {400, 404}, body
    request = {"model": "noter", "input": CONVERSATION}
    headers = {**alice.headers, "X-Chat-Id": chat.pk}
    assert web.post("/v1/responses/compact", json=request, headers=headers).status_code == 400
    for item in (forged, {"type": "compaction"}, {**summary, "encrypted_content": 7}):
        refused = respond(web, "noter", {"input": [item]}, alice)
        assert refused.status_code == 400, refused.text
    # The chat of a conversation is whole.
    path = f"/v1/conversations/{chat.pk}/items"
    refused = web.post(path, json={"items": [summary]}, headers=alice.headers)
    assert refused.status_code == 400, refused.text
    assert Response.objects.count() == count


def test_an_agent_without_a_word_gives_no_summary(
    web: httpx.Client, alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def silent(_agent: AgentSpec, _request: LLMRequest) -> AsyncGenerator[Step, None]:
        yield Text(" ")

    monkeypatch.setitem(scripts.SCRIPTS, "silent", silent)
    quick_agent("silent", "silent")
    answer = compact(web, alice, model="silent")
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "provider_error")
