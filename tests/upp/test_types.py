"""Messages, tools, turns and errors as values and as JSON."""

import copy
import os
import pickle
import random
from datetime import UTC, datetime
from uuid import RFC_4122, UUID

import msgspec
import psutil
import pytest

from upp import (
    AssistantMessage,
    AudioBlock,
    BytesSource,
    DocumentBlock,
    ErrorCode,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    TextSource,
    Thread,
    TokenUsage,
    ToolCall,
    ToolResult,
    ToolResultMessage,
    TooManyRoundsError,
    Turn,
    UPPError,
    UserMessage,
    VideoBlock,
)
from upp.conversation.messages import to_message, unanswered_calls, with_joined_results
from upp.errors import code_for_status
from upp.tools import parse_call

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
CALL = ToolCall(tool_call_id="c1", tool_name="search", arguments={"q": 1})


def test_a_user_message_is_camel_case_json_with_its_type() -> None:
    message = UserMessage(
        id="m1",
        timestamp=AT,
        content=(
            TextBlock(text="hi"),
            ImageBlock(source=BytesSource(data=b"\x00\xff"), mime_type="image/png"),
        ),
    )
    assert msgspec.json.decode(msgspec.json.encode(message)) == {
        "type": "user",
        "id": "m1",
        "timestamp": "2026-01-02T03:04:05Z",
        "content": [
            {"type": "text", "text": "hi"},
            {
                "type": "image",
                "source": {"type": "bytes", "data": "AP8="},
                "mimeType": "image/png",
            },
        ],
    }


@pytest.mark.parametrize(
    "message",
    [
        UserMessage(content=(TextBlock(text="a"),), metadata={"openai": {"x": [1]}}),
        AssistantMessage(content=(ReasoningBlock(text="t"),), tool_calls=(CALL,)),
        ToolResultMessage(results=(ToolResult(tool_call_id="c1", result={"a": 1}, is_error=True),)),
    ],
)
def test_a_message_survives_json(message: Message) -> None:
    assert msgspec.json.decode(msgspec.json.encode(message), type=Message) == message


def test_two_messages_have_two_ids() -> None:
    assert UserMessage(content=()).id != UserMessage(content=()).id


def test_text_joins_text_blocks_only() -> None:
    content = (TextBlock(text="a"), ReasoningBlock(text="x"), TextBlock(text="b"))
    assert AssistantMessage(content=content).text == "a\n\nb"
    assert UserMessage(content=(TextBlock(text="c"),)).text == "c"


def test_blocks_are_found_by_their_kind() -> None:
    image = ImageBlock(source=BytesSource(data=b""), mime_type="image/png")
    document = DocumentBlock(source=TextSource(data="d"), mime_type="text/plain")
    audio = AudioBlock(data=b"", mime_type="audio/wav")
    video = VideoBlock(data=b"", mime_type="video/mp4")
    thought = ReasoningBlock(text="t")
    message = UserMessage(content=(image, document, audio, video))
    assert (message.images, message.documents) == ((image,), (document,))
    assert (message.audio, message.video) == ((audio,), (video,))
    assert AssistantMessage(content=(thought, image)).reasoning == (thought,)


def test_the_text_of_results_is_what_they_say() -> None:
    results = (
        ToolResult(tool_call_id="a", result="plain"),
        ToolResult(tool_call_id="b", result={"n": 1}),
    )
    assert ToolResultMessage(results=results).text == 'plain\n\n{"n":1}'


def test_has_tool_calls_needs_one() -> None:
    assert not AssistantMessage(content=()).has_tool_calls
    assert AssistantMessage(content=(), tool_calls=(CALL,)).has_tool_calls


def test_inputs_become_messages() -> None:
    message = AssistantMessage(content=())
    assert to_message(message) is message
    assert to_message("hi").content == (TextBlock(text="hi"),)
    assert to_message(TextBlock(text="b")).content == (TextBlock(text="b"),)


def test_unanswered_calls_are_those_at_the_end_without_result() -> None:
    other = ToolCall(tool_call_id="c2", tool_name="search", arguments={})
    call_message = AssistantMessage(content=(), tool_calls=(CALL, other))
    answered = ToolResultMessage(results=(ToolResult(tool_call_id="c1", result=""),))
    user = UserMessage(content=())
    assert unanswered_calls([call_message]) == (CALL, other)
    assert unanswered_calls([call_message, answered]) == (other,)
    assert unanswered_calls([call_message, answered, user]) == ()
    assert unanswered_calls([call_message, AssistantMessage(content=())]) == ()
    assert unanswered_calls([answered]) == ()
    assert unanswered_calls([]) == ()


def test_results_of_a_round_are_joined_in_the_order_of_its_calls() -> None:
    """Providers match results to calls of one name by their order, where calls have no ids."""
    other = ToolCall(tool_call_id="c2", tool_name="search", arguments={})
    call_message = AssistantMessage(content=(), tool_calls=(CALL, other))
    first, second, strange = (
        ToolResult(tool_call_id=call_id, result=call_id) for call_id in ("c1", "c2", "x")
    )
    late = ToolResultMessage(results=(strange, second), metadata={"a": 1})
    rest = ToolResultMessage(results=(first,), metadata={"b": 2})
    user = UserMessage(content=())
    before, joined, after = with_joined_results([call_message, late, rest, user])
    assert (before, after) == (call_message, user)
    assert isinstance(joined, ToolResultMessage)
    assert joined.results == (first, second, strange)
    assert joined.metadata == {"a": 1, "b": 2}
    # A round in one message is sent as it is, and so is what answers no call.
    conversation = (call_message, late, user, call_message, rest)
    assert with_joined_results(conversation) == conversation
    assert with_joined_results([late, rest]) == (late, rest)


@pytest.mark.parametrize(
    ("text", "arguments", "malformed"),
    [
        ('{"a": 1}', {"a": 1}, None),
        ("", {}, None),
        ('{"a": ', {}, '{"a": '),
        ("[1]", {}, "[1]"),
        ("null", {}, "null"),
        ('{"a": "\udc80"}', {}, '{"a": "\udc80"}'),
        ("[" * 5000, {}, "[" * 5000),
    ],
)
def test_arguments_that_are_not_an_object_are_kept_as_malformed(
    text: str, arguments: dict[str, int], malformed: str | None
) -> None:
    call = parse_call("c", "t", text)
    assert (call.arguments, call.malformed) == (arguments, malformed)


def test_usage_adds_every_count() -> None:
    names = TokenUsage.__struct_fields__
    usage = TokenUsage(**{name: count for count, name in enumerate(names, 1)})
    assert usage + usage == TokenUsage(**{name: 2 * count for count, name in enumerate(names, 1)})


def test_a_turn_survives_json() -> None:
    response = AssistantMessage(content=(TextBlock(text="a"),))
    turn = Turn(
        messages=(response,),
        response=response,
        tool_executions=(),
        usage=TokenUsage(),
        cycles=1,
        stop_reason="end_turn",
        data={"a": 1},
    )
    assert msgspec.json.decode(msgspec.json.encode(turn), type=Turn) == turn


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, "INVALID_REQUEST"),
        (401, "AUTHENTICATION_FAILED"),
        (402, "QUOTA_EXCEEDED"),
        (403, "AUTHENTICATION_FAILED"),
        (404, "MODEL_NOT_FOUND"),
        (408, "TIMEOUT"),
        (413, "CONTEXT_LENGTH_EXCEEDED"),
        (429, "RATE_LIMITED"),
        (451, "CONTENT_FILTERED"),
        (500, "PROVIDER_ERROR"),
        (418, "PROVIDER_ERROR"),
    ],
)
def test_a_status_has_its_code(status: int, code: str) -> None:
    assert code_for_status(status) == code


def test_ids_are_random_uuids_of_version_4() -> None:
    ids = [UserMessage(content=()).id for _ in range(1000)]
    assert len(set(ids)) == 1000
    assert {(UUID(uuid_text).version, UUID(uuid_text).variant) for uuid_text in ids} == {
        (4, RFC_4122)
    }
    assert UUID(Thread().id).version == 4


def test_a_program_that_seeds_its_random_numbers_repeats_no_id() -> None:
    def seeded() -> str:
        random.seed(0)
        return UserMessage(content=()).id

    assert seeded() != seeded()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_repeats_no_id_of_its_parent() -> None:
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            os.write(write, UserMessage(content=()).id.encode())
        finally:
            os._exit(0)
    psutil.Process(child).wait(60)
    child_id = os.read(read, 100).decode()
    os.close(read)
    os.close(write)
    assert UUID(child_id).version == 4
    assert child_id != UserMessage(content=()).id


def test_an_error_is_json_with_its_cause() -> None:
    error = UPPError("no", code=ErrorCode.RATE_LIMITED, provider="p", status_code=429)
    assert error.to_json() == {
        "name": "UPPError",
        "message": "no",
        "code": "RATE_LIMITED",
        "provider": "p",
        "modality": "llm",
        "statusCode": 429,
    }
    error.__cause__ = ValueError("why")
    assert error.to_json()["cause"] == "why"


@pytest.mark.parametrize("kind", [UPPError, TooManyRoundsError])
def test_an_error_crosses_the_border_of_a_process(kind: type[UPPError]) -> None:
    error = kind("no", code=ErrorCode.RATE_LIMITED, provider="p", status_code=429, retry_after=2.0)
    for error_copy in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 it is our own
        assert type(error_copy) is kind
        assert (error_copy.to_json(), error_copy.retry_after) == (error.to_json(), 2.0)
        assert str(error_copy) == "no"
