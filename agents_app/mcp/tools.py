"""Tools of MCP servers as tools of this server: how they run and how their answers are converted.

Each call is a session between the worker and the server, configured by the row as it is at that
time. Media in a tool's answer are stored and replaced with content ids; addresses and base64 are
not passed on. Failures are ToolErrors with a message.
"""

import logging
import mimetypes
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from django.db import close_old_connections
from django.utils import timezone

from agents_app.mcp.listing import SourceTool, source_of, tools_of
from agents_app.mcp.places import Place, SourceFailed, place_of
from agents_app.models import ToolSource
from agents_app.tools.registry import ServerTool, ToolContext, ToolError, ToolOutcome, server_tools
from agents_app.workers.schema_checks import NoSchemaError, TooMuchWorkError, misfit
from uamp.storable_text import storable, storable_json
from uamp.types.inline_media import decode_base64

if TYPE_CHECKING:
    from mcp.types import CallToolResult

    from agents_app.mcp.client import CallProgress, Listing
    from uamp.types.content import ContentItem

logger = logging.getLogger(__name__)

LISTING_AGE = timedelta(hours=1)
"""A call updates the row's listing if that is older."""
MAX_TOOLS = 200
DESCRIPTION_CHARS = 4000
SCHEMA_BYTES = 65_536
MEDIA_ITEMS = 20
_STAGE = "call"

T = TypeVar("T")


# --- Lookup ---


def find_tool(name: str) -> ServerTool | None:
    """Return a tool of this server or of an enabled source by name (one query)."""
    if name in server_tools():
        return server_tools()[name]
    source = ToolSource.objects.filter(name=source_of(name), is_enabled=True).first()
    if source is None:
        return None
    return next((served(tool) for tool in tools_of(source) if tool.name == name), None)


def served(tool: SourceTool) -> ServerTool:
    """Convert a listed tool to one that agents call and workers run."""
    return ServerTool(
        name=tool.name,
        description=tool.description,
        parameters=tool.parameters,
        run=partial(_run, tool),
        idempotent=tool.idempotent,
        needs_approval=tool.needs_approval,
        in_worker=True,
    )


# --- The listing ---


def refresh(source: ToolSource) -> bool:
    """Refresh a source's tools and return whether that succeeded; a failure is stored as `error`.

    Takes at most mcp_client.START_SECONDS plus the time to end a session.
    """
    from agents_app.mcp import client  # noqa: PLC0415 servers without sources never load mcp

    try:
        _keep(source, client.list_tools(place_of(source)))
    except SourceFailed as error:
        source.error = storable(str(error))
        source.save(update_fields=["error"])
        return False
    return True


def _keep(source: ToolSource, listing: "Listing") -> None:
    """Store a listing in its row; unusable tools are left out and reported."""
    usable: dict[str, dict[str, Any]] = {}
    left_out: list[str] = []
    for tool in listing.tools:
        listed = {
            "name": tool.name,
            "description": (tool.description or tool.title or tool.name)[:DESCRIPTION_CHARS],
            "inputSchema": tool.input_schema,
            "annotations": tool.annotations.model_dump(by_alias=True, exclude_none=True)
            if tool.annotations
            else {},
        }
        is_usable = (
            tool.name not in usable
            and len(usable) < MAX_TOOLS
            and len(msgspec.json.encode(tool.input_schema)) <= SCHEMA_BYTES
        )
        if is_usable:
            usable[tool.name] = storable_json(listed)
        else:
            left_out.append(tool.name)
    source.tools = list(usable.values())
    source.server = storable(listing.server)[:300]
    source.refreshed_at = timezone.now()
    source.error = storable(f"Left out: {', '.join(left_out)[:1000]}.") if left_out else ""
    source.save(update_fields=["tools", "server", "refreshed_at", "error"])


# --- A call ---


def _run(tool: SourceTool, context: ToolContext, arguments: dict[str, Any]) -> ToolOutcome:
    from agents_app.mcp import client  # noqa: PLC0415 servers without sources never load mcp

    source = _scoped(lambda: ToolSource.objects.filter(name=tool.source, is_enabled=True).first())
    if source is None:
        raise ToolError(f"The source {tool.source} no longer exists.")
    listings: list[Listing] = []

    def check(listing: "Listing") -> None:
        listings.append(listing)
        _check(tool, arguments, listing)

    try:
        place = place_of(source)
        result = client.call_tool(
            place, tool.own_name, arguments, check=check, tick=_ProgressReporter(tool, context)
        )
    except _Misfit as misfit:
        return ToolOutcome(result=str(misfit), is_error=True, cause=misfit.cause)
    except SourceFailed as error:
        unsure = " It may or may not have done its work." if error.is_unsure else ""
        text = f"{error}{unsure if not tool.idempotent else ''}"
        raise ToolError(text, cause=error.cause) from None
    finally:
        if listings and _is_old(source):
            _scoped(partial(_keep, source, listings[0]))
    return _outcome(tool, context, place, result)


def _is_old(source: ToolSource) -> bool:
    return source.refreshed_at is None or timezone.now() - source.refreshed_at > LISTING_AGE


def _scoped(function: Callable[[], T]) -> T:
    """Call a database function on a usable connection, because tools run on worker threads."""
    close_old_connections()
    try:
        return function()
    finally:
        close_old_connections()


class _Misfit(SourceFailed):
    """The arguments do not match the tool, or it is gone; the model may read why."""


def _check(tool: SourceTool, arguments: dict[str, Any], listing: "Listing") -> None:
    """Raise _Misfit if the arguments do not match the tool as its server lists it now."""
    schema = next((t.input_schema for t in listing.tools if t.name == tool.own_name), None)
    if schema is None:
        text = f"{tool.source} no longer has a tool named {tool.own_name!r}."
        raise _Misfit(text, cause="no such tool")
    try:
        problem = misfit(schema, arguments, asker=f"source:{tool.source}")
    except NoSchemaError as error:
        raise SourceFailed(
            f"{tool.source} lists {tool.own_name!r} with an invalid schema.",
            cause="violated the protocol",
        ) from error
    except TooMuchWorkError as error:
        raise SourceFailed(
            f"{tool.source} lists {tool.own_name!r} with a schema that takes too long to check.",
            cause="violated the protocol",
        ) from error
    if problem is not None:
        raise _Misfit(f"{tool.name} was not run. {problem}.", cause="invalid arguments")


class _ProgressReporter:
    """Reports the progress of a call to the chat, even while its server is silent.

    Only the thread of the call uses it.
    """

    def __init__(self, tool: SourceTool, context: ToolContext) -> None:
        self._source = tool.source
        self._context = context
        self._began = time.monotonic()
        self._percent: float | None = None
        self._message: str | None = None

    def __call__(self, news: "CallProgress | None") -> None:
        """Report progress; raises ToolCancelled, which also cancels the call at its server."""
        if news is not None:
            self._percent, self._message = news.percent, news.message
        seconds = round(time.monotonic() - self._began)
        waiting = f"Waiting for {self._source}" + (f": {seconds} s" if seconds else "")
        self._context.progress(
            percent=self._percent, stage=_STAGE, message=self._message or waiting
        )


# --- The answer ---


def _outcome(
    tool: SourceTool, context: ToolContext, place: Place, result: "CallToolResult"
) -> ToolOutcome:
    parts = _Parts(tool, context)
    for block in result.content:
        parts.add(block)
    if not parts.texts and result.structured_content is not None:
        parts.texts.append(msgspec.json.encode(result.structured_content).decode())
    text = "\n\n".join(parts.texts) or "The tool finished without output."
    return ToolOutcome(
        result=place.hide(text), is_error=result.is_error, content_items=tuple(parts.items)
    )


class _Parts:
    """The texts and media of one answer."""

    def __init__(self, tool: SourceTool, context: ToolContext) -> None:
        self.texts: list[str] = []
        self.items: list[ContentItem] = []
        self._name = tool.name
        self._context = context

    def add(self, block: Any) -> None:
        """Add one block of MCP content."""
        match block.type:
            case "text":
                self.texts.append(block.text)
            case "image" | "audio":
                self._keep(block.data, block.mime_type, block.type)
            case "resource" if hasattr(block.resource, "text"):
                self.texts.append(block.resource.text)
            case "resource":
                mime_type = block.resource.mime_type or "application/octet-stream"
                self._keep(block.resource.blob, mime_type, "file")
            case _:
                # The resource is at the tool's server; its address is of no use in a chat.
                self.texts.append(f"[The tool refers to a missing resource: {block.name}]")

    def _keep(self, data: str, mime_type: str, kind: str) -> None:
        if len(self.items) >= MEDIA_ITEMS:
            self.texts.append(f"[More than {MEDIA_ITEMS} files: this {kind} was left out]")
            return
        extension = mimetypes.guess_extension(mime_type) or ""
        filename = f"{self._name}-{len(self.items) + 1}{extension}"
        try:
            item = self._context.write_content(
                decode_base64(data), mime_type=mime_type, filename=filename
            )
        except (ValueError, ToolError) as error:
            self.texts.append(f"[The tool's {kind} cannot be kept: {error}]")
            return
        self.items.append(item)
        self.texts.append(f"[{kind}: content_id {getattr(item, 'content_id', None)}]")
