"""The order in which the calls of one answer run (UAP §8.3).

The law: calls run together unless a tool says otherwise. A call waits for the calls of the tools
that its tool depends on; a `sequential` call is finished before the others begin, and sequential
calls run one by one. What is absent from the answer is not waited for.
"""

from collections.abc import Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from upp import ErrorCode, Tool, ToolCall, UPPError


def check_dependencies(tools: Sequence[Tool]) -> None:
    """Raise UPPError INVALID_REQUEST when tools depend on each other in a circle."""
    try:
        TopologicalSorter({tool.name: tool.depends_on for tool in tools}).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise UPPError(
            f"Tools depend on each other in a circle: {circle}", code=ErrorCode.INVALID_REQUEST
        ) from error


def order_of_calls(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> Mapping[int, set[int]]:
    """Return, by the position of a call, the positions of the calls that it waits for.

    What a sequential call depends on comes before it all the same.
    """
    known = {tool.name: tool for tool in tools}
    called = [known.get(call.tool_name) for call in calls]
    after = {
        position: {
            other for other, call in enumerate(calls) if tool and call.tool_name in tool.depends_on
        }
        for position, tool in enumerate(called)
    }
    for position, tool in enumerate(called):
        if tool and tool.sequential:
            for other, earlier in after.items():
                if other != position and not _waits_for(after, position, other):
                    earlier.add(position)
    return {position: others for position, others in after.items() if others}


def _waits_for(after: Mapping[int, set[int]], position: int, other: int) -> bool:
    """Return whether a call waits for another, itself or through calls between."""
    return any(earlier == other or _waits_for(after, earlier, other) for earlier in after[position])
