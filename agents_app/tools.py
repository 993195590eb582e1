"""The contract of server tools, and the table of those that this server has (DESIGN D6).

The law: a tool is a plain function of its arguments and a ToolContext. It knows neither the process
that it runs in nor where content is kept, and what went wrong it says in words for a person.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Protocol

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.module_loading import import_string

from uamp.content import ContentItem


class ToolError(Exception):
    """A tool cannot do what was asked; the message says what to do, and users may read it."""


class ToolCancelled(Exception):
    """The tool's call was cancelled, or another process took it over: stop and write nothing."""


@dataclass(frozen=True, kw_only=True)
class ToolOutcome:
    """What a tool gave back: text for the model and for people, and media.

    `result` is plain text, JSON-serialised on the wire (UAMP §8.4.2). The result of a client's
    tool is the client's own JSON text.
    """

    result: str
    is_error: bool = False
    content_items: tuple[ContentItem, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadContent:
    """A stored content, read."""

    data: bytes
    mime_type: str
    filename: str


class ToolContext(Protocol):
    """What a running tool may use."""

    call_id: str

    def progress(
        self,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        stage: str | None = None,
        message: str | None = None,
    ) -> None:
        """Tell how far the tool is (UAMP §6.12); `percent` is 0-100.

        Raises ToolCancelled when the call was cancelled or another process took it over.
        """

    def read_content(self, content_id: str) -> ReadContent:
        """Return a stored content; raises ToolError when it may not be read or does not exist."""

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> ContentItem:
        """Store a content for the chat and return the item that shows it; raises ToolCancelled."""


@dataclass(frozen=True, kw_only=True)
class ServerTool:
    """A tool of this server; `parameters` is a JSON Schema object.

    `run` is called in a thread. A long-running one gets a worker process, its progress reaches the
    chat, and it survives the process that asked for it; a short one runs where the agent runs and
    has no content to read or write.

    A worker may die with a tool in its hands. An idempotent one is then run again; another one is
    not, and its call ends as "outcome unknown".
    """

    name: str
    description: str
    parameters: dict[str, Any]
    run: Callable[[ToolContext, dict[str, Any]], ToolOutcome]
    long_running: bool = True
    idempotent: bool = True


def server_tools() -> Mapping[str, ServerTool]:
    """Return the tools that `settings.UAMP_SERVER_TOOLS` names, by name.

    Raises ImproperlyConfigured for a path that leads to no ServerTool, and for two of one name.
    """
    return _load(tuple(settings.UAMP_SERVER_TOOLS))


@lru_cache(maxsize=8)
def _load(paths: tuple[str, ...]) -> Mapping[str, ServerTool]:
    tools: dict[str, ServerTool] = {}
    for path in paths:
        try:
            tool = import_string(path)
        except ImportError as error:
            raise ImproperlyConfigured(f"UAMP_SERVER_TOOLS: {error}") from error
        if not isinstance(tool, ServerTool):
            raise ImproperlyConfigured(f"UAMP_SERVER_TOOLS: {path} is no ServerTool.")
        if tool.name in tools:
            raise ImproperlyConfigured(f"UAMP_SERVER_TOOLS: two tools are named {tool.name}.")
        tools[tool.name] = tool
    return MappingProxyType(tools)
