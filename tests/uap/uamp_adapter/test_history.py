"""From a stored conversation to what a model is sent."""

from tests.agents_app.run_context import Media
from tests.uap.uamp_adapter.messages import call, shape, user
from uamp.types.content import (
    ContentItem,
    ImageContent,
    Message,
    TextContent,
    ThinkingContent,
    ToolCallContent,
    ToolCallData,
    ToolResultContent,
    ToolResultData,
)
from uap.uamp_adapter.history import (
    CONTINUE,
    NOTHING_NEW,
    RememberedMessage,
    open_ended,
    output_messages,
    to_conversation,
)
from upp import AssistantMessage, ReasoningBlock, ToolCall, ToolResultMessage, UserMessage


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
    messages = [
        user("hi", name="alice"),
        user("hey", name="bob"),
        Message(role="assistant", content="I am other", name="other"),
        user("nameless"),
    ]
    for_model = await to_conversation(messages, agent_name="bot", media=Media())
    assert shape(for_model.messages) == [
        ("user", ["[alice]", "hi"]),
        ("user", ["[bob]", "hey"]),
        ("user", ["[agent other]", "I am other"]),
        ("user", ["nameless"]),
    ]
    for_script = await to_conversation(messages, agent_name="bot")
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
    call_message = conversation.messages[1]
    assert isinstance(call_message, AssistantMessage)
    assert call_message.tool_calls[0].arguments == {"q": 1}


async def test_a_call_without_result_gets_one() -> None:
    call_message = Message(role="assistant", tool_calls=(call("a"),))
    conversation = await to_conversation(
        [call_message, user("and?"), call_message], agent_name="bot"
    )
    error_text = "The call was interrupted and has no result."
    assert shape(conversation.messages) == [
        ("assistant", [], ["a"]),
        ("results", [("a", error_text)]),
        ("user", ["and?"]),
        ("assistant", [], ["a"]),
        ("results", [("a", error_text)]),
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


def test_an_empty_output_makes_no_messages() -> None:
    assert output_messages([]) == []


def test_a_result_that_is_not_json_is_kept() -> None:
    result = ToolResultData(call_id="a", result="not json")
    (message,) = output_messages([ToolResultContent(tool_result=result)])
    assert shape([message]) == [("results", [("a", "not json")])]


async def test_an_answer_in_the_history_is_reported_with_its_calls() -> None:
    answer = Message(role="assistant", content="let me look", content_items=OUTPUT, name="bot")
    conversation = await to_conversation([answer], agent_name="bot")
    assert len(conversation.messages) == 3


def test_an_interrupted_answer_keeps_its_open_calls_and_no_media() -> None:
    half, waiting = TextContent(text="half"), ToolCallContent(tool_call=call("a"))
    assert shape(output_messages([half, waiting])) == [("assistant", ["half"], ["a"])]
    assert output_messages([ImageContent(image="QQ==")]) == []


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
    messages = [
        RememberedMessage(role="user", content="hi"),
        RememberedMessage(role="assistant", content="hello", name="bot"),
    ]
    first = await to_conversation(messages, agent_name="bot")
    again = await to_conversation(messages, agent_name="bot")
    other = await to_conversation(messages, agent_name="other")
    assert [
        earlier is later for earlier, later in zip(first.messages, again.messages, strict=True)
    ] == [
        True,
        True,
    ]
    # What the first agent said is the other's to read.
    assert [type(message) for message in other.messages] == [UserMessage, UserMessage]


async def test_a_call_before_plain_text_is_still_answered() -> None:
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


async def test_a_clients_result_may_be_a_failure() -> None:
    result = ToolResultData(call_id="c", result="no such file", is_error=True)
    failure = (ToolResultContent(tool_result=result),)
    history = [
        Message(role="assistant", tool_calls=(call("c"),)),
        Message(role="tool", tool_call_id="c", content="no such file", content_items=failure),
        Message(role="assistant", tool_calls=(call("d"),)),
        Message(role="tool", tool_call_id="d", content="a file"),
    ]

    messages = (await to_conversation(history, agent_name="echo")).messages

    results = [message.results[0] for message in messages if isinstance(message, ToolResultMessage)]
    assert [(entry.result, entry.is_error) for entry in results] == [
        ("no such file", True),
        ("a file", False),
    ]
