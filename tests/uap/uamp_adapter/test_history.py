"""From a stored conversation to what a model is sent."""

import base64
from typing import Any

import pytest

from tests.agents_app.run_context import Media
from uamp.types.content import (
    AudioContent,
    ContentItem,
    FileContent,
    ImageContent,
    MediaUrl,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
    VideoContent,
)
from uap.uamp_adapter import media as media_module
from uap.uamp_adapter.history import (
    CONTINUE,
    NOTHING_NEW,
    RememberedMessage,
    attachments_of,
    open_ended,
    output_messages,
    to_conversation,
)
from upp import (
    AssistantMessage,
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    ToolCall,
    ToolResultMessage,
    UserMessage,
)
from upp import Message as ModelMessage

PNG = b"\x89PNG\r\n\x1a\n rest"
CONTENT = "550e8400-e29b-41d4-a716-44665544000"


def user(text: str | None = None, *items: Any, name: str | None = None) -> Message:
    return Message(role="user", content=text, content_items=items or None, name=name)


def call(call_id: str, arguments: str = "{}") -> ToolCallData:
    return ToolCallData(id=call_id, name="find", arguments=arguments)


def shape(messages: tuple[ModelMessage, ...] | list[ModelMessage]) -> list[Any]:
    """Return messages without ids and times."""
    shapes: list[Any] = []
    for message in messages:
        if isinstance(message, UserMessage):
            shapes.append(("user", [getattr(block, "text", block) for block in message.content]))
        elif isinstance(message, AssistantMessage):
            said = [getattr(block, "text", block) for block in message.content]
            shapes.append(("assistant", said, [c.tool_call_id for c in message.tool_calls]))
        else:
            shapes.append(("results", [(r.tool_call_id, r.result) for r in message.results]))
    return shapes


async def test_a_plain_conversation_keeps_its_words() -> None:
    conversation = await to_conversation(
        [
            Message(role="system", content="be kind"),
            user("hi", name="alice"),
            Message(role="assistant", content="hello", name="bot"),
            user("again", name="alice"),
        ],
        agent_name="bot",
        media=Media(),
    )
    assert conversation.system == ("be kind",)
    assert shape(conversation.messages) == [
        ("user", ["hi"]),
        ("assistant", ["hello"], []),
        ("user", ["again"]),
    ]


async def test_several_speakers_are_named_for_a_model_and_not_for_a_script() -> None:
    said = [
        user("hi", name="alice"),
        user("hey", name="bob"),
        Message(role="assistant", content="I am other", name="other"),
        user("nameless"),
    ]
    for_model = await to_conversation(said, agent_name="bot", media=Media())
    assert shape(for_model.messages) == [
        ("user", ["[alice]", "hi"]),
        ("user", ["[bob]", "hey"]),
        ("user", ["[agent other]", "I am other"]),
        ("user", ["nameless"]),
    ]
    for_script = await to_conversation(said, agent_name="bot")
    assert shape(for_script.messages)[2] == ("user", ["I am other"])


async def test_calls_of_a_stateless_history_meet_their_results() -> None:
    conversation = await to_conversation(
        [
            user("find"),
            Message(role="assistant", tool_calls=(call("a", '{"q":1}'), call("b"))),
            Message(role="tool", tool_call_id="a", content="found"),
            Message(role="tool", tool_call_id="b", content=None),
            Message(role="tool", content="without a call"),
            Message(role="tool", tool_call_id="z", content="without a call"),
            Message(role="assistant", content=""),
        ],
        agent_name="bot",
    )
    assert shape(conversation.messages) == [
        ("user", ["find"]),
        ("assistant", [], ["a", "b"]),
        ("results", [("a", "found")]),
        ("results", [("b", "")]),
    ]
    asked = conversation.messages[1]
    assert isinstance(asked, AssistantMessage)
    assert asked.tool_calls[0].arguments == {"q": 1}


async def test_a_call_without_result_gets_one() -> None:
    asked = Message(role="assistant", tool_calls=(call("a"),))
    conversation = await to_conversation([asked, user("and?"), asked], agent_name="bot")
    said = "The call was interrupted and has no result."
    assert shape(conversation.messages) == [
        ("assistant", [], ["a"]),
        ("results", [("a", said)]),
        ("user", ["and?"]),
        ("assistant", [], ["a"]),
        ("results", [("a", said)]),
    ]


OUTPUT = (
    ThinkingContent(thinking="hm"),
    TextContent(text="let me look"),
    ToolCallContent(tool_call=call("a")),
    ToolCallContent(tool_call=call("b", '{"q": ')),
    ToolResultContent(
        tool_result=ToolResultData(
            call_id="a", result='"plain"', content_items=(ImageContent(image="QQ=="),)
        )
    ),
    ToolResultContent(tool_result=ToolResultData(call_id="b", result='{"x":1}', is_error=True)),
    ImageContent(image="QQ=="),
    TextContent(text="here it is"),
)


def test_an_answer_becomes_the_messages_that_made_it() -> None:
    messages = output_messages(OUTPUT)
    assert shape(messages) == [
        ("assistant", ["hm", "let me look"], ["a", "b"]),
        ("results", [("a", "plain"), ("b", '{"x":1}')]),
        ("assistant", ["here it is"], []),
    ]
    first, results, _ = messages
    assert isinstance(first, AssistantMessage)
    assert isinstance(first.content[0], ReasoningBlock)
    assert first.tool_calls[1].malformed == '{"q": '
    assert isinstance(results, ToolResultMessage)
    assert [result.is_error for result in results.results] == [False, True]


def test_results_are_reported_in_the_order_of_their_calls() -> None:
    places = [n for n, item in enumerate(OUTPUT) if isinstance(item, ToolResultContent)]
    swapped: list[ContentItem] = list(OUTPUT)
    swapped[places[0]], swapped[places[1]] = swapped[places[1]], swapped[places[0]]
    assert shape(output_messages(swapped)) == shape(output_messages(OUTPUT))


def test_nothing_said_is_no_message() -> None:
    assert output_messages([]) == []


def test_a_result_that_is_no_json_is_kept() -> None:
    result = ToolResultData(call_id="a", result="not json")
    (message,) = output_messages([ToolResultContent(tool_result=result)])
    assert shape([message]) == [("results", [("a", "not json")])]


async def test_an_answer_in_the_history_is_reported_with_its_calls() -> None:
    said = Message(role="assistant", content="let me look", content_items=OUTPUT, name="bot")
    conversation = await to_conversation([said], agent_name="bot")
    assert len(conversation.messages) == 3


def test_an_interrupted_answer_keeps_its_open_calls_and_no_media() -> None:
    half, waiting = TextContent(text="half"), ToolCallContent(tool_call=call("a"))
    assert shape(output_messages([half, waiting])) == [("assistant", ["half"], ["a"])]
    assert output_messages([ImageContent(image="QQ==")]) == []


def linked(number: int) -> MediaUrl:
    return MediaUrl(url=f"/api/content/{CONTENT}{number}")


async def test_a_script_gets_the_text_alone_and_knows_the_attachments() -> None:
    attached = FileContent(
        file=linked(0), filename="a.csv", mime_type="text/csv", content_id="id-1"
    )
    conversation = await to_conversation(
        [user("see", TextContent(text="see"), attached)], agent_name="bot"
    )
    (message,) = conversation.messages
    assert shape([message]) == [("user", ["see"])]
    assert attachments_of(message) == [
        {"content_id": "id-1", "kind": "file", "filename": "a.csv", "mime_type": "text/csv"}
    ]
    assert attachments_of(UserMessage(content=())) == []


async def test_a_message_without_text_for_a_script_is_empty() -> None:
    conversation = await to_conversation(
        [user(None, ImageContent(image=linked(0)))], agent_name="bot"
    )
    assert shape(conversation.messages) == [("user", [""])]


async def test_a_model_gets_media_where_they_stood() -> None:
    media = Media(
        {
            f"{CONTENT}0": (PNG, "application/octet-stream"),
            f"{CONTENT}1": (b"%PDF", "application/pdf"),
            f"{CONTENT}2": (b"x" * 20, "text/csv"),
            f"{CONTENT}3": (b"PK", "application/zip"),
        }
    )
    items = (
        TextContent(text="before"),
        ImageContent(image=linked(0), format="png"),
        TextContent(text="after"),
        FileContent(file=linked(1), filename="p", mime_type="application/pdf"),
        FileContent(file=linked(2), filename="a.csv", mime_type="text/csv"),
        FileContent(file=linked(3), filename="z", mime_type="application/zip"),
        FileContent(file=linked(9), filename="gone.txt", mime_type="text/plain"),
        ImageContent(image=MediaUrl(url="https://elsewhere.example/a.png")),
        ImageContent(image="no base64!"),
        ImageContent(image=base64.b64encode(b"\xff\xd8\xff").decode()),
        AudioContent(audio=linked(0), format="wav"),
        VideoContent(video=linked(0)),
    )
    conversation = await to_conversation(
        [user("before after", *items)], agent_name="bot", media=media
    )
    (message,) = conversation.messages
    assert isinstance(message, UserMessage)
    picture, pdf, table, jpeg = (b for b in message.content if not isinstance(b, TextBlock))
    assert isinstance(picture, ImageBlock)
    assert picture.mime_type == "image/png"
    assert isinstance(pdf, DocumentBlock)
    assert (pdf.title, pdf.mime_type) == ("p", "application/pdf")
    assert isinstance(table, DocumentBlock)
    assert table.source.data == "x" * 20  # type: ignore[union-attr] # it is a TextSource
    assert isinstance(jpeg, ImageBlock)
    assert jpeg.mime_type == "image/jpeg"
    texts = [block.text for block in message.content if isinstance(block, TextBlock)]
    assert texts == [
        "before",
        f"[attachment: content_id={CONTENT}0, kind=image, mime_type=image/png]",
        "after",
        f"[attachment: content_id={CONTENT}1, kind=file, filename=p, mime_type=application/pdf]",
        f"[attachment: content_id={CONTENT}2, kind=file, filename=a.csv, mime_type=text/csv]",
        f"[attachment: content_id={CONTENT}3, kind=file, filename=z, mime_type=application/zip]",
        f"[attachment: content_id={CONTENT}9, kind=file, filename=gone.txt, mime_type=text/plain]",
        "[attachment: kind=image]",
        "[attachment: kind=image]",
        "[attachment: kind=image]",
        f"[attachment: content_id={CONTENT}0, kind=audio, mime_type=audio/wav]",
        f"[attachment: content_id={CONTENT}0, kind=video]",
    ]


async def test_media_beyond_the_budget_are_named_only_and_the_newest_come_first(
    monkeypatch: Any,
) -> None:
    monkeypatch.setattr(media_module, "MEDIA_BYTES", len(PNG) + 5)
    media = Media({f"{CONTENT}{n}": (PNG, "image/png") for n in (0, 1)})
    said = [user("old", ImageContent(image=linked(0))), user("new", ImageContent(image=linked(1)))]
    conversation = await to_conversation(said, agent_name="bot", media=media)
    old, new = conversation.messages
    assert isinstance(old, UserMessage)
    assert isinstance(new, UserMessage)
    assert not any(isinstance(block, ImageBlock) for block in old.content)
    assert any(isinstance(block, ImageBlock) for block in new.content)


async def test_a_long_document_is_cut_and_says_so(monkeypatch: Any) -> None:
    monkeypatch.setattr(media_module, "DOCUMENT_CHARS", 4)
    media = Media({f"{CONTENT}0": (b"abcdefgh", "text/plain")})
    attached = FileContent(file=linked(0), filename="a.txt", mime_type="text/plain")
    conversation = await to_conversation([user("", attached)], agent_name="bot", media=media)
    (message,) = conversation.messages
    assert isinstance(message, UserMessage)
    assert message.content[-1].source.data == "abcd\n[cut off after 4 characters]"  # type: ignore[union-attr] # a document


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("é\n".encode(), "é\n"),
        ("é\n".encode("utf-8-sig"), "é\n"),
        ("é\n".encode("utf-16"), "é\n"),
        (
            "é\n".encode("cp1252"),
            "[not UTF-8: \ufffd stands for what could not be read]\n\ufffd\n",
        ),
    ],
)
async def test_a_document_that_is_not_utf_8_says_so(data: bytes, text: str) -> None:
    media = Media({f"{CONTENT}0": (data, "text/csv")})
    attached = FileContent(file=linked(0), filename="a.csv", mime_type="text/csv")
    conversation = await to_conversation([user("", attached)], agent_name="bot", media=media)
    (message,) = conversation.messages
    assert isinstance(message, UserMessage)
    assert message.content[-1].source.data == text  # type: ignore[union-attr] # a document


def test_a_picture_is_known_by_its_first_bytes() -> None:
    assert media_module._picture_type(b"GIF89a...") == "image/gif"
    assert media_module._picture_type(b"RIFF....WEBPVP8 ") == "image/webp"
    assert media_module._picture_type(b"RIFF....WAVEfmt ") is None
    assert media_module._picture_type(b"<svg>") is None


async def test_what_an_agent_attached_is_not_read() -> None:
    media = Media({f"{CONTENT}0": (PNG, "image/png")})
    other = Message(
        role="assistant", content="see", content_items=(ImageContent(image=linked(0)),), name="o"
    )
    await to_conversation([other], agent_name="bot", media=media)
    assert media.asked == []


def test_a_conversation_that_a_vendor_gets_ends_in_no_words_of_the_agent() -> None:
    hi, answer = UserMessage(content="hi"), AssistantMessage(content="hello")
    again = open_ended([hi, answer], resumes=False, scripted=False)
    rest = open_ended([hi, answer], resumes=True, scripted=False)
    assert shape(again)[-2:] == [("assistant", ["hello"], []), ("user", [NOTHING_NEW])]
    assert shape(rest)[-1] == ("user", [CONTINUE])

    played = open_ended([hi, answer], resumes=False, scripted=True)
    assert shape(played) == [("user", ["hi"]), ("assistant", ["hello"], [])]
    assert played[-1].metadata == {"uap": {"unfinished": True}}


def test_a_conversation_that_ends_in_a_question_or_a_call_stays_as_it_is() -> None:
    waiting = ToolCall(tool_call_id="c", tool_name="t", arguments={})
    for last in (UserMessage(content="hi"), AssistantMessage(content=(), tool_calls=[waiting])):
        assert open_ended([last], resumes=False, scripted=False) == (last,)
    assert open_ended([], resumes=False, scripted=False) == ()


async def test_a_remembered_message_is_converted_once_for_each_agent() -> None:
    said = [
        RememberedMessage(role="user", content="hi"),
        RememberedMessage(role="assistant", content="hello", name="bot"),
    ]
    first = await to_conversation(said, agent_name="bot")
    again = await to_conversation(said, agent_name="bot")
    other = await to_conversation(said, agent_name="other")
    assert [one is two for one, two in zip(first.messages, again.messages, strict=True)] == [
        True,
        True,
    ]
    # What the first agent said is the other's to read.
    assert [type(message) for message in other.messages] == [UserMessage, UserMessage]


async def test_a_call_that_stands_before_plain_words_is_still_answered() -> None:
    call = ToolCallData(id="c1", name="find", arguments="{}")
    history = [
        Message(role="assistant", content=None, tool_calls=(call,)),
        RememberedMessage(role="user", content="and?"),
    ]
    conversation = await to_conversation(history, agent_name="bot")
    kinds = [type(message) for message in conversation.messages]
    assert kinds == [AssistantMessage, ToolResultMessage, UserMessage]


async def test_items_that_no_person_sends_are_passed_over() -> None:
    odd = ToolCallContent(tool_call=call("c1"))
    conversation = await to_conversation([user(None, odd, TextContent(text="x"))], agent_name="bot")
    assert shape(conversation.messages) == [("user", ["x"])]


async def test_a_sound_that_is_what_was_said_has_no_label() -> None:
    said = AudioContent(audio="QUJD", format="wav")
    media = media_module.RequestMedia(Media({}), accepts_audio=True, names_audio=False)
    await media.read([user(None, said)])
    (block,) = media.blocks(said)
    assert isinstance(block, AudioBlock)
    assert media_module.RequestMedia(None, accepts_audio=True).blocks(said) == []


async def test_a_clients_result_may_be_a_failure() -> None:
    result = ToolResultData(call_id="c", result="no such file", is_error=True)
    failure = (ToolResultContent(tool_result=result),)
    history = [
        Message(role="assistant", tool_calls=(call("c"),)),
        Message(role="tool", tool_call_id="c", content="no such file", content_items=failure),
        Message(role="assistant", tool_calls=(call("d"),)),
        Message(role="tool", tool_call_id="d", content="a file"),
    ]

    sent = (await to_conversation(history, agent_name="echo")).messages

    results = [one.results[0] for one in sent if isinstance(one, ToolResultMessage)]
    assert [(one.result, one.is_error) for one in results] == [
        ("no such file", True),
        ("a file", False),
    ]
