"""The output of a response, folded from its events (UAMP §6.6, §6.7, §6.13)."""

import time
from base64 import b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

import uamp
from uamp import (
    AudioContent,
    AudioDelta,
    AudioDone,
    Delta,
    ErrorCode,
    ErrorDetail,
    FileContent,
    ImageContent,
    MediaUrl,
    OutputBuilder,
    ResponseCancelled,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    ResponseOutput,
    TextContent,
    Thinking,
    ThinkingContent,
    ToolCall,
    ToolCallContent,
    ToolCallData,
    ToolResult,
    ToolResultContent,
    ToolResultData,
    VideoContent,
    text_delta,
)


def _built(*events: uamp.Event) -> OutputBuilder:
    builder = OutputBuilder()
    for event in events:
        builder.add(event)
    return builder


def _say(text: str, offset: int | None = None) -> ResponseDelta:
    return text_delta("r", text, offset)


def _call(call_id: str, name: str, arguments: str) -> ResponseDelta:
    data = ToolCallData(id=call_id, name=name, arguments=arguments)
    return ResponseDelta(delta=Delta(type="tool_call", tool_call=data))


def _called(call_id: str, name: str, arguments: str) -> ToolCallContent:
    return ToolCallContent(tool_call=ToolCallData(id=call_id, name=name, arguments=arguments))


def test_a_new_builder_is_empty() -> None:
    builder = OutputBuilder()
    assert (builder.output, builder.text, builder.offset) == ([], "", 0)


def test_text_is_one_item_counted_in_code_points() -> None:
    builder = _built(_say("He", 0), _say("llo ", 2), _say("😀", 6))
    assert builder.output == [TextContent(text="Hello 😀")]
    assert (builder.text, builder.offset) == ("Hello 😀", 7)


def test_reading_between_pieces_changes_nothing() -> None:
    builder = _built(_say("a"))
    assert builder.output == builder.output
    builder.add(_say("b"))
    assert builder.text == "ab"
    builder.add(_say(""))
    assert builder.output == [TextContent(text="ab")]


def test_thinking_stays_in_its_place_between_text_and_calls() -> None:
    builder = _built(
        Thinking(content="let ", is_delta=True, stage="planning"),
        Thinking(content="me see", is_delta=True),
        _say("I look."),
        _call("c1", "search", "{}"),
        Thinking(content="so", is_delta=True, redacted=True),
        _say("Done."),
    )
    assert builder.output == [
        ThinkingContent(thinking="let me see", stage="planning"),
        TextContent(text="I look."),
        _called("c1", "search", "{}"),
        ThinkingContent(thinking="so", redacted=True),
        TextContent(text="Done."),
    ]
    assert (builder.text, builder.offset) == ("I look.Done.", 12)


def test_a_complete_thought_is_an_item_of_its_own() -> None:
    builder = _built(
        Thinking(content="a", is_delta=True),
        Thinking(content="b"),
        Thinking(content="c", is_delta=True),
    )
    assert builder.output == [
        ThinkingContent(thinking="a"),
        ThinkingContent(thinking="b"),
        ThinkingContent(thinking="c"),
    ]


def test_streamed_arguments_are_merged_by_call() -> None:
    builder = _built(
        _call("c1", "search", '{"q":'),
        _call("c2", "", "["),
        _call("c1", "", "1}"),
        _call("c2", "look", "]"),
    )
    assert builder.output == [_called("c1", "search", '{"q":1}'), _called("c2", "look", "[]")]


def test_a_whole_call_takes_the_place_of_its_pieces() -> None:
    builder = _built(
        _call("c1", "search", '{"q'), ToolCall(call_id="c1", name="search", arguments='{"q":1}')
    )
    assert builder.output == [_called("c1", "search", '{"q":1}')]


def test_a_call_can_get_another_id_before_its_result() -> None:
    builder = _built(ToolCall(call_id="c1", name="search", arguments="{}"), _say("Wait."))
    builder.rename_call("c1", "c2")
    builder.add(ToolResult(call_id="c2", result="found"))
    call, _, answer = builder.output
    assert call == _called("c2", "search", "{}")
    assert isinstance(answer, ToolResultContent)
    assert answer.tool_result.call_id == "c2"
    with pytest.raises(KeyError):
        builder.rename_call("c1", "c3")


def test_results_of_either_side_are_items() -> None:
    data = ToolResultData(call_id="c1", result="1", status="success")
    builder = _built(
        ResponseDelta(delta=Delta(type="tool_result", tool_result=data)),
        ToolResult(call_id="c2", result="2", is_error=True, content_items=(TextContent(text="x"),)),
    )
    assert builder.output == [
        ToolResultContent(tool_result=data),
        ToolResultContent(
            tool_result=ToolResultData(
                call_id="c2", result="2", is_error=True, content_items=(TextContent(text="x"),)
            )
        ),
    ]


def test_sound_is_joined_from_its_pieces() -> None:
    first, second = b64encode(b"a").decode(), b64encode(b"bc").decode()
    builder = _built(
        _say("listen"),
        AudioDelta(audio=first),
        ResponseDelta(delta=Delta(type="audio", audio=second)),
    )
    assert builder.output[1] == AudioContent(audio=b64encode(b"abc").decode())
    builder.add(AudioDelta(audio=second))
    builder.add(_say("!"))
    builder.add(AudioDone(duration_ms=3200))
    assert builder.output[1:] == [
        AudioContent(audio=b64encode(b"abcbc").decode(), duration_ms=3200),
        TextContent(text="!"),
    ]


def test_the_end_of_no_sound_changes_nothing() -> None:
    assert _built(_say("a"), AudioDone(duration_ms=1)).output == [TextContent(text="a")]


def test_sound_that_is_not_base64_is_refused() -> None:
    builder = _built(_say("a"))
    with pytest.raises(uamp.RemoteProtocolError) as caught:
        builder.add(AudioDelta(audio="not base64!"))
    assert caught.value.code == ErrorCode.INVALID_MEDIA
    assert builder.output == [TextContent(text="a")]


def test_media_deltas_are_whole_items() -> None:
    url = MediaUrl(url="/u")
    builder = _built(
        ResponseDelta(
            delta=Delta(type="image", image="AA", format="png", alt_text="a cat", content_id="i")
        ),
        ResponseDelta(delta=Delta(type="video", video=url, format="mp4", description="d")),
        ResponseDelta(
            delta=Delta(
                type="file",
                file=url,
                filename="a.pdf",
                mime_type="application/pdf",
                display_hint="inline",
            )
        ),
        ResponseDelta(delta=Delta(type="file", file="AA")),
        ResponseDelta(delta=Delta(type="audio", audio=url, format="mp3")),
    )
    assert builder.output == [
        ImageContent(image="AA", format="png", alt_text="a cat", content_id="i"),
        VideoContent(video=url, format="mp4", description="d"),
        FileContent(file=url, filename="a.pdf", mime_type="application/pdf", display_hint="inline"),
        FileContent(file="AA", filename="file", mime_type="application/octet-stream"),
        AudioContent(audio=url, format="mp3"),
    ]


@pytest.mark.parametrize(
    "event",
    [
        ResponseDelta(delta=Delta(type="html")),
        ResponseDelta(delta=Delta(type="text")),
        ResponseDelta(delta=Delta(type="audio")),
        ResponseDelta(delta=Delta(type="tool_call")),
        ResponseDelta(delta=Delta(type="tool_result")),
        ResponseDelta(
            delta=Delta(type="tool_progress", tool_progress=uamp.ToolProgress(call_id="c"))
        ),
        uamp.ResponseCreated(response_id="r"),
        uamp.Progress(target="tool"),
        ResponseDone(response_id="r"),
        ResponseDone(response=ResponseOutput(id="r", status="completed")),
        ResponseCancelled(),
    ],
)
def test_what_says_nothing_changes_nothing(event: uamp.Event) -> None:
    assert _built(_say("a"), event).output == [TextContent(text="a")]


def test_a_repeated_piece_is_added_once() -> None:
    builder = _built(_say("Hello", 0), _say("lo wor", 3), _say("wor", 6))
    assert (builder.text, builder.offset) == ("Hello wor", 9)


def test_a_gap_is_reported() -> None:
    builder = _built(_say("Hello", 0))
    with pytest.raises(uamp.RemoteProtocolError) as caught:
        builder.add(_say("x", 6))
    assert caught.value.code == ErrorCode.RESYNC
    assert builder.text == "Hello"


def test_a_piece_at_the_start_replaces_all_text_in_its_place() -> None:
    builder = _built(
        _call("c0", "a", "{}"), _say("one"), _call("c1", "a", "{}"), _say("two"), _say("Hello", 0)
    )
    assert builder.output == [
        _called("c0", "a", "{}"),
        TextContent(text="Hello"),
        _called("c1", "a", "{}"),
    ]
    assert builder.offset == 5


@pytest.mark.parametrize("how", ["done", "cancelled", "failed"])
def test_the_whole_output_takes_the_place_of_its_pieces(how: str) -> None:
    items = (
        ThinkingContent(thinking="x"),
        TextContent(text="ab"),
        _called("c1", "search", "{"),
        TextContent(text="c"),
    )
    ends: dict[str, uamp.Event] = {
        "done": ResponseDone(response=ResponseOutput(id="r", status="completed", output=items)),
        "cancelled": ResponseCancelled(partial_output=items),
        "failed": ResponseError(
            error=ErrorDetail(code="internal_error", message="No."), partial_output=items
        ),
    }
    builder = _built(_say("wrong"), ends[how])
    assert builder.output == list(items)
    assert (builder.text, builder.offset) == ("abc", 3)
    builder.add(_say("d", 3))
    builder.add(_call("c1", "", "}"))
    assert builder.output[2:] == [_called("c1", "search", "{}"), TextContent(text="cd")]


@given(st.lists(st.tuples(st.sampled_from("tkc"), st.text(max_size=3)), max_size=20))
def test_no_text_is_lost_or_reordered(pieces: list[tuple[str, str]]) -> None:
    builder = OutputBuilder()
    for number, (kind, text) in enumerate(pieces):
        match kind:
            case "t":
                builder.add(_say(text, builder.offset))
            case "k":
                builder.add(Thinking(content=text, is_delta=True))
            case _:
                builder.add(_call(f"c{number}", "f", text))
    received = []
    for item in builder.output:
        match item:
            case TextContent():
                received.append(("t", item.text))
            case ThinkingContent():
                received.append(("k", item.thinking))
            case ToolCallContent():
                received.append(("c", item.tool_call.arguments))
    assert [
        kind + piece for kind, text in received for piece in (text if kind == "t" else [text])
    ] == _expected(pieces)
    assert builder.offset == len(builder.text)


def _expected(pieces: list[tuple[str, str]]) -> list[str]:
    merged: list[tuple[str, str]] = []
    for kind, text in pieces:
        if kind == "t" and not text:
            continue
        if kind in "tk" and merged and merged[-1][0] == kind:
            merged[-1] = (kind, merged[-1][1] + text)
        else:
            merged.append((kind, text))
    return [kind + piece for kind, text in merged for piece in (text if kind == "t" else [text])]


def test_a_long_answer_costs_as_much_per_piece_as_a_short_one() -> None:
    def cost(pieces: int) -> float:
        builder = OutputBuilder()
        events = [_say("word ") for _ in range(pieces)]
        before = time.process_time()
        for event in events:
            builder.add(event)
        return (time.process_time() - before) / pieces

    assert min(cost(100_000) for _ in range(3)) < 8 * min(cost(10_000) for _ in range(3))


def test_the_events_of_an_output_make_it_up_again() -> None:
    output: list[uamp.ContentItem] = [
        ThinkingContent(thinking="Hm.", stage="analyzing"),
        TextContent(text="Let me look."),
        _called("c1", "search", '{"q": 1}'),
        ToolResultContent(tool_result=ToolResultData(call_id="c1", result="1", is_error=True)),
        ImageContent(image=MediaUrl(url="https://x/y.png"), format="png", content_id="i"),
        TextContent(text="It is ☀."),
        FileContent(file="QQ==", filename="a.txt", mime_type="text/plain"),
    ]
    assert _built(*uamp.events_of_output("r", output)).output == output
    # A reader that has the beginning of the text has the whole of it afterwards.
    builder = _built(_say("Let me"), *uamp.events_of_output("r", output))
    assert builder.text == "Let me look.It is ☀."


def test_calls_to_the_client_are_left_out_of_the_events_of_an_output() -> None:
    output: list[uamp.ContentItem] = [
        _called("c1", "search", "{}"),
        ToolResultContent(tool_result=ToolResultData(call_id="c1", result="1")),
        TextContent(text="Done"),
    ]
    events = [*uamp.events_of_output("r", output, client_calls={"c1"})]
    assert events == [_say("Done", 0)]


def test_the_whole_sound_takes_the_place_of_its_pieces() -> None:
    builder = OutputBuilder()
    builder.add(ResponseDelta(delta=Delta(type="audio", audio="AAAA", format="pcm16")))
    builder.add(ResponseDelta(delta=Delta(type="text", text="Hi"), offset=0))
    sound_url = MediaUrl(url="/api/content/1")
    builder.add(
        ResponseDelta(delta=Delta(type="audio", audio=sound_url, format="wav", duration_ms=40))
    )

    assert builder.output == [
        TextContent(text="Hi"),
        AudioContent(audio=sound_url, format="wav", duration_ms=40),
    ]
