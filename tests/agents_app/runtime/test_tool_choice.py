"""A model that is sent the tool choice of a request."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from agents_app.runtime.run_request import RunRequest
from agents_app.runtime.tool_choice import choosing
from uamp.types.content import ToolCallContent, ToolCallData
from upp import (
    AssistantMessage,
    LLMCapabilities,
    LLMRequest,
    LLMResponse,
    StreamEvent,
    TextBlock,
    TokenUsage,
    Tool,
    UserMessage,
)
from upp.model import EmittingModel
from upp.stream import Emit

CALL = ToolCallContent(tool_call=ToolCallData(id="c1", name="search", arguments="{}"))


async def _run(_arguments: dict[str, Any]) -> str:
    return ""


TOOL = Tool(name="search", description="", parameters={"type": "object"}, run=_run)


@dataclass
class Recorder(EmittingModel):
    """Answers in words, and keeps the requests."""

    requests: list[LLMRequest] = field(default_factory=list)
    model_id: str = "m"
    provider: str = "anthropic"
    capabilities: LLMCapabilities = field(default_factory=LLMCapabilities)

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See Model."""
        del emit
        self.requests.append(request)
        message = AssistantMessage(content=(TextBlock(text="{}"),))
        return LLMResponse(message=message, usage=TokenUsage(), stop_reason="end_turn")


async def _ignore(_event: StreamEvent) -> None:
    """Take an event that no test looks at."""


async def model_request(
    run_request: RunRequest, *, provider: str = "anthropic", **request: Any
) -> LLMRequest:
    """Return the request that the model receives for a request with a tool."""
    model = Recorder()
    chosen = choosing(model, provider, run_request)
    assert isinstance(chosen, EmittingModel)
    fields = {"messages": (UserMessage(content="Hello"),), "tools": (TOOL,), **request}
    await chosen.infer(LLMRequest(**fields), _ignore)
    return model.requests[-1]


def asking(**fields: Any) -> RunRequest:
    """Return a request that demands a tool call."""
    return RunRequest(
        response_id="r", history=(), **{"params": {"tool_choice": "required"}, **fields}
    )


async def test_a_demand_is_sent_under_the_vendors_name() -> None:
    assert (await model_request(asking())).params == {"tool_choice": {"type": "any"}}


async def test_a_run_resumed_after_a_call_does_not_require_another() -> None:
    assert (await model_request(asking(resume=(CALL,)))).params == {}


async def test_the_agents_own_tool_configuration_is_kept() -> None:
    params = {"toolConfig": {"retrievalConfig": {"languageCode": "en"}}}
    request = await model_request(asking(), provider="google", params=params)
    assert request.params["toolConfig"] == {
        "retrievalConfig": {"languageCode": "en"},
        "functionCallingConfig": {"mode": "ANY"},
    }


@pytest.mark.parametrize("structure", [None, {"type": "object", "required": ["a"]}])
async def test_a_model_that_may_call_nothing_may_still_answer_by_the_call_of_a_structure(
    structure: Any,
) -> None:
    request = await model_request(asking(params={"tool_choice": "none"}), structure=structure)
    if structure is None:
        assert request.params == {"tool_choice": {"type": "none"}}
        assert request.tools == (TOOL,)
    else:
        assert request.params == {}
        assert request.tools == ()


def test_a_run_without_a_demand_has_the_model_itself() -> None:
    model = Recorder()
    assert choosing(model, "anthropic", asking(params={"tool_choice": "auto"})) is model
