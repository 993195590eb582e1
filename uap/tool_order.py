"""The order in which the calls of one answer run (UAP §8.3).

Calls run in parallel unless a tool says otherwise. A call waits for calls of the tools that its own
tool depends on; a `sequential` call finishes before the others begin, and sequential calls run one
after another. Dependencies that are not called in the answer are ignored.
"""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from graphlib import CycleError, TopologicalSorter

from upp import ErrorCode, Tool, ToolCall, UPPError


def check_dependencies(tools: Sequence[Tool]) -> None:
    """Raise UPPError INVALID_REQUEST for unknown or cyclic tool dependencies.

    Otherwise, a misspelt name would order nothing, and the calls would run in parallel.
    """
    names = [tool.name for tool in tools]
    for tool in tools:
        for name in tool.depends_on:
            if name not in names:
                close = get_close_matches(name, names, n=1)
                suggestion = f" Did you mean {close[0]!r}?" if close else ""
                raise UPPError(
                    f"The tool {tool.name!r} depends on {name!r}, "
                    f"which is not one of the tools.{suggestion}",
                    code=ErrorCode.INVALID_REQUEST,
                )
    try:
        TopologicalSorter({tool.name: tool.depends_on for tool in tools}).prepare()
    except CycleError as error:
        circle = " -> ".join(error.args[1])
        raise UPPError(
            f"Tools depend on each other in a cycle: {circle}", code=ErrorCode.INVALID_REQUEST
        ) from error


def order_of_calls(tools: Sequence[Tool], calls: Sequence[ToolCall]) -> Mapping[int, set[int]]:
    """Return, for each call's position, the positions of the calls that must come first.

    The dependencies of a sequential call still come before it.
    """
    by_name = {tool.name: tool for tool in tools}
    called_tools = [by_name.get(call.tool_name) for call in calls]
    after = {
        position: {
            index for index, call in enumerate(calls) if tool and call.tool_name in tool.depends_on
        }
        for position, tool in enumerate(called_tools)
    }
    # All calls that a call waits for, directly or indirectly, as the bits of a number: a model may
    # make hundreds of calls at once, and the paths between them are too many to walk one by one.
    before = {position: _before(after, position) for position in after}
    for position, tool in enumerate(called_tools):
        if tool and tool.sequential:
            first = before[position] | 1 << position
            for index, earlier in after.items():
                if not first >> index & 1:
                    earlier.add(position)
                    before[index] |= first
    return {position: indexes for position, indexes in after.items() if indexes}


def _before(after: Mapping[int, set[int]], position: int) -> int:
    earlier: set[int] = set()
    waiting = [position]
    while waiting:
        unseen = after[waiting.pop()] - earlier
        earlier |= unseen
        waiting += unseen
    return sum(1 << index for index in earlier)
