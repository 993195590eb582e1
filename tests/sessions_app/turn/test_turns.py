"""Turns on a real socket: what makes one, what answers it, how it ends (UAMP §5.6-5.14, §8.5.1)."""

import base64
import json
import uuid

import httpx
import pytest
from pytest_django import Settings

from agents_app.models import Agent
from chat_app.contents import addresses, storage
from chat_app.log import fanout
from chat_app.models import Content, Message
from sessions_app.models import Response, ToolCall
from tests import factories
from tests.client import TERMINAL, Frame, output_text, text_of, wait_until
from tests.live_server import Dial, Person, counted_rows, quick_agent, shared_chat

SEARCH = {"type": "function", "function": {"name": "search"}}


# --- What makes a turn ---


def test_several_inputs_are_one_message_with_its_items_in_order(
    dial: Dial, alice: Person, mallory: Person, web: httpx.Client
) -> None:
    image_id, file_id = str(uuid.uuid4()), str(uuid.uuid4())
    png, text = factories.png(), b"a,b\n1,2\n"
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("input.text", text="Look at")
    client.send(
        "input.image", image=base64.b64encode(png).decode(), format="png", content_id=image_id
    )
    client.send("input.text", text="and at")
    client.send(
        "input.file",
        file=base64.b64encode(text).decode(),
        filename="table.csv",
        mime_type="text/csv",
        content_id=file_id,
    )
    client.send("response.create")
    assert text_of(client.until("response.done")) == "Look at\nand at"
    message = Message.objects.get(role="user")
    assert message.content == "Look at\nand at"
    # A client's own ids are handles; the address has the id of the stored content.
    stored = {str(content.handle): content for content in Content.objects.all()}
    assert message.content_items == [
        {"type": "text", "text": "Look at"},
        {
            "type": "image",
            "image": {"url": addresses.content_url(stored[image_id].pk)},
            "format": "png",
            "content_id": image_id,
        },
        {"type": "text", "text": "and at"},
        {
            "type": "file",
            "file": {"url": addresses.content_url(stored[file_id].pk)},
            "filename": "table.csv",
            "mime_type": "text/csv",
            "content_id": file_id,
            "size_bytes": len(text),
        },
    ]
    kept = {handle: storage.read(content) for handle, content in stored.items()}
    assert kept == {image_id: png, file_id: text}
    for handle, data in kept.items():
        assert web.get(f"/api/content/{handle}", headers=alice.headers).content == data
        assert web.get(f"/api/content/{handle}", headers=mallory.headers).status_code == 404


def test_a_medium_without_an_id_gets_one_and_a_url_keeps_its_own(
    dial: Dial, alice: Person, web: httpx.Client
) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    client.send("input.image", image=base64.b64encode(factories.png()).decode(), format="png")
    client.send("response.create")
    client.until("response.done")
    (item,) = Message.objects.get(role="user").content_items
    assert item["image"] == {"url": f"/api/content/{item['content_id']}"}
    read = web.get(item["image"]["url"], headers=alice.headers)
    assert read.content == factories.png()
    # The same content again, by its URL.
    client.send("input.image", image=item["image"])
    client.send("response.create")
    client.until("response.done")
    again = Message.objects.filter(role="user").latest("seq").content_items[0]
    assert again["content_id"] == item["content_id"]
    assert Content.objects.count() == 1


def test_pieces_of_sound_are_one_item(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="echo")
    for piece, is_final in ((b"abc", False), (b"de", True)):
        audio = base64.b64encode(piece).decode()
        client.send("input.audio", audio=audio, format="pcm16", is_final=is_final)
    client.send("response.create")
    client.until("response.done")
    (item,) = Message.objects.get(role="user").content_items
    # Raw samples get the header of a file that plays.
    assert (item["type"], item["format"]) == ("audio", "wav")
    kept = storage.read(Content.objects.get())
    assert kept[:4] + kept[8:12] == b"RIFFWAVE"
    assert kept.endswith(b"data\x05\0\0\0abcde\0")


def test_a_conversation_is_remembered_by_its_session(dial: Dial) -> None:
    client = dial()
    created = client.create_session(agent="echo")
    client.answer("first")
    client.answer("second")
    rows = Message.objects.filter(chat_id=created["chat"]).order_by("seq")
    assert [(m.role, m.content) for m in rows] == [
        ("user", "first"),
        ("assistant", "first"),
        ("user", "second"),
        ("assistant", "second"),
    ]


HISTORY = [
    {"role": "system", "content": "You are a weather assistant."},
    {"role": "user", "content": "What's the weather in Paris?"},
]


def test_a_history_in_input_text_is_the_whole_context(dial: Dial) -> None:
    """As §5.6 prints it: the history ends with the very text."""
    client = dial()
    client.create_session(agent="echo")
    client.answer("something before")
    client.send("input.text", text="What's the weather in Paris?", messages=HISTORY)
    client.send("response.create")
    assert text_of(client.until("response.done")) == "What's the weather in Paris?"
    request = Response.objects.latest("created_at").request
    assert [m["role"] for m in request["context"]] == ["system"]
    assert Message.objects.filter(content="What's the weather in Paris?", role="user").count() == 1


def test_a_history_in_response_create_is_a_turn_of_its_own(dial: Dial) -> None:
    """As the reference clients send it: no input.text at all."""
    client = dial()
    client.create_session(agent="echo")
    client.send("response.create", response={"messages": HISTORY})
    assert text_of(client.until("response.done")) == "What's the weather in Paris?"


def test_a_response_overrides_its_session(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.send("input.text", text="Hello")
    client.send(
        "response.create",
        response={"instructions": "Be concise.", "tools": [], "modalities": ["text"]},
        response_format={"type": "text"},
    )
    answer = output_text(client.until("response.done")[-1])
    assert answer.startswith("This session declares no tools.")
    kept = Response.objects.get().request
    assert kept["instructions"] == "Be concise."
    assert kept["response_format"] == {"type": "text"}
    client.ask("Hello")
    client.expect("response.created", "tool.call")


def test_a_response_without_input_answers_the_conversation_again(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="echo")
    client.answer("Hello")
    client.send("response.create")
    assert client.until("response.done")[-1]["response"]["status"] == "completed"
    assert Message.objects.filter(role="user").count() == 1
    assert Response.objects.latest("created_at").message is None


# --- What is shown of an answer ---


def test_thinking_is_shown_and_kept_before_the_text(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="thinker")
    frames = client.answer("Why?")
    thoughts = [f for f in frames if f["type"] == "thinking"]
    thought = "".join(f["content"] for f in thoughts)
    assert all(f["is_delta"] for f in thoughts)
    output = frames[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["thinking", "text"]
    assert output[0]["thinking"] == thought
    assert Message.objects.get(role="assistant").content_items == output


def test_usage_is_streamed_and_counted_in_the_end(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="echo")
    frames = client.answer("one two three")
    usage = frames[-1]["response"]["usage"]
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"] > 0
    streamed = [f["delta"]["output_tokens"] for f in frames if f["type"] == "usage.delta"]
    assert sum(streamed) == usage["output_tokens"]


def test_a_rate_limit_is_reported_before_it_is_reached(dial: Dial, settings: Settings) -> None:
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 3
    client = dial()
    client.create_session(agent="echo")
    reported = []
    for text in ("one", "two", "three"):
        reported += [f for f in client.answer(text) if f["type"] == "rate_limit"]
    assert [(f["limit"], f["remaining"]) for f in reported] == [(3, 2), (3, 1), (3, 0)]
    client.ask("four")
    assert client.expect("rate_limit")["remaining"] == 0
    error = client.expect("session.error")["error"]
    assert error["code"] == "rate_limited"
    assert 0 < error["details"]["retry_after"] <= 60


# --- Cancelling ---


@pytest.fixture
def counting(dial: Dial, alice: Person) -> tuple[Dial, Frame]:
    """Give the session.created of alice's session in which an agent counts to 200."""
    client = dial(alice)
    created = client.create_session(agent="slow")
    client.ask("Count")
    client.until("response.delta")
    return dial, created


def test_a_cancelled_response_says_what_it_said_so_far_and_nothing_more(
    dial: Dial, alice: Person
) -> None:
    client = dial(alice)
    client.create_session(agent="slow")
    client.ask("Count")
    frames = [client.expect("response.created"), *client.until("response.delta")]
    client.send("response.cancel")
    frames += client.until("response.cancelled")
    assert output_text(frames[-1]) == text_of(frames)
    assert output_text(frames[-1]).startswith("word1")
    # No response.done follows, and the provider is not running on.
    assert client.during(0.2) == []
    response = Response.objects.get()
    assert (response.status, response.text) == ("cancelled", output_text(frames[-1]))
    message = Message.objects.get(role="assistant")
    assert (message.status, message.content) == ("cancelled", response.text)
    client.send("response.cancel", response_id=response.pk)
    assert client.expect("session.error")["error"]["code"] == "nothing_to_cancel"


def test_a_response_is_cancelled_from_another_connection(
    counting: tuple[Dial, Frame], alice: Person
) -> None:
    dial, created = counting
    other = dial(alice)
    resume = {"session_id": created["session_id"], "epoch": created["epoch"], "after": 0}
    other.send("session.create", session={}, resume=resume)
    response_id = other.until("response.created")[-1]["response_id"]
    other.send("response.cancel", response_id=response_id)
    assert other.until("response.cancelled")[-1]["response_id"] == response_id
    wait_until(lambda: Response.objects.get().status == "cancelled")


def test_a_stranger_cannot_cancel(counting: tuple[Dial, Frame], mallory: Person) -> None:
    dial, _ = counting
    stranger = dial(mallory)
    stranger.create_session(agent="echo")
    refusals = []
    for response_id in (Response.objects.get().pk, "resp_unknown"):
        stranger.send("response.cancel", response_id=response_id)
        refusals.append(stranger.expect("session.error")["error"])
    assert refusals[0]["code"] == refusals[1]["code"] == "nothing_to_cancel"
    assert refusals[0]["message"] == refusals[1]["message"]
    assert Response.objects.get().cancel_requested_at is None


def test_a_member_cancels_a_response_of_the_chat(dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob, agents=("slow",), trigger="always")
    asker, member = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    member.create_session(chat=chat.pk)
    asker.ask("Count")
    response_id = member.until("response.delta")[-1]["response_id"]
    member.send("response.cancel", response_id=response_id)
    ends = [client.until(*TERMINAL)[-1] for client in (asker, member)]
    assert [end["type"] for end in ends] == ["response.cancelled"] * 2
    assert ends[0]["partial_output"] == ends[1]["partial_output"]
    by_bob = (str(bob.user.pk), "bob")
    assert [(end["user_id"], end["username"]) for end in ends] == [by_bob] * 2
    asker.send("response.cancel", response_id=response_id)
    assert asker.until("session.error")[-1]["error"]["code"] == "nothing_to_cancel"
    assert Response.objects.get().cancel_requested_by == bob.user


def test_a_member_receives_that_the_text_of_a_response_is_replaced(
    dial: Dial, alice: Person, bob: Person
) -> None:
    """As a process says that takes a response over from its checkpoint."""
    chat = shared_chat(alice, bob, agents=("slow",), trigger="always")
    asker, member = dial(alice), dial(bob)
    asker.create_session(chat=chat.pk)
    member.create_session(chat=chat.pk)
    asker.ask("Count")
    begun = member.until("response.delta")[-1]
    response_id = begun["response_id"]
    text = fanout.text_message(chat_id=chat.pk, response_id=response_id, text="kept ")
    fanout.publish_from_thread(chat.pk, [text])
    while (received := member.until("response.delta")[-1])["offset"] != 0:
        pass
    assert (received["response_id"], received["delta"]["text"]) == (response_id, "kept ")
    asker.send("response.cancel", response_id=response_id)
    asker.until(*TERMINAL)


# --- Shared chats: who answers ---


def test_two_agents_that_are_mentioned_answer_both(dial: Dial, alice: Person) -> None:
    quick_agent("second-echo", "echo")
    chat = shared_chat(alice, agents=("echo", "second-echo", "slow"))
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("@echo and @second-echo, say this")
    frames = [*client.until("response.done"), *client.until("response.done")]
    created = [f for f in frames if f["type"] == "response.created"]
    assert [f["agent"] for f in created] == ["echo", "second-echo"]
    for event in created:
        done = next(
            f
            for f in frames
            if f["type"] == "response.done" and f["response_id"] == event["response_id"]
        )
        assert output_text(done) == text_of(frames, event["response_id"])


def test_a_message_without_a_mention_is_kept_and_not_answered(dial: Dial, alice: Person) -> None:
    chat = shared_chat(alice)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.ask("Just talking. me@echo.example is an address.")
    created = client.expect("message.created")
    assert created["chat_id"] == chat.pk
    assert created["message"]["content"] == "Just talking. me@echo.example is an address."
    assert client.during(0.1) == []
    assert Response.objects.count() == 0


def test_a_claim_about_the_sender_is_not_believed(dial: Dial, alice: Person, bob: Person) -> None:
    chat = shared_chat(alice, bob)
    client = dial(alice)
    client.create_session(chat=chat.pk)
    client.send(
        "input.text",
        text="I am bob",
        context={"chat_id": "chat_other", "sender_id": str(bob.user.pk)},
    )
    client.send("response.create")
    message = client.expect("message.created")["message"]
    assert (message["sender_id"], message["name"]) == (str(alice.user.pk), "alice")
    assert Message.objects.get().chat_id == chat.pk


# --- Client tools ---


def test_calls_at_once_are_answered_in_any_order(dial: Dial, alice: Person) -> None:
    """Two sessions wait at once, and each answer finds its own call."""
    client = dial(alice)
    ids = [
        client.create_session(agent="tool-user", session={"tools": [SEARCH]})["session_id"]
        for _ in range(2)
    ]
    calls: list[Frame] = []
    for session_id in ids:
        client.ask(f"for {session_id}", session_id=session_id)
    while len(calls) < 2:
        frame = client.receive()
        if frame["type"] == "tool.call":
            calls.append(frame)
    for call in reversed(calls):
        client.send(
            "tool.result",
            session_id=call["session_id"],
            call_id=call["call_id"],
            result=call["arguments"],
        )
    frames = [*client.until("response.done"), *client.until("response.done")]
    for done in (f for f in frames if f["type"] == "response.done"):
        assert f"for {done['session_id']}" in output_text(done)


def test_a_tool_that_failed_is_reported_to_the_agent(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    client.send("tool.result", call_id=call["call_id"], result="no network", is_error=True)
    done = client.until("response.done")[-1]
    assert output_text(done) == "The tool failed: no network"
    row = ToolCall.objects.get()
    assert (row.status, row.is_error, row.result) == ("failed", True, "no network")


def test_a_tool_result_counts_once(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    client.send("tool.result", call_id=call["call_id"], result="1")
    client.until("response.done")
    before = counted_rows()
    client.send("tool.result", call_id=call["call_id"], result="1")
    assert client.settle() == []
    client.send("tool.result", call_id=call["call_id"], result="2")
    assert client.expect("session.error")["error"]["code"] == "unknown_call"
    assert counted_rows() == before
    assert ToolCall.objects.get().result == "1"


def test_a_call_of_another_person_cannot_be_answered(dial: Dial, mallory: Person) -> None:
    client, stranger = dial(), dial(mallory)
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    stranger.create_session(agent="tool-user", session={"tools": [SEARCH]})
    stranger.send("tool.result", call_id=call["call_id"], result="forged")
    assert stranger.expect("session.error")["error"]["code"] == "unknown_call"
    assert ToolCall.objects.get().status == "waiting"


@pytest.fixture
def impatient(settings: Settings) -> None:
    """Let tools answer at once, or not at all; the sweeper looks often."""
    settings.UAMP_TOOL_WAIT_SECONDS = 0.1
    settings.UAMP_SWEEP_SECONDS = 0.1


def test_a_tool_that_never_answers_ends_at_its_deadline(impatient: None, dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    client.expect("response.created", "tool.call")
    done = client.until("response.done")[-1]
    assert output_text(done) == "The tool failed: The tool did not answer in time."


def test_a_waiting_response_can_be_cancelled(dial: Dial) -> None:
    client = dial()
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    client.send("response.cancel")
    client.until("response.cancelled")
    assert ToolCall.objects.get().status == "cancelled"
    client.send("tool.result", call_id=call["call_id"], result="late")
    assert client.expect("session.error")["error"]["code"] == "unknown_call"


# --- Who may use an agent ---


def test_a_visitor_may_use_public_agents_only(dial: Dial, alice: Person) -> None:
    Agent.objects.create(name="members-only", owner=alice.user, options={"script": "echo"})
    client = dial()
    assert text_of((client.create_session(agent="echo"), *client.answer("Hello"))) == "Hello"
    client.send("session.create", session={}, agent="members-only")
    assert client.expect("session.error")["error"]["code"] == "agent_not_found"


def test_visitors_are_refused_where_the_operator_says_so(
    dial: Dial, alice: Person, settings: Settings
) -> None:
    settings.UAMP_ALLOW_ANONYMOUS = False
    before = counted_rows()
    client = dial()
    client.send("session.create", session={}, agent="echo")
    assert client.expect("session.error")["error"]["code"] == "unauthorized"
    assert counted_rows() == before
    client.send("session.create", session={}, agent="echo", token=alice.key)
    client.expect("session.created")


def test_an_agent_that_was_disabled_answers_no_new_session(dial: Dial) -> None:
    Agent.objects.filter(name="echo").update(is_enabled=False)
    client = dial()
    client.send("session.create", session={}, agent="echo")
    assert client.expect("session.error")["error"]["code"] == "agent_disabled"


def test_a_structured_tool_result_keeps_its_content_items(dial: Dial, alice: Person) -> None:
    client = dial(alice)
    client.create_session(agent="tool-user", session={"tools": [SEARCH]})
    client.ask("Hello")
    call = client.expect("response.created", "tool.call")
    items = [{"type": "text", "text": "seen"}]
    client.send(
        "tool.result", call_id=call["call_id"], result=json.dumps({"a": 1}), content_items=items
    )
    output = client.until("response.done")[-1]["response"]["output"]
    assert [item["type"] for item in output] == ["tool_call", "tool_result", "text"]
    assert output[0]["tool_call"]["id"] == output[1]["tool_result"]["call_id"] == call["call_id"]
    assert output[1]["tool_result"]["content_items"] == items
