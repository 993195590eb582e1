"""The input and the result of one agent run, and the port to its response."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import msgspec

from agents_app.checkpoints import ResponseCheckpoint
from agents_app.conversation.delegation_orders import Delegator
from agents_app.conversation.presentation import ContentPresenter
from agents_app.conversation.state_changes import SharedStateStore
from agents_app.remote.tasks import TaskHandle
from agents_app.tools.registry import ServerTool, ToolOutcome
from uamp.shared_state import VersionedState
from uamp.types.content import ContentItem, Message, ToolCallData
from uamp.types.session import ResponseFormat, ToolDefinition, UsageStats


class RunRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The request that a run answers.

    `tools` are the tools that the client declared. `params` may hold model, the GenerationOptions
    that are set, as builtins, and `extensions`, the session's options by vendor. `resume` is the
    output of this response before its process died: texts, thoughts, calls and results; calls
    without a result are run again under their old ids. With a `checkpoint`, the agent continues
    from there, and `resume` is its output plus anything added since. `remote_task` is the answer of
    a remote agent that is still in progress on its own server. `written` are the tokens that
    the response has used so far. With `ends_at_tools`, the run ends after a step that calls the
    client's tools. `asker` is the key by which limits count a client's requests, and `servers` the
    number of servers that passed this request on. `shared_state` is the chat's state for which
    the answer is paid; None if it was not read.
    """

    response_id: str
    history: Sequence[Message]
    instructions: str | None = None
    tools: Sequence[ToolDefinition] = ()
    response_format: ResponseFormat | None = None
    params: Mapping[str, Any] = msgspec.field(default_factory=dict)
    resume: Sequence[ContentItem] = ()
    checkpoint: ResponseCheckpoint | None = None
    remote_task: TaskHandle | None = None
    written: int = 0
    ends_at_tools: bool = False
    asker: str = ""
    servers: int = 0
    shared_state: VersionedState | None = None


class ToolBroker(ContentPresenter, Delegator, SharedStateStore, Protocol):
    """The response's side of a run: pays for steps and calls and runs tools that run elsewhere.

    The task that iterates the run calls `admit_step`, `inference_sent` and `wrote`; the task of
    each tool call calls the other methods.
    """

    async def admit_step(self) -> None:
        """Allow another step of the answer once it is paid for; raises AgentError."""

    def inference_sent(self) -> None:
        """Count the input of an inference that is being sent."""

    async def wrote(self, text: str) -> None:
        """Count text that the model writes into its calls, once it is paid for; raises AgentError.

        Not called for free agents.
        """

    async def admit_tool(self, call: ToolCallData) -> None:
        """Allow a tool call once it is paid for; raises AgentError."""

    async def client_tool(self, call: ToolCallData) -> ToolOutcome:
        """Send `tool.call` and wait for `tool.result` (UAMP §6.10, §5.14)."""

    async def hand_over(self, call: ToolCallData) -> None:
        """Send `tool.call` for a call at which the response ends."""

    async def long_tool(self, tool: ServerTool, call: ToolCallData) -> ToolOutcome:
        """Have a worker run a long tool, or wait for one that is already running this call."""


class RunFinished(msgspec.Struct, frozen=True, kw_only=True):
    """The last item of a run; not an event.

    `usage` covers this run only, not earlier runs of a resumed response. `finish_reason` is stop,
    length, tool_calls or the provider's own word. `steps` counts inferences. An answer that the
    provider's filter stopped raises AgentError instead.
    """

    usage: UsageStats
    finish_reason: str
    steps: int
    model: str
