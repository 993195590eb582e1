"""Listings of MCP servers as tools of agents: their names, hints and assignment to agents.

Whatever its server calls it, a source's tool is named `<source>__<tool>`, with letters, digits, _
and -, and at most 64 characters; names are unique.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from agents_app.models import ToolSource, ToolSourceApproval

NAME_CHARS = 64
ALL = "*"
_SEPARATOR = "__"
_UNFIT = re.compile(r"[^a-zA-Z0-9_-]")


class SourceTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool listed by a source; `own_name` is the server's name, `parameters` a JSON Schema."""

    name: str
    source: str
    own_name: str
    description: str
    parameters: dict[str, Any]
    idempotent: bool
    needs_approval: bool


def tool_names(source: str, own_names: Iterable[str]) -> dict[str, str]:
    """Map a server's own tool names to the names that agents use.

    A name that is cut or would be ambiguous ends in a hash of the tool's own name, so that it does
    not depend on the order of the list.
    """
    plain = {own_name: f"{source}{_SEPARATOR}{_UNFIT.sub('_', own_name)}" for own_name in own_names}
    uses = Counter(plain.values())
    return {
        own_name: _fitting(own_name, name, is_taken=uses[name] > 1)
        for own_name, name in plain.items()
    }


def _fitting(own_name: str, name: str, *, is_taken: bool) -> str:
    is_exact = name.endswith(_SEPARATOR + own_name)
    if len(name) <= NAME_CHARS and (is_exact or not is_taken):
        return name
    mark = "_" + hashlib.sha256(own_name.encode("utf-8", "replace")).hexdigest()[:8]
    return name[: NAME_CHARS - len(mark)] + mark


def tools_of(source: ToolSource) -> tuple[SourceTool, ...]:
    """Return the tools in a source's most recent listing."""
    listed = {tool["name"]: tool for tool in source.tools}
    tools: dict[str, SourceTool] = {}
    for own_name, name in tool_names(source.name, listed).items():
        hints = listed[own_name].get("annotations") or {}
        only_reads = hints.get("readOnlyHint") is True
        approval = source.approval
        tool = SourceTool(
            name=name,
            source=source.name,
            own_name=own_name,
            description=listed[own_name]["description"],
            parameters=listed[own_name]["inputSchema"],
            idempotent=only_reads or hints.get("idempotentHint") is True,
            needs_approval=approval == ToolSourceApproval.ALWAYS
            or (approval == ToolSourceApproval.WRITES and not only_reads),
        )
        tools.setdefault(name, tool)
    return tuple(tools.values())


def tools_named(names: Sequence[str]) -> tuple[SourceTool, ...]:
    """Return the tools of enabled sources that are named; `<source>__*` names all of a source."""
    requested = {name for name in names if _SEPARATOR in name}
    sources = {source_of(name) for name in requested}
    if not sources:
        return ()
    return tuple(
        tool
        for source in ToolSource.objects.filter(is_enabled=True, name__in=sources)
        for tool in tools_of(source)
        if tool.name in requested or all_of(source.name) in requested
    )


def listed_tools() -> tuple[SourceTool, ...]:
    """Return all tools of all enabled sources."""
    sources = ToolSource.objects.filter(is_enabled=True)
    return tuple(tool for source in sources for tool in tools_of(source))


def source_of(name: str) -> str:
    """Return the source in a tool's name."""
    return name.partition(_SEPARATOR)[0]


def all_of(source: str) -> str:
    """Return the name that stands for all tools of a source."""
    return f"{source}{_SEPARATOR}{ALL}"


def resolved_names(names: Sequence[str], tools: Sequence[SourceTool]) -> tuple[str, ...]:
    """Return the names with each `<source>__*` expanded, without duplicates."""
    resolved: list[str] = []
    for name in names:
        if name == all_of(source_of(name)):
            resolved += [tool.name for tool in tools if all_of(tool.source) == name]
        else:
            resolved.append(name)
    return tuple(dict.fromkeys(resolved))
