"""Generation: inputs, outputs, usage and options."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest

from tests.upp.tool_loop.scripts import broken, keeps_calling
from tests.upp.tool_scripts import calls_then_answers, tool
from upp import (
    AssistantMessage,
    ErrorCode,
    LLMCapabilities,
    LLMRequest,
    Message,
    Middleware,
    ProviderConfig,
    StreamEvent,
    TextBlock,
    TokenUsage,
    ToolUseStrategy,
    UPPError,
    UserMessage,
    llm,
)
from upp.providers.scripted import Call, ScriptedModel, Step, Text


async def test_generate_returns_inputs_and_outputs_without_the_history() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text(f"{len(request.messages)} messages, ")
        yield Text(f"system {request.system}, params {request.params}")

    model = llm(model=ScriptedModel(script=script), system="be kind", params={"top_p": 1})
    history: list[Message] = [
        UserMessage(content=(TextBlock(text="old"),)),
        AssistantMessage(content=()),
    ]
    turn = await model.generate(history, "one", TextBlock(text="two"))
    assert [message.text for message in turn.messages[:2]] == ["one", "two"]
    assert turn.messages[2:] == (turn.response,)
    assert turn.response.text == "4 messages, system be kind, params {'top_p': 1}"
    assert (turn.cycles, turn.stop_reason, turn.data) == (1, "end_turn", None)


async def test_usage_is_the_sum_of_the_cycles() -> None:
    script = calls_then_answers(Call(name="t", arguments={}))
    model = llm(model=ScriptedModel(script=script), tools=[tool("t", lambda _: "done")])
    turn = await model.generate([], "go on")
    assert turn.usage == TokenUsage(input_tokens=2 + 3, output_tokens=1, total_tokens=6)


async def test_a_provider_without_a_response_is_an_invalid_response() -> None:
    class Silent:
        model_id = provider = "silent"
        capabilities = LLMCapabilities()

        async def stream(self, _request: LLMRequest) -> Any:
            yield StreamEvent(type="message_start")

    with pytest.raises(UPPError) as caught:
        await llm(model=Silent()).generate([], "go")
    assert caught.value.code == ErrorCode.INVALID_RESPONSE


async def test_the_first_argument_may_be_an_input() -> None:
    async def script(request: LLMRequest) -> AsyncIterator[Step]:
        yield Text("+".join(message.text for message in request.messages))

    model = llm(model=ScriptedModel(script=script))
    assert (await model.generate("a", "b")).response.text == "a+b"
    assert (await model.generate(TextBlock(text="c"))).response.text == "c"
    turn = await model.stream(UserMessage(content=(TextBlock(text="d"),)), "e")
    assert [message.text for message in turn.messages] == ["d", "e", "d+e"]


async def test_a_history_of_something_else_is_refused() -> None:
    model = llm(model=ScriptedModel(script=keeps_calling))
    with pytest.raises(UPPError, match="not str") as caught:
        await model.generate(["hi"])  # type: ignore[list-item] # what is refused
    assert caught.value.code == ErrorCode.INVALID_REQUEST


def test_options_are_changed_in_another_instance() -> None:
    tools = [tool("t", broken)]
    config = ProviderConfig(timeout=1)
    model = llm(
        model=ScriptedModel(script=keeps_calling),
        system="s",
        tools=tools,
        structure={"type": "object"},
        params={"p": 1},
        config=config,
        max_iterations=3,
        middleware=[Middleware()],
    )
    other = model.with_options(max_iterations=0, structure=None)
    assert other == replace(model, structure=None, tool_strategy=ToolUseStrategy(max_iterations=0))
    assert (model.max_iterations, other.max_iterations) == (3, 0)
    assert other.config is config
    assert model.with_options(tool_strategy=ToolUseStrategy()).max_iterations == 10
    with pytest.raises(UPPError, match="same name"):
        model.with_options(tools=tools * 2)


@pytest.mark.parametrize(
    ("name", "message"),
    [("sytem", r"no option 'sytem'\. Did you mean 'system'"), ("zzz", r"no option 'zzz'\.$")],
)
def test_an_option_that_there_is_not_is_refused(name: str, message: str) -> None:
    options: Any = {name: "x"}
    with pytest.raises(TypeError, match=message):
        llm(model=ScriptedModel(script=calls_then_answers()), **options)
