"""The texts that a run itself adds to what its model reads, for estimates of the input.

A text that a run adds anywhere else has to be listed here too: what is not weighed is not paid
before the model is called (docs/money.md).
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from agents_app.checkpoints import ResponseCheckpoint
from agents_app.conversation.state_changes import SET_STATE, described
from agents_app.providers.row_params import row_params
from agents_app.runtime.offered_tools import tool_definitions
from agents_app.runtime.run_request import RunRequest
from agents_app.runtime.structured import PROBLEM_CHARS, repeat_prompt, schema_of_form
from agents_app.selectors import AgentSpec
from uamp.shared_state import VersionedState
from uap.execution.planning import ANSWER_PROMPT, PLAN_SCHEMA, planning_prompt
from uap.execution.react import ACTING_PROMPT, REASONING_PROMPT
from uap.uamp_adapter.history import CONTINUE, NOTHING_NEW
from upp import AssistantMessage, ReasoningBlock, TextBlock, Tool, ToolResultMessage
from upp import Message as ModelMessage
from upp.providers.anthropic_request import STRUCTURE_TEXTS

REPLANNING_CHARS: Final = 500
"""More than the words around the steps that the prompts of a plan quote."""


def first_texts(spec: AgentSpec, request: RunRequest) -> Iterator[str]:
    """Yield the texts that the first step adds to instructions, messages and tools."""
    params = row_params(spec.provider, spec.options)
    yield from (_json(params[name]) for name in ("system", "tools") if name in params)
    if SET_STATE in spec.tools:
        yield described(request.shared_state or VersionedState())
    if _ends_in_own_words(request):
        yield max(CONTINUE, NOTHING_NEW, key=len)
    yield from _of_strategy(spec, request)
    if spec.strategy == "plan" or schema_of_form(request.response_format) is not None:
        yield from STRUCTURE_TEXTS


def later_texts(spec: AgentSpec, request: RunRequest) -> Iterator[str]:
    """Yield the texts that a later step adds to all that the model has read and written.

    The steps that a plan quotes are not among them: `Meter.next_step` counts them.
    """
    yield from _of_strategy(spec, request)
    if spec.strategy == "plan":
        yield ANSWER_PROMPT
        yield "x" * REPLANNING_CHARS
    if (schema := schema_of_form(request.response_format)) is not None:
        yield repeat_prompt("x" * PROBLEM_CHARS, schema)


def checkpoint_texts(checkpoint: ResponseCheckpoint) -> Iterator[str]:
    """Yield the texts of a checkpoint's messages, including those that were never shown."""
    return map(_all_text, checkpoint.state.messages)


def _of_strategy(spec: AgentSpec, request: RunRequest) -> Iterator[str]:
    if spec.strategy == "react":
        yield str(spec.strategy_options.get("reasoning_prompt", REASONING_PROMPT))
        yield ACTING_PROMPT
    elif spec.strategy == "plan":
        tools = [_tool(*tool) for tool in tool_definitions(spec, request)]
        # A vendor that enforces the schema receives it in addition to the prompt.
        yield planning_prompt(tools, limit=spec.max_steps, schema=PLAN_SCHEMA)


def _tool(name: str, description: str, parameters: Mapping[str, Any]) -> Tool:
    return Tool(name=name, description=description, parameters=parameters, run=dict)


def _ends_in_own_words(request: RunRequest) -> bool:
    """Return whether a prompt may follow the agent's own last words."""
    if request.resume or request.checkpoint is not None:
        return True
    spoken = (message for message in reversed(request.history) if message.role != "system")
    last = next(spoken, None)
    return last is not None and last.role == "assistant"


def _all_text(message: ModelMessage) -> str:
    """Return all text of a message that a model is sent."""
    if isinstance(message, ToolResultMessage):
        results = [
            (tool_result.tool_call_id, _text(tool_result.result)) for tool_result in message.results
        ]
        return "".join(part for result in results for part in result)
    texts = [
        block.text for block in message.content if isinstance(block, TextBlock | ReasoningBlock)
    ]
    calls = message.tool_calls if isinstance(message, AssistantMessage) else ()
    texts += [call.tool_call_id + call.tool_name + _json(call.arguments) for call in calls]
    return "".join(texts)


def _text(result: Any) -> str:
    return result if isinstance(result, str) else _json(result)


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()
