"""Answers of the agents without a model."""

import re
from collections.abc import Sequence
from typing import Any

import pytest
from django.utils import translation
from hypothesis import given
from hypothesis import strategies as st

from agents_app.demo import DEMO_AGENTS
from agents_app.providers.scripts import MAX_PIECES, SCRIPTS, SLOW_WORDS, user_text
from agents_app.selectors import AgentSpec
from chat_app.mentioned import mentioned_names
from uamp.types.content import (
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
)
from uamp_project.demo import CHAT_AGENTS
from uap.uamp_adapter.history import output_messages, to_conversation
from upp import LLMRequest, Tool, UPPError
from upp.providers.scripted import Call, Fail, Reasoning, Step, Text

ASKED = Tool(name="weather", description="", parameters={}, run=print)
OTHER = Tool(name="other", description="", parameters={}, run=print)
CONTENT = "550e8400-e29b-41d4-a716-446655440000"
CSV = FileContent(file="QQ==", filename="Sales.CSV", mime_type="x/y", content_id="id-1")


async def play(
    name: str,
    text: str = "hello  big world",
    *,
    resume: Sequence[ContentItem] = (),
    tools: tuple[Tool, ...] = (),
    items: tuple[ContentItem, ...] = (),
) -> list[Step]:
    """Return the steps that an agent's script plays."""
    message = Message(role="user", content=text, content_items=items or None)
    conversation = await to_conversation([message], agent_name=name)
    messages = (*conversation.messages, *output_messages(resume))
    request = LLMRequest(messages=messages, tools=tools)
    spec = AgentSpec(id="a", name=name, delegates=(("darkroom", "edits pictures"),))
    return [step async for step in SCRIPTS[name](spec, request)]


def text_of(steps: list[Step]) -> str:
    return "".join(step.text for step in steps if isinstance(step, Text))


def result(text: str, *, is_error: bool = False) -> tuple[ContentItem, ...]:
    """Return an answer in which a tool was called and answered."""
    return (
        ToolCallContent(tool_call=ToolCallData(id="c", name="t", arguments="{}")),
        ToolResultContent(tool_result=ToolResultData(call_id="c", result=text, is_error=is_error)),
    )


@given(st.text(min_size=1))
async def test_echo_adds_up_to_the_text(text: str) -> None:
    assert text_of(await play("echo", text)) == text


async def test_echo_says_one_delta_per_word() -> None:
    assert await play("echo") == [Text("hello  "), Text("big "), Text("world")]


@pytest.mark.parametrize("name", ["echo", "thinker"])
@pytest.mark.parametrize("words", [MAX_PIECES, MAX_PIECES + 1, 100_000])
async def test_a_long_answer_has_a_bounded_number_of_pieces(name: str, words: int) -> None:
    text = "a " * words
    steps = await play(name, text)
    assert text_of(steps).endswith(text)
    # A fixed beginning, and some thought, come besides.
    assert min(words, MAX_PIECES // 2) <= len(steps) <= MAX_PIECES + 50


@pytest.mark.parametrize(
    ("text", "echoed"),
    [
        ("@echo hello", "hello"),
        ("  @Echo, hello", "hello"),
        ("@ECHO: hello", "hello"),
        ("@echo\nhello", "hello"),
        ("@echo.bot hello", "@echo.bot hello"),
        ("@echoes hello", "@echoes hello"),
        ("hello @echo", "hello @echo"),
        ("@echo", "There are no words to say back."),
        ("", "There are no words to say back."),
    ],
)
async def test_echo_leaves_its_own_mention_out(text: str, echoed: str) -> None:
    assert text_of(await play("echo", text)) == echoed


@pytest.mark.parametrize("name", ["echo", "slow", "thinker", "guide", "tool-user", "report"])
async def test_an_interrupted_answer_resumes_where_it_left_off(name: str) -> None:
    full_text = text_of(await play(name))
    beginning = full_text[: len(full_text) // 2]
    beginning = beginning[: beginning.rindex(" ")] if name == "slow" else beginning
    rest = await play(name, resume=(TextContent(text=beginning),))
    assert beginning + text_of(rest) == full_text
    assert not any(isinstance(step, Reasoning) for step in rest)


async def test_slow_counts_to_200_in_about_ten_seconds() -> None:
    steps = await play("slow")
    words = text_of(steps).split(" ")
    assert words == [f"word{n}" for n in range(1, SLOW_WORDS + 1)]
    assert 9 <= sum(getattr(step, "seconds", 0) for step in steps) <= 11


async def test_tool_user_calls_the_first_tool_with_the_text() -> None:
    (step,) = await play("tool-user", "@tool-user how warm is it?", tools=(ASKED, OTHER))
    assert isinstance(step, Call)
    assert (step.name, step.arguments) == ("weather", {"query": "how warm is it?"})


@pytest.mark.parametrize(("is_error", "verb"), [(False, "answered"), (True, "failed")])
async def test_tool_user_reports_the_result(is_error: bool, verb: str) -> None:  # noqa: FBT001 a parameter of the test
    answered = result('{"temp":22}', is_error=is_error)
    steps = await play("tool-user", tools=(ASKED,), resume=answered)
    assert text_of(steps) == f'The tool {verb}: {{"temp":22}}'
    half = (*answered, TextContent(text="The tool "))
    assert text_of(await play("tool-user", tools=(ASKED,), resume=half)) == (
        f'{verb}: {{"temp":22}}'
    )


async def test_tool_user_without_tools_says_so() -> None:
    assert "declares no tools" in text_of(await play("tool-user"))


async def test_thinker_thinks_before_it_answers() -> None:
    steps = await play("thinker", "why?")
    kinds = [type(step) for step in steps]
    assert kinds == sorted(kinds, key=lambda kind: kind is Text)
    assert kinds.count(Reasoning) > 3
    assert text_of(steps) == "I thought about it. You asked: why?"
    thought = (ThinkingContent(thinking="The question"), TextContent(text="I thought"))
    assert text_of(await play("thinker", "why?", resume=thought)) == (" about it. You asked: why?")


async def test_fail_gives_half_an_answer() -> None:
    steps = await play("fail")
    assert 0 < len(text_of(steps)) < len("This answer to 'hello  big world' will never be complete")
    assert isinstance(steps[-1], Fail)
    assert isinstance(steps[-1].error, UPPError)


async def test_report_calls_csv_report_with_the_last_file() -> None:
    other = FileContent(file="QQ==", filename="a.txt", mime_type="text/plain", content_id="id-2")
    (step,) = await play("report", items=(CSV, other))
    assert isinstance(step, Call)
    assert (step.name, step.arguments) == ("csv_report", {"content_id": "id-1"})


@pytest.mark.parametrize(
    ("filename", "mime_type"),
    [("a.tsv", "application/octet-stream"), ("a", "text/tab-separated-values"), ("a", "text/csv")],
)
async def test_report_takes_every_kind_of_table(filename: str, mime_type: str) -> None:
    table = FileContent(file="QQ==", filename=filename, mime_type=mime_type, content_id="id-3")
    (step,) = await play("report", items=(table,))
    assert isinstance(step, Call)
    assert step.arguments == {"content_id": "id-3"}


async def test_report_answers_with_the_summary_or_what_went_wrong() -> None:
    assert text_of(await play("report", items=(CSV,), resume=result('"| a |"'))) == "| a |"
    failed = await play("report", items=(CSV,), resume=result('"It is empty."', is_error=True))
    assert text_of(failed) == "I could not make the report. It is empty."


PICTURE = ImageContent(
    image=MediaUrl(url=f"/api/content/{CONTENT}"),
    format="png",
    content_id=CONTENT,
    description="a.png, grey",
)


def called(
    name: str, text: str, *, makes_picture: bool = False, is_error: bool = False
) -> list[ContentItem]:
    """Return a call of a tool and its result, as a response keeps them."""
    return [
        ToolCallContent(tool_call=ToolCallData(id=f"call_{name}", name=name, arguments="{}")),
        ToolResultContent(
            tool_result=ToolResultData(
                call_id=f"call_{name}",
                result=text,
                is_error=is_error,
                content_items=(PICTURE,) if makes_picture else None,
            )
        ),
    ]


async def test_the_studio_gives_the_picture_to_the_darkroom_and_shows_what_comes_back() -> None:
    (order,) = await play("studio", "@studio make it grey", items=(PICTURE,))
    assert isinstance(order, Call)
    assert (order.name, order.arguments) == (
        "delegate",
        {"agent": "darkroom", "task": "make it grey", "attachments": [CONTENT]},
    )
    delegated = called("delegate", "The new picture is grey.", makes_picture=True)
    (present_call,) = await play("studio", "make it grey", items=(PICTURE,), resume=delegated)
    assert isinstance(present_call, Call)
    assert (present_call.name, present_call.arguments) == (
        "present",
        {"content_ids": [CONTENT], "caption": "a.png, grey"},
    )
    presented = [*delegated, *called("present", "The chat sees the content now.")]
    steps = await play("studio", "make it grey", items=(PICTURE,), resume=presented)
    assert text_of(steps) == "Here it is. The new picture is grey."


async def test_the_studio_says_what_went_wrong() -> None:
    assert "Attach one" in text_of(await play("studio"))
    failed = called("delegate", "darkroom could not finish.", is_error=True)
    assert text_of(await play("studio", items=(PICTURE,), resume=failed)) == (
        "darkroom could not finish."
    )
    hidden = [
        *called("delegate", "Done.", makes_picture=True),
        *called("present", "Nothing was shown.", is_error=True),
    ]
    assert text_of(await play("studio", items=(PICTURE,), resume=hidden)) == (
        "I have the picture, but I cannot show it. Nothing was shown."
    )


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("make it black and white", {"grayscale": True}),
        ("in GREY please, more contrast", {"grayscale": True, "contrast": 1.6}),
        ("less contrast", {"contrast": 0.6}),
        ("turn it left", {"rotate": 270}),
        ("rotate", {"rotate": 90}),
        ("upside down, and smaller", {"rotate": 180, "thumbnail": 320}),
        ('write "A grey day" below', {"caption": "A grey day"}),
    ],
)
async def test_the_darkroom_does_what_the_words_say(text: str, changes: dict[str, Any]) -> None:
    (step,) = await play("darkroom", text, items=(PICTURE,))
    assert isinstance(step, Call)
    assert (step.name, step.arguments) == ("edit_picture", {"content_id": CONTENT, **changes})


async def test_the_darkroom_says_what_it_did_and_what_it_can_do() -> None:
    done = called("edit_picture", "The new picture is grey.", makes_picture=True)
    assert text_of(await play("darkroom", "grey", items=(PICTURE,), resume=done)) == (
        "The new picture is grey."
    )
    refused = called("edit_picture", "The call was not allowed by bob.", is_error=True)
    assert text_of(await play("darkroom", "grey", items=(PICTURE,), resume=refused)) == (
        "I could not edit the picture. The call was not allowed by bob."
    )
    assert "Say what to do" in text_of(await play("darkroom", "hello", items=(PICTURE,)))
    assert "Attach one" in text_of(await play("darkroom", "grey"))


async def test_report_without_a_file_says_how_to_attach_one() -> None:
    assert "Attach one" in text_of(await play("report"))


@pytest.mark.parametrize(
    ("question", "excerpt"),
    [
        ("what can you do?", "The demo agents need no model"),
        ("how do I upload a file?", "**Files**"),
        ("can I invite people to a chat?", "**Chats**"),
        ("which agents are there?", "**Agents**"),
        ("is there an API?", "session.create"),
    ],
)
async def test_the_guide_says_that_there_is_no_model_and_helps(question: str, excerpt: str) -> None:
    answer = text_of(await play("guide", question))
    assert answer.startswith("No model is connected to me yet")
    # Most readers would be refused there.
    assert "/connect-model" not in answer
    assert excerpt in answer
    # Agents that it mentioned would answer its answer, and ask the person to pay.
    assert mentioned_names(answer, DEMO_AGENTS) == set()


@pytest.mark.parametrize(
    ("question", "excerpt"),
    [
        ("Was kannst du?", "Die Agenten der Demo brauchen kein Modell"),
        ("Was ist das hier?", "Die Agenten der Demo brauchen kein Modell"),
        ("Wie kann ich eine Datei hochladen?", "**Dateien**"),
        ("@guide Bild anhängen, bitte", "**Dateien**"),
        ("Wie lade ich Leute in einen Chat ein?", "In **Chats**"),
        ("WELCHE AGENTEN GIBT ES?", "**Agenten**"),
        ("Gibt es eine Schnittstelle?", "**Programme** sprechen"),
    ],
)
async def test_the_guide_answers_a_german_question_in_german(question: str, excerpt: str) -> None:
    answer = text_of(await play("guide", question))
    assert answer.startswith("Mit mir ist noch kein Modell verbunden")
    assert "/connect-model" not in answer
    assert excerpt in answer
    assert mentioned_names(answer, DEMO_AGENTS) == set()


async def test_an_interrupted_german_answer_of_the_guide_resumes_in_german() -> None:
    full_text = text_of(await play("guide", "Was kannst du?"))
    beginning = (TextContent(text=full_text[:100]),)
    assert (
        full_text[:100] + text_of(await play("guide", "Was kannst du?", resume=beginning))
        == full_text
    )


async def test_the_guide_answers_in_english_whatever_language_a_thread_had() -> None:
    with translation.override("de"):
        answer = text_of(await play("guide", "What was the MIT license again? Hm."))
        assert translation.get_language() == "de"
    assert answer.startswith("No model is connected to me yet")


async def test_the_guide_names_what_a_person_can_try_and_where() -> None:
    mentions = re.findall(r"`@([\w-]+)`", text_of(await play("guide", "what can you do?")))
    assert {"assistant", *mentions[:3]} == set(CHAT_AGENTS)
    # One works for other agents, one with tools that a program declares.
    assert set(mentions) == set(DEMO_AGENTS) - {"darkroom", "tool-user"}


def test_no_question_was_asked() -> None:
    spec: Any = AgentSpec(id="a", name="echo")
    assert user_text(spec, LLMRequest(messages=())) == ""
