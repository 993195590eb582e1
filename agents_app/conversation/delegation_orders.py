"""The tool `delegate`: an agent gives a task to another agent, with contents by id.

Orders are validated and described here; `sessions_app` starts the other agent's turn.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Protocol

import msgspec

from agents_app.conversation.presentation import ATTACHMENTS
from agents_app.tools.registry import ToolOutcome, schema_of
from uamp.storable_text import storable
from uamp.types.content import (
    ToolCallData,
)

DELEGATE = "delegate"
TASK_CHARS = 32_000
_ContentIds = Annotated[tuple[str, ...], msgspec.Meta(max_length=ATTACHMENTS)]


class DelegationOrder(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The arguments of `delegate`: the agent, its task and the contents that it needs."""

    agent: Annotated[str, msgspec.Meta(description="The agent's name.")]
    task: Annotated[
        str,
        msgspec.Meta(
            min_length=1,
            max_length=TASK_CHARS,
            description="The whole task: the agent sees nothing of this conversation.",
        ),
    ]
    attachments: Annotated[
        _ContentIds, msgspec.Meta(description="The content_id of each content that it needs.")
    ] = ()


def delegate_description(delegates: Sequence[tuple[str, str]]) -> str:
    """Return the description of `delegate`; `delegates` are names with descriptions."""
    agents = "".join(
        f"\n- {name}: {about}" if about else f"\n- {name}" for name, about in delegates
    )
    return (
        "Give a task to another agent and get its answer. Pass contents by their content_id as"
        f" attachments. The agents:{agents}"
    )


def delegate_schema(delegates: Sequence[tuple[str, str]]) -> dict[str, Any]:
    """Return the JSON Schema of a DelegationOrder for these agents."""
    schema = schema_of(DelegationOrder)
    schema["properties"]["agent"]["enum"] = [name for name, _ in delegates]
    return schema


class Delegator(Protocol):
    """Passes the orders of one response to other agents."""

    async def delegate(self, call: ToolCallData, order: DelegationOrder) -> ToolOutcome:
        """Have another agent carry out an order, and return its answer."""


async def delegate(
    delegator: Delegator, call: ToolCallData, arguments: dict[str, Any]
) -> ToolOutcome:
    """Delegate a task to another agent; errors are described for the model."""
    try:
        order = msgspec.convert(arguments, DelegationOrder)
    except msgspec.ValidationError as error:
        return ToolOutcome(result=f"The task was not given to an agent. {error}.", is_error=True)
    return await delegator.delegate(call, msgspec.structs.replace(order, task=storable(order.task)))
