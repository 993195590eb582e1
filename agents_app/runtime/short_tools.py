"""Server tools that run in their agent's process: a thread, a time limit, no progress.

A short tool has no access to the chat or its contents; a tool that needs them has to be a long one.
Each call has its own thread: a hanging call blocks no other call, and no process waits for it.
"""

import asyncio
import contextlib
import contextvars
import logging
import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from django.db import connections

from agents_app.tools.registry import FoundMessage, ReadContent, ServerTool, ToolError, ToolOutcome
from uamp.limits import DEFAULT_LIMITS
from uamp.storable_text import storable, storable_items
from uamp.types.content import ContentItem

logger = logging.getLogger(__name__)

SHORT_TOOL_SECONDS = 30.0
"""A tool that may take longer has to be a long one."""

THREADS = 64
"""The most calls that run at once in a process, including those that hang."""

_EXCERPT_CHARS = 2000
_places = threading.BoundedSemaphore(THREADS)


async def run_here(tool: ServerTool, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Run a tool in a thread; return its errors, except for defects, to the model."""
    limit = asyncio.timeout(SHORT_TOOL_SECONDS)
    try:
        async with limit:
            outcome = await _in_thread(tool, _Context(call_id), arguments)
    except ToolError as error:
        outcome = ToolOutcome(result=str(error), is_error=True)
    except TimeoutError:
        if not limit.expired():
            raise
        # A thread cannot be killed; a late result is discarded.
        logger.warning("the tool %s is left behind after %s s", tool.name, SHORT_TOOL_SECONDS)
        outcome = ToolOutcome(result="The tool took too long.", is_error=True)
    return _fit(outcome)


async def _in_thread(tool: ServerTool, context: "_Context", arguments: dict[str, Any]) -> Any:
    """Run a tool in a thread of its own; return its result or raise its error."""
    places = _places
    if not places.acquire(blocking=False):
        raise ToolError("Too many tools are running on this server. Try again later.")
    loop = asyncio.get_running_loop()
    future: asyncio.Future[Any] = loop.create_future()
    run = contextvars.copy_context().run

    def settle(result: Any, error: Exception | None) -> None:
        if future.done():
            return  # the caller stopped waiting
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)

    def work() -> None:
        result: Any = None
        failed: Exception | None = None
        try:
            result = run(tool.run, context, arguments)
        except (StopIteration, SystemExit) as error:
            # A future cannot hold StopIteration, and SystemExit would end the server.
            failed = RuntimeError(type(error).__name__)
            failed.__cause__ = error
        except Exception as error:  # noqa: BLE001 it is raised in the caller
            failed = error
        finally:
            connections.close_all()
            places.release()
        with contextlib.suppress(RuntimeError):  # the loop is closed: the process is ending
            loop.call_soon_threadsafe(settle, result, failed)

    threading.Thread(target=work, name=f"tool-{tool.name}", daemon=True).start()
    return await future


def _fit(outcome: ToolOutcome) -> ToolOutcome:
    """Cut an outcome to the size limit of a response; there is no file for the rest."""
    text = storable(outcome.result)
    size = len(text.encode())
    if size > DEFAULT_LIMITS.tool_result_bytes:
        text = (
            f"The result has {size} bytes, too many to show. It begins:\n\n{text[:_EXCERPT_CHARS]}"
        )
    return replace(outcome, result=text, content_items=storable_items(outcome.content_items))


class _Context:
    """The context of a short tool, without progress, contents or a chat."""

    def __init__(self, call_id: str) -> None:
        self.call_id = call_id

    def progress(
        self,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        stage: str | None = None,
        message: str | None = None,
    ) -> None:
        """Do nothing: a short tool ends before its progress could be shown."""

    def read_content(self, content_id: str) -> ReadContent:
        """Refuse."""
        raise ToolError(f"A short tool cannot read content ({content_id}).")

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> ContentItem:
        """Refuse."""
        described = f"{filename}, {mime_type}, {len(data)} bytes"
        raise ToolError(f"A short tool cannot write content ({described}).")

    def search_messages(self, words: Sequence[str], *, limit: int) -> Sequence[FoundMessage]:
        """Refuse."""
        described = f"{len(words)} words, {limit} messages"
        raise ToolError(f"A short tool cannot search the chat ({described}).")
