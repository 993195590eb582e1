"""Agents that give work to agents (UAMP §8.5.4, §6.13): what passes, what is refused, who ends."""

from __future__ import annotations

import base64
import uuid
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.models import Agent
from sessions_app.models import Response, ToolCall
from tests import factories
from tests.client import TERMINAL, Frame, UampClient, wait_until
from tests.live_server import shared_chat
from tests.sessions_app.tools.long_tools import open_gate
from tests.sessions_app.turn import team_tools
from tests.sessions_app.turn.delegation import answer_frames, answer_text, doer, task_for
from tests.sessions_app.turn.team_tools import order

if TYPE_CHECKING:
    from pathlib import Path

    from pytest_django import Settings

    from tests.live_server import Dial, Person

TOOLS = ["tests.sessions_app.turn.team_tools.STEPS", "tests.sessions_app.turn.team_tools.GATED"]


@pytest.fixture(autouse=True)
def _tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, *TOOLS]
    settings.UAMP_LEASE_SECONDS = 5
    team_tools.read.clear()


def progress_text(frames: list[Frame]) -> str:
    """Return the text that was forwarded as `tool_progress`."""
    deltas = [f["delta"] for f in frames if f["type"] == "response.delta"]
    return "".join(d["tool_progress"]["text"] for d in deltas if d["type"] == "tool_progress")


def texts(value: Any) -> list[str]:
    """Return every text of a frame, but for the addresses of its media."""
    if isinstance(value, dict):
        return [t for key, inner in value.items() if key != "url" for t in texts(inner)]
    if isinstance(value, list):
        return [text for inner in value for text in texts(inner)]
    return [value] if isinstance(value, str) else []


# --- The whole way ---


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_picture_goes_to_another_agent_and_what_comes_back_is_presented(
    dial: Dial, alice: Person
) -> None:
    client = dial(alice)
    client.create_session(agent="studio")
    picture = base64.b64encode(factories.png(60, 40)).decode()
    client.send("input.image", image=picture, format="png")
    frames = client.answer("black and white, please")

    assert answer_text(frames) == "Here it is. The new picture is black and white; 60 by 40 pixels."
    deltas = [f["delta"] for f in frames if f["type"] == "response.delta"]
    (call,) = [
        d["tool_call"]
        for d in deltas
        if d["type"] == "tool_call" and d["tool_call"]["name"] == "delegate"
    ]
    result = next(
        d["tool_result"]
        for d in deltas
        if d["type"] == "tool_result" and d["tool_result"]["call_id"] == call["id"]
    )
    (item,) = result["content_items"]
    assert result["status"] == "success"
    (delta,) = [d for d in deltas if d["type"] == "image"]
    assert delta["image"] == {"url": f"/api/content/{item['content_id']}"}
    assert "black and white" in delta["description"]
    assert [i["content_id"] for i in frames[-1]["response"]["output"] if i["type"] == "image"] == [
        item["content_id"]
    ]
    # The work of the other agent's tool is the progress of the call.
    reported = [f for f in frames if f["type"] == "progress" and f["target_id"] == call["id"]]
    assert reported[0]["response_id"] == frames[-1]["response_id"]
    assert [f["percent"] for f in reported if "percent" in f][-1] == 100
    assert "darkroom: Black and white" in [f.get("message") for f in reported]
    assert progress_text(frames).startswith("The new picture is black and white")
    # Text purity: no address of a content in anything that is read.
    assert not [t for f in frames for t in texts(f) if "/api/content/" in t]


def test_the_models_read_ids_and_no_addresses(dial: Dial, alice: Person) -> None:
    doer("boss", "worker")
    doer("worker")
    content = factories.content(alice.user)
    address = f"see /api/content/{content.pk}?for=p.1.&signature=abc:def and http://h/api/content/{content.pk}"
    frames = answer_frames(
        dial(alice), "boss", task_for("worker", order(say=address), str(content.pk))
    )
    received = answer_text(frames)
    assert received == f"received: see content_id {content.pk} and content_id {content.pk}"
    results = [t for t in team_tools.read if t.startswith("see ")]
    assert results
    assert not [text for text in results if "/api/content/" in text]


# --- What may be given ---


def test_contents_of_others_are_as_unknown_as_those_that_do_not_exist(
    dial: Dial, alice: Person, mallory: Person
) -> None:
    doer("boss", "worker")
    doer("worker")
    foreign = str(factories.content(alice.user).pk)
    client = dial(mallory)
    answers = []
    for content_id in (foreign, str(uuid.uuid4()), "no-uuid"):
        received = answer_text(
            answer_frames(client, "boss", task_for("worker", order(say="done"), content_id))
        )
        assert content_id in received
        answers.append(received.replace(content_id, "X"))
    assert answers == ["failed: There is no file 'X' in this chat."] * 3
    assert not Response.objects.filter(agent__name="worker").exists()
    # Whose it is may give it.
    owners_answer = answer_text(
        answer_frames(dial(alice), "boss", task_for("worker", order(say="done"), foreign))
    )
    assert owners_answer == "received: done"


def test_an_undeclared_agent_is_not_asked(dial: Dial) -> None:
    doer("boss", "worker")
    doer("worker")
    doer("stranger")
    client = dial()
    received = answer_text(answer_frames(client, "boss", task_for("stranger", order(say="done"))))
    assert received == "failed: There is no agent 'stranger' to delegate to. Available: worker."
    Agent.objects.filter(name="worker").update(is_enabled=False)
    received = answer_text(answer_frames(client, "boss", task_for("worker", order(say="done"))))
    assert received == "failed: worker is not available to the person who asks."
    assert Response.objects.count() == 2


def test_a_private_agent_works_for_its_owners_agents_only(dial: Dial, alice: Person) -> None:
    doer("worker", is_public=False, owner=alice.user)
    doer("mine", "worker", owner=alice.user)
    doer("boss", "worker")
    client = dial()
    assert (
        answer_text(answer_frames(client, "mine", task_for("worker", order(say="done"))))
        == "received: done"
    )
    received = answer_text(answer_frames(client, "boss", task_for("worker", order(say="done"))))
    assert received == "failed: worker is not available to the person who asks."


@pytest.mark.parametrize("chain", [("boss",), ("worker", "boss"), ("worker", "third", "worker")])
def test_no_payer_is_asked_where_a_batch_waits(dial: Dial, chain: tuple[str, ...]) -> None:
    # Rows that were written past the form that checks them.
    doer("boss", "boss", "worker")
    doer("worker", "boss", "third")
    doer("third", "worker")
    task = order(say="never")
    for name in reversed(chain):
        task = task_for(name, task)
    received = answer_text(answer_frames(dial(), "boss", task))
    refused = (
        f"failed: {chain[-1]} is already waiting for this answer, so it cannot be asked."
        " Do the task yourself."
    )
    assert received == "received: " * (len(chain) - 1) + refused
    assert Response.objects.count() == len(chain)


def test_work_is_passed_on_so_often_and_no_more(dial: Dial, settings: Settings) -> None:
    settings.UAMP_DELEGATE_DEPTH = 2
    for name, other in (("a1", "a2"), ("a2", "a3"), ("a3", "a4")):
        doer(name, other)
    doer("a4")
    deep = task_for("a2", task_for("a3", task_for("a4", order(say="never"))))
    assert answer_text(answer_frames(dial(), "a1", deep)) == (
        "received: received: failed: Work can be delegated at most 2 times. Do the task yourself."
    )
    assert (
        answer_text(answer_frames(dial(), "a2", task_for("a3", task_for("a4", order(say="deep")))))
        == "received: received: deep"
    )


def test_an_answer_leads_to_so_many_others_and_no_more(dial: Dial, settings: Settings) -> None:
    settings.UAMP_DELEGATED_ANSWERS = 2
    refused = (
        "failed: At most 2 answers of other agents may work for one answer. Do the task yourself."
    )
    for name, other in (("a1", "a2"), ("a2", "a3"), ("a3", "a4")):
        doer(name, other)
    doer("a4")
    deep = task_for("a2", task_for("a3", task_for("a4", order(say="never"))))
    assert answer_text(answer_frames(dial(), "a1", deep)) == f"received: received: {refused}"
    # The limit is of one answer.
    assert answer_text(answer_frames(dial(), "a1", deep)) == f"received: received: {refused}"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"agent": "worker"}, "missing required field `task`"),
        ({"agent": "worker", "task": ""}, "length >= 1"),
        ({"agent": "worker", "task": "x", "attachments": ["a"] * 17}, "length <= 16"),
        ({"agent": "worker", "task": "x", "why": 1}, "unknown field `why`"),
    ],
)
def test_an_order_that_does_not_fit_is_reported(
    dial: Dial, arguments: dict[str, Any], problem: str
) -> None:
    doer("boss", "worker")
    doer("worker")
    received = answer_text(
        answer_frames(dial(), "boss", order(call="delegate", arguments=arguments))
    )
    assert received.startswith("failed: The task was not given to an agent.")
    assert problem in received


# --- Progress meanwhile ---


@pytest.mark.parametrize("is_forwarded", [True, False])
def test_thoughts_of_the_other_agent_are_forwarded_unless_the_operator_says_no(
    dial: Dial, settings: Settings, *, is_forwarded: bool
) -> None:
    settings.DELEGATE_FORWARD_THINKING = is_forwarded
    doer("boss", "worker")
    doer("worker")
    frames = answer_frames(
        dial(), "boss", task_for("worker", order(think="I ponder. ", say="Done."))
    )
    assert progress_text(frames) == ("I ponder. Done." if is_forwarded else "Done.")
    assert answer_text(frames) == "received: Done."


def test_a_deep_answer_is_forwarded_to_the_top(dial: Dial) -> None:
    doer("a1", "a2")
    doer("a2", "a3")
    doer("a3")
    frames = answer_frames(dial(), "a1", task_for("a2", task_for("a3", order(say="deep"))))
    assert answer_text(frames) == "received: received: deep"
    assert progress_text(frames) == "received: deep"
    kinds = [f["delta"]["type"] for f in frames if f["type"] == "response.delta"]
    # All of it comes before the result.
    assert kinds == ["tool_call", "tool_progress", "tool_result", "text"]
    assert [f["message"] for f in frames if f["type"] == "progress"] == ["a2 uses delegate"]


@pytest.mark.usefixtures("celery_worker_thread")
def test_a_member_who_joins_during_the_work_sees_its_progress(
    dial: Dial, alice: Person, bob: Person, tmp_path: Path
) -> None:
    doer("boss", "worker")
    doer("worker", tools=("gated",))
    chat = shared_chat(alice, bob, agents=("boss",))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    journal = tmp_path / "journal"
    client.ask(
        f"@boss {task_for('worker', order(call='gated', arguments={'journal': str(journal)}))}"
    )
    # The row is written before the frame is sent: who joins in between receives both.
    while client.until("progress")[-1]["message"] != "worker: second":
        pass

    late = dial(bob)
    late.create_session(chat=chat.pk)
    frames = late.settle()
    (call,) = [f["delta"]["tool_call"] for f in frames if "tool_call" in f.get("delta", {})]
    assert call["name"] == "delegate"
    (reported,) = [f for f in frames if f["type"] == "progress"]
    assert (reported["target_id"], reported["message"]) == (call["id"], "worker: second")
    open_gate(journal)
    assert answer_text(late.until(*TERMINAL)) == "received: received: through"


# --- Ends ---


def test_a_failing_agent_returns_its_partial_answer_and_its_caller_continues(dial: Dial) -> None:
    doer("boss", "worker")
    doer("worker")
    frames = answer_frames(dial(), "boss", task_for("worker", order(say="Half of it.", fail=True)))
    received = answer_text(frames)
    assert received.startswith("failed: worker could not finish: ")
    assert received.endswith("So far it said:\n\nHalf of it.")
    assert sorted(Response.objects.values_list("agent__name", "status")) == [
        ("boss", "completed"),
        ("worker", "failed"),
    ]
    call = ToolCall.objects.get()
    assert (call.status, call.is_error) == ("failed", True)


def cancelled_while(client: UampClient, agent: str, text: str, *, until: Any) -> Frame:
    """Ask, wait, cancel, and return the end."""
    client.create_session(agent=agent)
    client.ask(text)
    response_created = client.expect("response.created")
    wait_until(until)
    client.send("response.cancel", response_id=response_created["response_id"])
    return client.until(*TERMINAL)[-1]


def test_cancelling_an_answer_cancels_the_work_for_it(dial: Dial) -> None:
    for name, other in (("a1", "a2"), ("a2", "a3")):
        doer(name, other)
    doer("a3")
    text = task_for("a2", task_for("a3", order(words=200)))
    third = Response.objects.filter(agent__name="a3")
    ended = cancelled_while(dial(), "a1", text, until=third.exists)
    assert ended["type"] == "response.cancelled"
    wait_until(lambda: not Response.objects.filter(status__in=Response.LIVE).exists())
    assert set(Response.objects.values_list("status", flat=True)) == {"cancelled"}
    # The ends of the others, which came later, changed nothing of what had ended.
    assert set(ToolCall.objects.values_list("status", "result")) == {("cancelled", "")}


@pytest.mark.usefixtures("celery_worker_thread")
def test_cancelling_an_answer_cancels_the_tools_of_its_helpers(dial: Dial, tmp_path: Path) -> None:
    doer("boss", "worker")
    doer("worker", tools=("steps",))
    journal = tmp_path / "journal"
    steps = {"steps": 400, "pause": 0.05, "journal": str(journal)}
    text = task_for("worker", order(call="steps", arguments=steps))
    cancelled_while(dial(), "boss", text, until=journal.exists)
    wait_until(lambda: not ToolCall.objects.filter(status__in=ToolCall.OPEN).exists())
    assert set(ToolCall.objects.values_list("name", "status")) == {
        ("delegate", "cancelled"),
        ("steps", "cancelled"),
    }


def test_what_two_agents_use_is_counted_apart(dial: Dial) -> None:
    doer("boss", "worker")
    doer("worker")
    answer_frames(
        dial(), "boss", task_for("worker", order(say="one two three four five six seven"))
    )
    used = Response.objects.values_list("agent__name", "usage__output_tokens")
    assert dict(used) == {"worker": 7, "boss": 8}


# --- Presenting ---


def test_what_is_presented_is_in_the_answer_and_nothing_of_others_is(
    dial: Dial, alice: Person, mallory: Person
) -> None:
    doer("shower", tools=("present",))
    content = str(factories.content(alice.user).pk)
    text = order(call="present", arguments={"content_ids": [content], "caption": "a red square"})
    frames = answer_frames(dial(alice), "shower", text)
    assert answer_text(frames) == "received: The chat sees the content now."
    (item,) = [i for i in frames[-1]["response"]["output"] if i["type"] == "image"]
    assert (item["content_id"], item["description"]) == (content, "a red square")

    hidden = answer_frames(dial(mallory), "shower", text)
    assert answer_text(hidden) == (
        f"failed: Nothing was shown. There is no file {content!r} in this chat."
    )
    assert [i for i in hidden[-1]["response"]["output"] if i["type"] == "image"] == []
