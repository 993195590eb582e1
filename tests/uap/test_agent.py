"""`agent()` and the four ways to use one; what the package exports."""

import ast
import importlib
import inspect
import pkgutil
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path
from uuid import UUID

import pytest

import uap
import uap.execution
import uap.middleware
import upp
from tests.uap.agents import call, message_lines, model, requests, tool
from uap import Agent, AgentState, AgentStrategy, PlanStep, agent
from upp import (
    ErrorCode,
    ImageBlock,
    LLMCapabilities,
    Middleware,
    MiddlewareContext,
    ProviderConfig,
    TextBlock,
    ToolExecution,
    Turn,
    UPPError,
    UrlSource,
    UserMessage,
)
from upp.llm import LLMOptions
from upp.stream import Following

START = AgentState.initial()
MODULES = [
    importlib.import_module(module.name)
    for module in pkgutil.walk_packages(uap.__path__, prefix="uap.")
]


def test_an_agent_has_an_id_of_its_own_and_what_it_was_given() -> None:
    """UAP §3.4, §14.2 MUST: UUIDv4; §4.2, §4.3: the members of an agent."""
    own_model = model("x")
    tools = [tool("t")]
    bot = agent(model=own_model, system="be kind", tools=tools)
    other = agent(model=own_model)

    assert UUID(bot.id).version == 4
    assert bot.id != other.id
    assert (bot.model, bot.system, bot.tools) == (own_model, "be kind", tuple(tools))
    assert (other.system, other.tools, other.execution.name) == (None, (), "loop")
    with pytest.raises(FrozenInstanceError):
        bot.id = "other"  # type: ignore[misc]  # that it cannot be is what is shown


async def test_generate_returns_the_turn_and_the_new_state() -> None:
    """UAP §4.4: generate(input, state) returns { turn, state }; §2.2: state in, state out."""
    state = START.with_metadata("mine", 1)
    bot = agent(model=model("hello"))
    result = await bot.generate("hi", state)

    assert isinstance(result.turn, Turn)
    assert message_lines(result.state.messages) == ["user hi", "assistant hello"]
    assert result.state.metadata == {"mine": 1, "agentId": bot.id}
    assert (state.messages, state.metadata) == ((), {"mine": 1})


async def test_ask_keeps_the_conversation_and_repeats_nothing() -> None:
    """UAP §4.6: history is preserved in state."""
    bot = agent(model=model("one", "two"))
    first = await bot.ask("a", START)
    second = await bot.ask("b", first.state)

    assert message_lines(second.state.messages) == [
        "user a",
        "assistant one",
        "user b",
        "assistant two",
    ]
    assert [len(request.messages) for request in requests(bot)] == [1, 3]


async def test_query_begins_with_nothing_and_keeps_nothing() -> None:
    """UAP §4.7: stateless; §14.2 MUST NOT hide conversation history in implicit state."""
    seen: list[AgentState] = []
    bot = agent(
        model=model("one", "two"),
        strategy=AgentStrategy(on_step_start=lambda _, state: seen.append(state)),
    )
    first, second = await bot.query("a"), await bot.query("b")

    assert isinstance(first, Turn)
    assert second.response.text == "two"
    assert [message_lines(state.messages) for state in seen] == [["user a"], ["user b"]]


async def test_blocks_are_inputs_too() -> None:
    """UAP §1.4 MUST: UPP's inputs are used directly."""
    block = ImageBlock(source=UrlSource(url="https://example.org/a.png"), mime_type="image/png")
    bot = agent(model=model("nice"))
    await bot.query(block)

    message = requests(bot)[0].messages[0]
    assert isinstance(message, UserMessage)
    assert message.content == (block,)


def test_the_options_of_the_model_are_those_of_the_agent() -> None:
    """UAP §4.2, §14.2 MUST: extends LLMOptions for full passthrough."""
    options = set(LLMOptions.__annotations__) - {"max_iterations", "middleware"}

    assert options <= set(inspect.signature(agent).parameters)
    # The two others have a name of UAP's: tool_strategy.max_iterations and llm_middleware.
    assert {"tool_strategy", "llm_middleware"} <= set(inspect.signature(agent).parameters)


async def test_options_reach_the_model_as_they_are() -> None:
    """UAP §4.2: params, config, tools, system and structure pass through."""
    config = ProviderConfig(timeout=3)
    tools = [tool("t")]
    bot = agent(
        model=model("{}"),
        system="be kind",
        tools=tools,
        structure={"type": "object"},
        params={"temperature": 0},
        config=config,
    )
    await bot.query("hi")
    request = requests(bot)[0]

    assert (request.system, request.tools) == ("be kind", tuple(tools))
    assert (request.structure, request.params) == ({"type": "object"}, {"temperature": 0})
    assert request.config is config


async def test_middleware_of_the_model_sees_its_calls_and_may_add_to_the_conversation() -> None:
    """UAP §4.2, §14.2 MUST: full UPP passthrough."""

    class Notes(Middleware):
        name = "notes"

        def __init__(self) -> None:
            self.tools: list[str] = []

        def on_request(self, context: MiddlewareContext) -> None:
            note = UserMessage(content=(TextBlock(text="by the way"),))
            messages = (*context.request.messages, note)
            context.request = type(context.request)(messages=messages, tools=context.request.tools)

        def on_tool_call(self, call: upp.ToolCall, context: MiddlewareContext) -> None:
            self.tools.append(f"{context.model_id} {call.tool_name}")

    notes = Notes()
    bot = agent(model=model(call("t"), "x"), tools=[tool("t")], llm_middleware=[notes])
    result = await bot.generate("hi", START)

    assert message_lines(result.state.messages) == [
        *("user hi", "user by the way", "assistant", "results done"),
        *("user by the way", "assistant x"),
    ]
    assert notes.tools == ["scripted t"]


async def test_middleware_of_the_model_has_one_state_for_a_run() -> None:
    """UAP §4.2: what it notes at the start of an inference is there when tools run."""

    class Counts(Middleware):
        def __init__(self) -> None:
            self.seen: list[tuple[str, int]] = []

        def on_start(self, context: MiddlewareContext) -> None:
            context.state["inferences"] = context.state.get("inferences", 0) + 1

        def on_tool_result(self, execution: ToolExecution, context: MiddlewareContext) -> None:
            self.seen.append((execution.tool_name, context.state["inferences"]))

    counts = Counts()
    bot = agent(
        model=model(call("a"), call("b"), "x"),
        tools=[tool("a"), tool("b")],
        llm_middleware=[counts],
    )
    await bot.generate("hi", START)
    await bot.stream("hi", START)

    assert counts.seen == [("a", 1), ("b", 2)]


def test_what_the_api_lacks_is_refused_when_the_agent_is_made() -> None:
    api = LLMCapabilities(tools=False)

    with pytest.raises(UPPError, match="does not support tools") as raised:
        agent(model=model("x", capabilities=api), tools=[tool("t")])
    assert raised.value.code is ErrorCode.INVALID_REQUEST


def test_agents_make_no_tools() -> None:
    """UAP §2.6, §8.1, §14.2 MUST NOT auto-generate tool schemas from agents."""
    members = {name for name in dir(Agent) if not name.startswith("_")}

    assert members | {*Agent.__dataclass_fields__} == {
        *("id", "llm", "execution", "middleware", "strategy", "checkpoints", "session_id"),
        *("model", "tools", "system", "generate", "stream", "ask", "query"),
    }
    # The tools of a chat come with their schemas; nothing else makes one.
    modules = [
        module.__name__
        for module in MODULES
        for node in ast.walk(ast.parse(inspect.getsource(module)))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Tool"
    ]
    assert modules == ["uap.serving.chat_tools"]


@pytest.mark.parametrize("package", [uap, uap.execution])
def test_nothing_of_upp_is_exported_again(package: object) -> None:
    """UAP §1.4, §14.2 MUST NOT re-export UPP types."""
    names: list[str] = package.__all__  # type: ignore[attr-defined]  # packages have one
    exported = [getattr(package, name) for name in names]

    assert names == sorted(names, key=lambda name: (name.upper() != name, name[0].islower(), name))
    assert not [
        member for member in exported if any(member is getattr(upp, name) for name in upp.__all__)
    ]


def test_names_are_where_the_specification_puts_them() -> None:
    """UAP §3.2, §13.1, §13.2: what is imported from where; options are keyword parameters."""
    agents = {"agent", "Agent", "GenerateResult", "AgentState", "PlanStep", "AgentStrategy"}
    options = {"AgentOptions", "LoopOptions", "ReactOptions", "PlanOptions", "AgentStateJSON"}
    streams = {"AgentStreamResult", "AgentStreamEvent", "UAPEventType"}
    stores = {"CheckpointStore", "CheckpointMetadata", "ThreadTree", "ThreadNode"}
    around = {"Middleware", "MiddlewareContext", "SubagentExecutionTrace", "ToolExecutionTrace"}
    strategies = {"loop", "react", "plan", "ExecutionStrategy", "ExecutionContext"}

    executed = {"ExecutionStrategy", "ExecutionContext", "ExecutionResult"}
    assert agents | options | streams | stores | around | executed <= set(uap.__all__)
    assert strategies | executed <= set(uap.execution.__all__)
    assert options - {"AgentOptions", "AgentStateJSON"} <= set(uap.execution.__all__)
    assert callable(uap.middleware.logging)
    for factory, options_type in (
        (agent, uap.AgentOptions),
        (uap.execution.loop, uap.LoopOptions),
        (uap.execution.react, uap.ReactOptions),
        (uap.execution.plan, uap.PlanOptions),
    ):
        assert set(inspect.signature(factory).parameters) == set(options_type.__annotations__)
    of_upp = {"llm", "LLMInstance", "LLMOptions", "ProviderConfig", "ModelReference", "Message"}
    of_upp |= {"UserMessage", "AssistantMessage", "ToolResultMessage", "Turn", "TokenUsage", "Tool"}
    of_upp |= {"ToolCall", "ToolResult", "ToolExecution", "ToolUseStrategy", "StreamResult"}
    of_upp |= {"StreamEvent", "StreamEventType", "UPPError", "ErrorCode", "Thread", "ThreadJSON"}
    assert of_upp <= set(upp.__all__)


def test_the_json_of_a_state_and_of_a_thread_is_described() -> None:
    """UAP §12.1, §13.2: AgentStateJSON, and ThreadJSON of UPP."""
    plan = [PlanStep(id="a", description="x", depends_on=(), status="pending")]
    state = START.with_reasoning("hm").with_plan(plan).to_json()
    described = uap.AgentStateJSON.__annotations__
    assert set(described) - set(state) == {"subagentTraces"}
    assert set(state) <= set(described)
    assert set(upp.Thread().to_json()) == set(upp.ThreadJSON.__annotations__)


def test_no_type_of_upp_is_wrapped() -> None:
    """UAP §1.4, §2.1, §14.2 MUST NOT wrap or abstract UPP types: none is a base of ours.

    `Following` is no type of UPP: it is what StreamResult and AgentStreamResult are made of.
    """
    types = {value for name in upp.__all__ if isinstance(value := getattr(upp, name), type)}
    types -= {Following}
    ours = [
        value
        for module in MODULES
        for value in vars(module).values()
        if isinstance(value, type) and value.__module__ == module.__name__
    ]

    assert ours
    assert not [own_type for own_type in ours if types & set(own_type.__mro__[1:])]


def test_the_package_needs_nothing_but_upp_msgspec_and_the_standard_library() -> None:
    """UAP §3.1: UAP stands on UPP; it knows no framework and no provider.

    What connects an agent with UAMP stands beside it: nothing of the protocol imports it.
    """
    root = Path(uap.__path__[0])
    beside = {"uamp_adapter", "serving", "__main__.py"}
    packages = {
        name.split(".")[0] if not name.startswith("upp.providers") else name
        for path in root.rglob("*.py")
        if path.relative_to(root).parts[0] not in beside
        for node in ast.walk(ast.parse(path.read_text()))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert packages - set(sys.stdlib_module_names) == {"msgspec", "uap", "upp"}
