"""An agent's state as a value (UAP §6, §12.1).

A state never changes. Each operation returns a new state with a new UUIDv4 id. Everything in a
state is immutable at any depth: messages are frozen values of `upp`, and metadata is frozen here.
Its JSON contains everything it holds.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from types import MappingProxyType
from typing import Annotated, Any, Literal, NotRequired, Self, TypedDict

import msgspec
from msgspec.structs import force_setattr

from upp import InferenceInput, Message, TokenUsage
from upp.conversation.ids import new_id
from upp.conversation.messages import to_message
from upp.json_values.frozen import freeze

VERSION = "1.1.0"
"""The version of UAP in the JSON of a state."""

PlanStatus = Literal["pending", "in_progress", "completed", "failed"]


class PlanStep(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One step of a plan (UAP §5.4); `depends_on` are the ids of steps that must come first."""

    id: str
    description: str
    depends_on: tuple[str, ...]
    status: PlanStatus
    tool: str | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "depends_on", tuple(self.depends_on))


class ToolExecutionTrace(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """A tool call inside a sub-agent; `result` is text, `duration` is in milliseconds."""

    tool_name: str
    tool_call_id: str
    arguments: dict[str, Any]
    result: str
    is_error: bool = False
    duration: float | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "arguments", freeze(self.arguments))


class SubagentExecutionTrace(
    msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True
):
    """One run of a sub-agent (UAP §8.5); times in milliseconds since 1970.

    `subagent_type` is the name of the tool, and `parent_tool_call_id` the call that started the
    run. `subagent_id` is new for each run.
    """

    subagent_id: str
    subagent_type: str
    parent_tool_call_id: str
    prompt: str
    start_time: int
    end_time: int
    success: bool
    result: str | None = None
    error: str | None = None
    tool_executions: tuple[ToolExecutionTrace, ...] = ()
    usage: TokenUsage | None = None

    def __post_init__(self) -> None:
        force_setattr(self, "tool_executions", tuple(self.tool_executions))


class InvalidState(ValueError):
    """The JSON is not an agent state, or is of an unsupported version of UAP."""


class _Versioned(msgspec.Struct, kw_only=True, rename="camel", omit_defaults=True):
    version: str


class _StateJSON(_Versioned, kw_only=True):
    id: Annotated[str, msgspec.Meta(min_length=1)]
    messages: tuple[Message, ...]
    step: Annotated[int, msgspec.Meta(ge=0)]
    metadata: dict[str, Any]
    reasoning: tuple[str, ...] = ()
    plan: tuple[PlanStep, ...] | None = None
    subagent_traces: tuple[SubagentExecutionTrace, ...] = ()


class AgentStateJSON(TypedDict):
    """The JSON of a state (UAP §12.1); optional members are left out when empty."""

    version: str
    id: str
    messages: list[dict[str, Any]]
    step: int
    metadata: dict[str, Any]
    reasoning: NotRequired[list[str]]
    plan: NotRequired[list[dict[str, Any]]]
    subagentTraces: NotRequired[list[dict[str, Any]]]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentState:
    """Everything an agent knows between calls (UAP §6.1).

    `messages` is the conversation, `step` the number of the last step (it restarts with each call),
    and `metadata` the developer's own JSON values, whose mappings and lists are made immutable.
    Raises TypeError for metadata that JSON cannot represent.
    """

    id: str
    messages: tuple[Message, ...]
    step: int
    metadata: Mapping[str, Any]
    reasoning: tuple[str, ...]
    plan: tuple[PlanStep, ...] | None
    subagent_traces: tuple[SubagentExecutionTrace, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "metadata", frozen_json(self.metadata))
        object.__setattr__(self, "messages", tuple(self.messages))
        object.__setattr__(self, "reasoning", tuple(self.reasoning))
        object.__setattr__(self, "plan", None if self.plan is None else tuple(self.plan))
        object.__setattr__(self, "subagent_traces", tuple(self.subagent_traces))

    def __reduce__(self) -> tuple[Any, ...]:
        # Frozen metadata cannot be pickled, and JSON contains everything.
        return _restore, (self.to_json(),)

    @classmethod
    def initial(cls) -> Self:
        """Return the state of an agent without messages (UAP §6.2)."""
        return cls(
            id=new_id(),
            messages=(),
            step=0,
            metadata={},
            reasoning=(),
            plan=None,
            subagent_traces=(),
        )

    def with_message(self, message: InferenceInput) -> Self:
        """Append a message; text or a block becomes a user message.

        Raises TypeError for anything else.
        """
        return self.with_messages((message,))

    def with_messages(self, messages: Iterable[InferenceInput]) -> Self:
        """Append messages in any form that `with_message` accepts."""
        return self._replace(messages=(*self.messages, *_messages(messages)))

    def with_context(self, messages: Iterable[InferenceInput]) -> Self:
        """Replace the whole conversation, for example with a shorter one (UAP §6.3)."""
        return self._replace(messages=_messages(messages))

    def with_step(self, step: int) -> Self:
        """Set the number of the step."""
        return self._replace(step=step)

    def with_metadata(self, key: str, value: Any) -> Self:
        """Set one metadata value; raises TypeError if JSON cannot represent it."""
        entry = frozen_json({key: value})
        return self._replace(metadata=MappingProxyType({**self.metadata, **entry}))

    def with_reasoning(self, reasoning: str) -> Self:
        """Append a piece of reasoning."""
        return self._replace(reasoning=(*self.reasoning, reasoning))

    def with_plan(self, plan: Sequence[PlanStep]) -> Self:
        """Set the plan."""
        return self._replace(plan=tuple(plan))

    def with_subagent_traces(self, traces: Iterable[SubagentExecutionTrace]) -> Self:
        """Append traces of sub-agents (UAP §8.5)."""
        return self._replace(subagent_traces=(*self.subagent_traces, *traces))

    def _replace(self, **changes: Any) -> Self:
        """Return a copy with a new id; the changes must already be frozen."""
        state = object.__new__(type(self))
        changes["id"] = new_id()
        for name in self.__slots__:
            value = changes[name] if name in changes else getattr(self, name)
            object.__setattr__(state, name, value)
        return state

    def to_json(self) -> AgentStateJSON:
        """Return the JSON of the state (UAP §12.1), without empty optional members.

        It shares nothing with the state.
        """
        shape = _StateJSON(
            version=VERSION,
            id=self.id,
            messages=self.messages,
            step=self.step,
            metadata=_thawed(self.metadata),
            reasoning=self.reasoning,
            plan=self.plan,
            subagent_traces=self.subagent_traces,
        )
        # Encode and decode, so that the result equals what a store would return.
        plain: AgentStateJSON = msgspec.json.decode(msgspec.json.encode(shape))
        return plain

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Create a state from its JSON, with the same id (UAP §12.1, §15.3).

        Accepts any version with the same major number. Raises InvalidState.
        """
        try:
            version = msgspec.convert(given, type=_Versioned).version
            if version.partition(".")[0] != VERSION.partition(".")[0]:
                raise InvalidState(f"Unsupported UAP version: {version!r}")
            shape = msgspec.convert(given, type=_StateJSON)
        except msgspec.ValidationError as error:
            raise InvalidState(f"This is not an agent state: {error}") from error
        try:
            return cls(
                id=shape.id,
                messages=shape.messages,
                step=shape.step,
                metadata=shape.metadata,
                reasoning=shape.reasoning,
                plan=shape.plan,
                subagent_traces=shape.subagent_traces,
            )
        except TypeError as error:
            raise InvalidState(f"This is not an agent state: {error}") from error


def _messages(inputs: Iterable[InferenceInput]) -> tuple[Message, ...]:
    if isinstance(inputs, str):
        raise TypeError("Append a str with with_message(text): it is one message, not several.")
    return tuple([to_message(item) for item in inputs])


_NOTHING: Mapping[str, Any] = MappingProxyType({})


def _restore(data: AgentStateJSON) -> AgentState:
    return AgentState.from_json(data)


def frozen_json(value: Any) -> Any:
    """Return an immutable copy of a metadata value.

    Raises TypeError if JSON cannot represent it.
    """
    if isinstance(value, Mapping) and not value:
        return _NOTHING
    try:
        return _frozen(value)
    except RecursionError as error:
        raise TypeError("Metadata is nested too deeply.") from error


def _frozen(value: Any) -> Any:
    if value is None or isinstance(value, bool):
        return value
    # Subclasses of str and numbers (an enum, a marked-safe text) become plain ones.
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not isfinite(value):
            raise TypeError(f"Metadata must be JSON, which has no number {value}.")
        return float(value)
    if isinstance(value, Mapping):
        if not all(isinstance(key, str) for key in value):
            raise TypeError("The keys of metadata must be strings.")
        return MappingProxyType({_text(key): _frozen(inner) for key, inner in value.items()})
    if isinstance(value, list | tuple):
        return tuple(_frozen(inner) for inner in value)
    raise TypeError(f"Metadata must be JSON, which has no {type(value).__name__}.")


def _text(value: str) -> str:
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise TypeError("Metadata must be JSON, which has no lone surrogates.") from error
    return text


def _thawed(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _thawed(inner) for key, inner in value.items()}
    if isinstance(value, tuple):
        return [_thawed(inner) for inner in value]
    return value
