"""From input events to one message (UAMP §8.5.1, §8.5.4)."""

import itertools
from base64 import b64encode

import pytest

import uamp
from uamp import (
    AudioContent,
    ErrorCode,
    FileContent,
    ImageContent,
    InputAudio,
    InputEvent,
    InputFile,
    InputImage,
    InputText,
    InputVideo,
    MediaUrl,
    Message,
    TextContent,
    ToolCallData,
    VideoContent,
)
from uamp.conversation import Assembled, says_something

_ID = "550e8400-e29b-41d4-a716-446655440000"


def _assemble(*inputs: InputEvent, messages: tuple[Message, ...] | None = None) -> Assembled:
    numbers = itertools.count(1)
    return uamp.assemble(inputs, new_id=lambda: f"id{next(numbers)}", messages=messages)


def _user(content: str, *items: uamp.ContentItem, name: str | None = None) -> Message:
    return Message(
        role="user",
        content=content,
        content_items=items or (TextContent(text=content),),
        name=name,
    )


def test_nothing_assembles_to_nothing() -> None:
    assert _assemble() == Assembled(message=None, context=[])


def test_several_texts_are_one_message() -> None:
    assert _assemble(InputText(text="a"), InputText(text="b")) == Assembled(
        message=_user("a\nb", TextContent(text="a"), TextContent(text="b")), context=[]
    )


def test_all_media_are_items_in_order_with_ids() -> None:
    assembled = _assemble(
        InputImage(image=MediaUrl(url=f"/api/content/{_ID}"), format="png", detail="low"),
        InputText(text="what is this?"),
        InputVideo(video=MediaUrl(url="https://example.com/v.mp4"), format="mp4"),
        InputFile(file="AAAA", filename="a.pdf", mime_type="application/pdf", content_id="mine"),
        InputAudio(audio="AAAA", format="mp3", is_final=True),
        InputImage(image="BBBB", alt_text="a cat"),
    )
    assert assembled.message == _user(
        "what is this?",
        ImageContent(
            image=MediaUrl(url=f"/api/content/{_ID}"), format="png", detail="low", content_id=_ID
        ),
        TextContent(text="what is this?"),
        VideoContent(
            video=MediaUrl(url="https://example.com/v.mp4"), format="mp4", content_id="id1"
        ),
        FileContent(file="AAAA", filename="a.pdf", mime_type="application/pdf", content_id="mine"),
        AudioContent(audio="AAAA", format="mp3", content_id="id2"),
        ImageContent(image="BBBB", alt_text="a cat", content_id="id3"),
    )


def test_media_alone_are_a_message_without_text() -> None:
    assert _assemble(InputImage(image="AAAA", content_id="c")).message == _user(
        "", ImageContent(image="AAAA", content_id="c")
    )


def test_other_roles_are_context_in_order() -> None:
    assembled = _assemble(
        InputText(text="be brief", role="system"),
        InputText(text="hi"),
        InputText(text="hello", role="assistant"),
    )
    assert assembled == Assembled(
        message=_user("hi"),
        context=[
            Message(role="system", content="be brief"),
            Message(role="assistant", content="hello"),
        ],
    )


def test_pieces_of_audio_are_joined_until_the_last() -> None:
    first, second, third = (b64encode(piece).decode() for piece in (b"a", b"bc", b"def"))
    assembled = _assemble(
        InputAudio(audio=first, format="pcm16"),
        InputAudio(audio=second, format="pcm16", content_id="mine"),
        InputAudio(audio=third, format="pcm16", is_final=True),
        InputAudio(audio=first, format="pcm16"),
    )
    assert assembled.message == _user(
        "",
        AudioContent(audio=b64encode(b"abcdef").decode(), format="pcm16", content_id="mine"),
        AudioContent(audio=first, format="pcm16", content_id="id1"),
    )


def test_another_format_is_another_sound() -> None:
    assembled = _assemble(
        InputAudio(audio="AAAA", format="pcm16"), InputAudio(audio="BBBB", format="mp3")
    )
    assert assembled.message == _user(
        "",
        AudioContent(audio="AAAA", format="pcm16", content_id="id1"),
        AudioContent(audio="BBBB", format="mp3", content_id="id2"),
    )


def test_a_sound_may_be_a_url() -> None:
    url = MediaUrl(url=f"/api/content/{_ID}")
    assert _assemble(InputAudio(audio=url, format="mp3")).message == _user(
        "", AudioContent(audio=url, format="mp3", content_id=_ID)
    )


def test_pieces_of_audio_that_are_not_base64_are_refused() -> None:
    with pytest.raises(uamp.RemoteProtocolError) as caught:
        _assemble(
            InputAudio(audio="AAAA", format="mp3"),
            InputAudio(audio="not base64!", format="mp3", event_id="e", session_id="s"),
        )
    error = caught.value
    assert (error.code, error.event_id, error.session_id) == (ErrorCode.INVALID_MEDIA, "e", "s")


def test_the_history_of_section_5_6_does_not_say_the_turn_twice() -> None:
    system = Message(role="system", content="You are a weather assistant.")
    turn = Message(role="user", content="Weather?")
    assert _assemble(InputText(text="Weather?", messages=(system, turn))) == Assembled(
        message=_user("Weather?"), context=[system]
    )


def test_a_history_that_ends_elsewhere_comes_before_the_turn() -> None:
    history = (Message(role="user", content="one"), Message(role="assistant", content="two"))
    assert _assemble(InputText(text="three", messages=history)) == Assembled(
        message=_user("three"), context=list(history)
    )
    other = (Message(role="user", content="one"),)
    assert _assemble(InputText(text="two", messages=other)).context == list(other)


def test_the_last_history_counts_and_comes_before_other_roles() -> None:
    old, new = Message(role="user", content="old"), Message(role="user", content="new")
    assembled = _assemble(
        InputText(text="be brief", role="system", messages=(old,)),
        InputText(text="a", messages=(new,)),
        InputText(text="b"),
    )
    assert assembled.context == [new, Message(role="system", content="be brief")]
    assert assembled.message == _user("a\nb", TextContent(text="a"), TextContent(text="b"))


def test_a_history_may_say_the_turn_in_full() -> None:
    items = (TextContent(text="what is it?"), ImageContent(image="AAAA"))
    history = (Message(role="user", content_items=items, name="alice"),)
    assert _assemble(InputText(text="what is it?", messages=history)) == Assembled(
        message=_user(
            "what is it?",
            TextContent(text="what is it?"),
            ImageContent(image="AAAA", content_id="id1"),
            name="alice",
        ),
        context=[],
    )


def test_media_of_the_turn_win_over_the_text_of_the_history() -> None:
    history = (Message(role="user", content="look"),)
    assembled = _assemble(
        InputText(text="look", messages=history), InputImage(image="AAAA", content_id="c")
    )
    assert assembled == Assembled(
        message=_user("look", TextContent(text="look"), ImageContent(image="AAAA", content_id="c")),
        context=[],
    )


def test_a_stateless_turn_is_the_last_user_message_of_its_history() -> None:
    before = Message(role="assistant", content="hi")
    history = (before, Message(role="user", content="go"))
    assert _assemble(messages=history) == Assembled(message=_user("go"), context=[before])


def test_a_stateless_turn_may_continue_from_a_tool() -> None:
    history = (Message(role="tool", tool_call_id="c", content="1"),)
    assert _assemble(messages=history) == Assembled(message=None, context=list(history))


def test_the_history_of_the_response_wins() -> None:
    mine = Message(role="assistant", content="mine")
    theirs = Message(role="assistant", content="theirs")
    assembled = _assemble(InputText(text="a", messages=(theirs,)), messages=(mine,))
    assert assembled == Assembled(message=_user("a"), context=[mine])


def test_an_empty_message_is_still_a_message() -> None:
    assert _assemble(messages=(Message(role="user"),)).message == _user("")


@pytest.mark.parametrize(
    ("message", "says"),
    [
        (Message(role="user"), False),
        (Message(role="user", content=""), False),
        (Message(role="system", content=" \n\u3000"), False),
        (Message(role="user", content_items=()), False),
        (Message(role="user", content_items=(TextContent(text=" "), TextContent(text=""))), False),
        (Message(role="user", content="."), True),
        (Message(role="user", content="", content_items=(TextContent(text="a"),)), True),
        (Message(role="user", content="", content_items=(ImageContent(image="QQ=="),)), True),
        (Message(role="tool", content="", tool_call_id="c"), True),
        (
            Message(role="assistant", tool_calls=(ToolCallData(id="c", name="n", arguments=""),)),
            True,
        ),
    ],
)
def test_blank_text_alone_says_nothing(message: Message, *, says: bool) -> None:
    assert says_something(message) is says
