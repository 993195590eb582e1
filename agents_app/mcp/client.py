"""Sessions with MCP servers for code without an event loop: list the tools, call one.

Each call or listing has one session, which is always closed. Every failure is raised as a
SourceFailed with a message for people. Only this module and its transports know the `mcp` package,
which is imported when a source is first used.
"""

import logging
import math
import queue
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator
from concurrent.futures import wait
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import anyio
import anyio.to_thread
import httpx2
from anyio.from_thread import start_blocking_portal
from mcp import Client, Implementation, MCPError
from mcp.client import Transport
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CONNECTION_CLOSED, CallToolResult
from mcp.types import Tool as ListedTool
from pydantic import ValidationError

from agents_app.mcp.http import Talk, guarded_client
from agents_app.mcp.places import Address, Place, SourceFailed
from agents_app.mcp.stdio import Life, stdio_streams
from agents_app.workers.schema_checks import NoSchemaError, TooMuchWorkError, misfit

logger = logging.getLogger(__name__)

START_SECONDS = 30.0
"""How long a server may take to start and list its tools."""
END_SECONDS = 10.0
"""How long a session may take to end."""
TICK_SECONDS = 1.0
"""How often the progress of a waiting call is reported."""
MAX_PAGES = 50
_QUOTED_CHARS = 500
_FORBIDDEN = frozenset({401, 403})

# Errors that the package raises for invalid answers.
_NOT_ALLOWED = (ValidationError, RuntimeError, ValueError)

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Listing:
    """The tools of a server as it sent them, and the server's name."""

    tools: list[ListedTool]
    server: str


@dataclass(frozen=True, kw_only=True)
class CallProgress:
    """The progress of a running call; `percent` is set if the server knows the total."""

    percent: float | None
    message: str | None


@dataclass
class _McpSession:
    """One session, and the facts needed to explain its failure.

    The work has a cancel scope inside that of the session, so that a cancellation can still be sent
    to the server. Only the session's event loop uses this object. The thread that waits for the
    call stops the work by running `cancel` on that loop.
    """

    place: Place
    life: Life = field(default_factory=Life)
    talk: Talk = field(default_factory=Talk)
    session: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    work: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    is_connected: bool = False
    is_calling: bool = False

    async def cancel(self) -> None:
        """Cancel the work, or the whole session if it is not connected yet."""
        (self.work if self.is_connected else self.session).cancel()


def list_tools(place: Place) -> Listing:
    """Return the tools of a source; raises SourceFailed."""

    async def run() -> Listing:
        return await _run(_McpSession(place), _listing)

    return anyio.run(run)


def call_tool(
    place: Place,
    name: str,
    arguments: dict[str, Any],
    *,
    check: Callable[[Listing], None],
    tick: Callable[[CallProgress | None], None],
) -> CallToolResult:
    """Call a tool of a source and return its answer; raises SourceFailed.

    `check` receives the listing before the call; an exception from it ends the session without a
    call. `tick` is called in this thread with each progress report, and with None after
    TICK_SECONDS without one; an exception from it cancels the call at the server and is raised
    here.
    """
    news: queue.SimpleQueue[CallProgress | None] = queue.SimpleQueue()

    async def received(progress: float, total: float | None, message: str | None) -> None:
        percent = 100 * progress / total if total and total > 0 else None
        news.put(CallProgress(percent=percent, message=message and message[:_QUOTED_CHARS]))

    async def work(client: Client) -> CallToolResult:
        listing = await _listing(client)
        await anyio.to_thread.run_sync(check, listing)
        _leave_results_to_us(client)
        opened.work.deadline = anyio.current_time() + place.seconds
        opened.is_calling = True
        result = await client.call_tool(name, arguments, progress_callback=received)
        if not await anyio.to_thread.run_sync(_is_as_listed, place, listing, name, result):
            raise ValueError("the result does not fit the tool's output schema")
        return result

    with start_blocking_portal(name=f"mcp-{place.source}") as portal:
        opened = portal.call(_McpSession, place)
        future = portal.start_task_soon(_run, opened, work)
        future.add_done_callback(lambda _done: news.put(None))
        try:
            while not future.done():
                tick(_latest(news))
        except BaseException:
            portal.call(opened.cancel)
            wait([future], END_SECONDS)
            raise
        return future.result()


def _latest(news: queue.SimpleQueue[CallProgress | None]) -> CallProgress | None:
    """Wait for progress reports and return the latest."""
    latest = None
    try:
        latest = news.get(timeout=TICK_SECONDS)
        while True:
            latest = news.get_nowait() or latest
    except queue.Empty:
        return latest


async def _listing(client: Client) -> Listing:
    tools: list[ListedTool] = []
    cursor = None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        tools += page.tools
        cursor = page.next_cursor
        if not cursor:
            break
    info = client.server_info
    server_name = f"{info.name} {info.version}".strip() if info else "an unnamed server"
    return Listing(tools=tools, server=f"{server_name}, MCP {client.protocol_version}")


def _leave_results_to_us(client: Client) -> None:
    """Stop the package from validating results: a server's own patterns could hang it."""

    async def check_nothing(name: str, result: CallToolResult) -> None:
        """See ClientSession; `_is_as_listed` checks instead."""

    client.session.validate_tool_result = check_nothing  # type: ignore[method-assign]  # no option


def _is_as_listed(place: Place, listing: Listing, name: str, result: CallToolResult) -> bool:
    """Return whether a result matches the tool's output schema, if that can be decided."""
    schema = next((tool.output_schema for tool in listing.tools if tool.name == name), None)
    if schema is None or result.is_error:
        return True
    if result.structured_content is None:
        return False
    try:
        problem = misfit(schema, result.structured_content, asker=f"source:{place.source}")
    except NoSchemaError:
        return False
    except TooMuchWorkError:
        # The tool has done its work, whatever its schema is worth.
        logger.warning("the result of %s was not checked: its schema takes too long", name)
        return True
    return problem is None


async def _run(opened: _McpSession, work: Callable[[Client], Awaitable[T]]) -> T:
    results: list[T] = []
    opened.session.deadline = anyio.current_time() + START_SECONDS
    with opened.session, _in_words(opened, results):
        async with Client(
            _transport(opened),
            client_info=Implementation(name="uamp-server", version="1"),
            cache=None,
        ) as client:
            opened.is_connected = True
            opened.session.deadline = math.inf
            opened.work.deadline = anyio.current_time() + START_SECONDS
            with opened.work:
                results.append(await work(client))
            opened.session.deadline = anyio.current_time() + END_SECONDS
    if results:
        return results[0]
    raise _too_slow(opened)


def _transport(opened: _McpSession) -> Transport:
    place = opened.place
    if isinstance(place.way, Address):
        return _http(place, place.way, opened.talk)
    return stdio_streams(place.way, place.max_bytes, opened.life)


@asynccontextmanager
async def _http(place: Place, address: Address, talk: Talk) -> AsyncGenerator[Any]:
    client = guarded_client(address, seconds=place.seconds, max_bytes=place.max_bytes, talk=talk)
    async with (
        client,
        streamable_http_client(
            str(address.target.url), http_client=client, max_sse_event_size=place.max_bytes
        ) as streams,
    ):
        yield streams


# --- Messages for failures ---


@contextmanager
def _in_words(opened: _McpSession, results: list[T]) -> Iterator[None]:
    """Raise failures as SourceFailed, unless there is a result already."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 every failure is reported to a person
        cause = _first(error)
        if results:
            logger.info("%s: its session did not end well: %r", opened.place.source, cause)
            return
        if isinstance(cause, SourceFailed):
            raise cause from None
        failed = SourceFailed(
            opened.place.hide(_words(opened, cause)),
            is_unsure=opened.is_calling and not _was_answered(opened, cause),
            cause=_kind(opened, cause),
        )
        logger.warning("%s", _for_the_log(opened, failed, cause))
        # Drop the cause and its frames: they may hold secrets.
        raise failed from None


def _first(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


def _was_answered(opened: _McpSession, cause: BaseException) -> bool:
    if opened.talk.is_too_large or opened.life.is_too_large:
        return True
    if isinstance(cause, MCPError):
        # Servers use the same number for errors of their own.
        is_http = isinstance(opened.place.way, Address)
        return not (opened.life.is_gone or (is_http and cause.code == CONNECTION_CLOSED))
    return isinstance(cause, _NOT_ALLOWED)


def _words(opened: _McpSession, cause: BaseException) -> str:
    place, talk = opened.place, opened.talk
    source = place.source
    if opened.life.is_too_large or talk.is_too_large:
        return f"The answer of {source} has more than {place.max_bytes} bytes and was not read."
    if talk.unreachable:
        return f"{source} cannot be reached."
    if isinstance(cause, MCPError):
        return _words_of_answer(opened, cause)
    if isinstance(cause, _NOT_ALLOWED):
        return f"{source} sent an answer that violates the protocol."
    if isinstance(cause, OSError) and not opened.is_connected:
        return f"The program of {source} cannot be started: {cause.strerror}."
    return f"The connection to {source} broke."


def _kind(opened: _McpSession, cause: BaseException) -> str:
    if opened.life.is_too_large or opened.talk.is_too_large:
        return "answered with too much"
    if opened.life.is_gone:
        return "ended its process"
    if not isinstance(cause, MCPError) or opened.talk.unreachable:
        return "violated the protocol" if isinstance(cause, _NOT_ALLOWED) else "unreachable"
    return "refused" if opened.talk.status in _FORBIDDEN else "reported an error"


def _words_of_answer(opened: _McpSession, cause: MCPError) -> str:
    source, status = opened.place.source, opened.talk.status
    if status in _FORBIDDEN:
        return f"{source} refused this server ({status}): check its credentials."
    if opened.life.is_gone:
        return f"The program of {source} ended (status {opened.life.exit_status})."
    refused = f" (status {status})" if status else ""
    return f"{source} answered with an error{refused}: {cause.message[:_QUOTED_CHARS]}"


def _too_slow(opened: _McpSession) -> SourceFailed:
    place = opened.place
    noise = " It wrote output that is not JSON-RPC." if opened.life.noise else ""
    if opened.is_calling:
        text = f"{place.source} took longer than {place.seconds:g} seconds and was stopped.{noise}"
        return SourceFailed(text, is_unsure=True, cause="timed out")
    what = "list its tools" if opened.is_connected else "start"
    text = f"{place.source} did not {what} in {START_SECONDS:g} seconds.{noise}"
    return SourceFailed(text, cause="timed out")


def _for_the_log(opened: _McpSession, failed: SourceFailed, cause: BaseException) -> str:
    text = [str(failed), f"({type(cause).__name__})"]
    if opened.talk.unreachable:
        text.append(opened.talk.unreachable)
    if isinstance(cause, (httpx2.HTTPError, OSError, RuntimeError)):
        text.append(str(cause)[:_QUOTED_CHARS])
    if words := opened.life.last_words:
        text.append(f"Its last words: {words}")
    return opened.place.hide(" ".join(text))
