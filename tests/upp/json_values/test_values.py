"""Messages are values that nothing changes, and what no message can hold is refused."""

import copy
import json
import pickle
from collections.abc import Callable
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from upp import (
    AssistantMessage,
    AudioBlock,
    BinaryBlock,
    BytesSource,
    DocumentBlock,
    ImageBlock,
    ReasoningBlock,
    TextBlock,
    Thread,
    ToolCall,
    ToolExecution,
    ToolResult,
    ToolResultMessage,
    UserMessage,
    llm,
)
from upp.conversation.messages import Message
from upp.json_values.frozen import EMPTY, FrozenDict, FrozenList, freeze
from upp.providers.scripted import ScriptedModel, Text
from upp.tools import parse_call

PICTURE = ImageBlock(source=BytesSource(data=b"x"), mime_type="image/png")


@pytest.mark.parametrize("kind", [UserMessage, AssistantMessage])
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("hi", (TextBlock(text="hi"),)),
        (TextBlock(text="hi"), (TextBlock(text="hi"),)),
        ([TextBlock(text="hi"), PICTURE], (TextBlock(text="hi"), PICTURE)),
        (["hi", PICTURE], (TextBlock(text="hi"), PICTURE)),
        ({PICTURE: "a view"}.keys(), (PICTURE,)),
        ((), ()),
    ],
)
def test_content_may_be_text_a_block_or_a_list(
    kind: Callable[..., Message], value: Any, content: Any
) -> None:
    message: Any = kind(content=value)
    assert message.content == content
    assert msgspec.convert(msgspec.to_builtins(message), Message) == message


@pytest.mark.parametrize("value", [5, None, b"hi", {"type": "text"}, [1], ["hi", None]])
def test_content_of_another_type_is_refused_with_what_is_taken(value: Any) -> None:
    with pytest.raises(
        TypeError, match=r"UserMessage\.content must be a str, or blocks .*TextBlock"
    ):
        UserMessage(content=value)
    with pytest.raises(TypeError, match=r"AssistantMessage\.content .*ReasoningBlock"):
        AssistantMessage(content=value)


def test_a_message_holds_only_blocks_of_its_own_kind() -> None:
    with pytest.raises(TypeError, match="not ReasoningBlock"):
        UserMessage(content=ReasoningBlock(text="hm"))  # type: ignore[arg-type]


async def test_an_invalid_input_is_refused_before_the_model_is_asked() -> None:
    async def script(_request: Any) -> Any:
        yield Text("never")

    value: Any = 5
    with pytest.raises(TypeError, match="not int"):
        await llm(model=ScriptedModel(script=script)).generate("hi", value)


def test_a_thread_takes_what_messages_take() -> None:
    thread = Thread().user(["hi", PICTURE]).assistant("a picture")
    assert [message.text for message in thread] == ["hi", "a picture"]
    wrong: Any = "hi"
    with pytest.raises(TypeError, match=r"user\(\.\.\.\)"):
        thread.push(wrong)


@pytest.mark.parametrize(
    ("kind", "members", "message"),
    [
        (TextBlock, {"text": 5}, "TextBlock.text must be a str, not int"),
        (ImageBlock, {"source": "a.png", "mime_type": "image/png"}, "Image.from_path"),
        (DocumentBlock, {"source": "a.pdf", "mime_type": "a/b"}, "Document.from_path"),
        (AudioBlock, {"data": "UklGR", "mime_type": "audio/wav"}, "AudioBlock.data must be bytes"),
        (UserMessage, {"content": "hi", "metadata": None}, "metadata must be a mapping"),
        (AssistantMessage, {"content": "", "tool_calls": ["t"]}, "a sequence of ToolCall"),
        (ToolResultMessage, {"results": 5}, "a sequence of ToolResult"),
        (
            ToolCall,
            {"tool_call_id": "c", "tool_name": "t", "arguments": "{}"},
            "arguments must be a mapping",
        ),
    ],
)
def test_wrong_members_are_refused_with_what_is_taken(
    kind: Any, members: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        kind(**members)


def test_calls_and_results_may_be_given_as_any_sequence() -> None:
    call = ToolCall(tool_call_id="c", tool_name="t", arguments={})
    result = ToolResult(tool_call_id="c", result=1)
    calls: Any = [call]
    results: Any = [result]
    assert AssistantMessage(content=(), tool_calls=calls).tool_calls == (call,)
    assert ToolResultMessage(results=results).results == (result,)
    results = result
    assert ToolResultMessage(results=results).results == (result,)


def changeable_json() -> dict[str, Any]:
    """Return JSON that is changed after it was given away."""
    return {"a": {"list": [1, {"b": 2}]}}


MAKERS: dict[str, Callable[[Any], Any]] = {
    "metadata": lambda value: UserMessage(content="hi", metadata=value).metadata,
    "arguments": lambda value: ToolCall(tool_call_id="c", tool_name="t", arguments=value).arguments,
    "executed": lambda value: (
        ToolExecution(
            tool_name="t",
            tool_call_id="c",
            arguments=value,
            result=1,
            is_error=False,
            duration=1.0,
        ).arguments
    ),
    "result": lambda value: ToolResult(tool_call_id="c", result=value).result,
    "binary": lambda value: BinaryBlock(data=b"", mime_type="a/b", metadata=value).metadata,
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_was_given_is_copied_and_what_is_held_refuses_every_change(
    make: Callable[[Any], Any],
) -> None:
    value = changeable_json()
    frozen = make(value)
    value["a"]["list"][1]["b"] = 3
    value["c"] = 4

    assert frozen == changeable_json()
    with pytest.raises(TypeError, match="part of a message and cannot be changed"):
        frozen["c"] = 4
    with pytest.raises(TypeError, match="cannot be changed"):
        frozen["a"]["list"].append(5)
    with pytest.raises(TypeError, match="cannot be changed"):
        frozen["a"]["list"][1].update(b=3)
    assert frozen == changeable_json()
    assert (
        json.loads(json.dumps(frozen))
        == msgspec.json.decode(msgspec.json.encode(frozen))
        == changeable_json()
    )


@pytest.mark.parametrize(
    "change",
    [
        lambda object_, _list: object_.clear(),
        lambda object_, _list: object_.pop("a"),
        lambda object_, _list: object_.popitem(),
        lambda object_, _list: object_.setdefault("z", 1),
        lambda object_, _list: object_.__delitem__("a"),
        lambda object_, _list: object_.__ior__({"z": 1}),
        lambda _object, list_: list_.__setitem__(0, 1),
        lambda _object, list_: list_.__delitem__(0),
        lambda _object, list_: list_.__iadd__([1]),
        lambda _object, list_: list_.__imul__(2),
        lambda _object, list_: list_.clear(),
        lambda _object, list_: list_.extend([1]),
        lambda _object, list_: list_.insert(0, 1),
        lambda _object, list_: list_.pop(),
        lambda _object, list_: list_.remove(1),
        lambda _object, list_: list_.reverse(),
        lambda _object, list_: list_.sort(),
    ],
)
def test_a_frozen_value_cannot_be_changed(change: Any) -> None:
    frozen = freeze(changeable_json())
    with pytest.raises(TypeError):
        change(frozen, frozen["a"]["list"])
    assert frozen == changeable_json()


def test_a_deep_copy_can_be_changed() -> None:
    frozen = freeze(changeable_json())
    deep_copy = copy.deepcopy(frozen)
    deep_copy["a"]["list"].append(3)
    assert (type(deep_copy), type(deep_copy["a"]["list"])) == (dict, list)
    assert frozen == changeable_json()
    assert {**frozen, "c": 1} | frozen == {**changeable_json(), "c": 1}


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 our own


def test_what_is_frozen_stays_it_through_copies_and_pickles() -> None:
    frozen = freeze(changeable_json())
    for same in (copy.copy(frozen), pickled(frozen), freeze(frozen)):
        assert same == frozen
        assert type(same) is FrozenDict
        assert type(same["a"]["list"]) is FrozenList
    message = UserMessage(content="hi", metadata=changeable_json())
    assert copy.deepcopy(message) == pickled(message) == message
    assert type(copy.deepcopy(message).metadata) is FrozenDict


def test_any_mapping_is_an_object_and_a_tuple_stays_one() -> None:
    assert freeze(MappingProxyType({"a": ([1],)})) == {"a": ([1],)}
    assert UserMessage(content="hi", metadata={}).metadata is EMPTY
    assert "metadata" not in msgspec.to_builtins(UserMessage(content="hi"))


def test_what_is_nested_too_deeply_is_refused() -> None:
    deep: dict[str, Any] = {}
    for _ in range(5000):
        deep = {"a": deep}
    with pytest.raises(TypeError, match="nested too deeply"):
        UserMessage(content="hi", metadata=deep)


def test_arguments_that_are_nested_too_deeply_are_reported_to_the_model() -> None:
    text = '{"a":' * 980 + "1" + "}" * 980
    assert parse_call("c", "t", text).malformed == text
