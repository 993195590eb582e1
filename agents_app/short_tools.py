"""Server tools that run where their agent runs: a thread, a time limit, no progress.

The law: a short tool has neither a chat nor contents; one that needs them is a long one (D6).
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agents_app.tools import FoundMessage, ReadContent, ServerTool, ToolError, ToolOutcome, storable
from uamp.content import ContentItem
from uamp.limits import DEFAULT_LIMITS

logger = logging.getLogger(__name__)

SHORT_TOOL_SECONDS = 30.0
"""A tool that may take longer has to be a long one."""

_EXCERPT_CHARS = 2000


async def run_here(tool: ServerTool, call_id: str, arguments: dict[str, Any]) -> ToolOutcome:
    """Run a tool in a thread; what goes wrong, but for a defect, is told to the model."""
    limit = asyncio.timeout(SHORT_TOOL_SECONDS)
    try:
        async with limit:
            outcome = await asyncio.to_thread(tool.run, _Context(call_id), arguments)
    except ToolError as error:
        outcome = ToolOutcome(result=str(error), is_error=True)
    except TimeoutError:
        if not limit.expired():
            raise
        # A thread cannot be ended; what it may still return is nobody's result.
        logger.warning("the tool %s is left behind after %s s", tool.name, SHORT_TOOL_SECONDS)
        outcome = ToolOutcome(result="The tool took too long.", is_error=True)
    return _fit(outcome)


def _fit(outcome: ToolOutcome) -> ToolOutcome:
    """Return an outcome that a response can carry; a short tool has no file for the rest."""
    text = storable(outcome.result)
    size = len(text.encode())
    if size > DEFAULT_LIMITS.tool_result_bytes:
        text = (
            f"The result has {size} bytes, too many to show. It begins:\n\n{text[:_EXCERPT_CHARS]}"
        )
    return replace(outcome, result=text)


class _Context:
    """What a short tool may use: it has no progress, no worker, no content and no chat."""

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
        """Do nothing: a short tool is done before anybody looks."""

    def read_content(self, content_id: str) -> ReadContent:
        """Refuse."""
        raise ToolError(f"A short tool cannot read content ({content_id}).")

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> ContentItem:
        """Refuse."""
        told = f"{filename}, {mime_type}, {len(data)} bytes"
        raise ToolError(f"A short tool cannot write content ({told}).")

    def search_messages(self, words: Sequence[str], *, limit: int) -> Sequence[FoundMessage]:
        """Refuse."""
        told = f"{len(words)} words, {limit} messages"
        raise ToolError(f"A short tool cannot search the chat ({told}).")
