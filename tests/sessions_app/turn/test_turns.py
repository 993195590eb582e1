"""Turns on a real socket: what makes one, and what is shown of it (UAMP §5.6-5.14, §8.5.1)."""

import base64
import uuid

import httpx
from pytest_django import Settings

from chat_app.contents import addresses, storage
from chat_app.models import Content, Message
from sessions_app.models import Response
from tests import factories
from tests.client import output_text, text_of
from tests.live_server import Dial, Person
from tests.sessions_app.turn.searching import SEARCH


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
    contents = {handle: storage.read(content) for handle, content in stored.items()}
    assert contents == {image_id: png, file_id: text}
    for handle, data in contents.items():
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
    download = web.get(item["image"]["url"], headers=alice.headers)
    assert download.content == factories.png()
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
    sound = storage.read(Content.objects.get())
    assert sound[:4] + sound[8:12] == b"RIFFWAVE"
    assert sound.endswith(b"data\x05\0\0\0abcde\0")


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
    request = Response.objects.get().request
    assert request["instructions"] == "Be concise."
    assert request["response_format"] == {"type": "text"}
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
