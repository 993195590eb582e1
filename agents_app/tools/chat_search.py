"""The tool `search_chat`: searches earlier messages of the chat it is called in.

The chat comes from the context and is never an argument, so a model cannot reach another chat. The
context returns only messages that the agent may see.
"""

from typing import Annotated, Any

import msgspec

from agents_app.tools.registry import ToolContext, ToolError, tool

EXCERPT_CHARS = 300
WORDS = 10


@tool
def search_chat(
    context: ToolContext,
    query: Annotated[
        str,
        msgspec.Meta(description="Words that a message must all have, in any case", max_length=200),
    ],
    limit: Annotated[int, msgspec.Meta(description="At most so many messages", ge=1, le=50)] = 10,
) -> list[dict[str, Any]]:
    """Search the earlier messages of this chat; return time, name and excerpt, newest first."""
    words = query.replace("\0", " ").split()
    if not words:
        raise ToolError("Enter at least one word to search for.")
    if len(words) > WORDS:
        raise ToolError(f"Search for at most {WORDS} words at once.")
    context.progress(percent=0, step=1, total_steps=1, stage="search", message="Searching")
    messages = context.search_messages(words, limit=limit)
    context.progress(percent=100, step=1, total_steps=1, stage="done", message="Done")
    return [
        {
            "time": message.at.isoformat(timespec="seconds"),
            "name": message.name or message.role,
            "excerpt": excerpt(message.text, words),
        }
        for message in messages
    ]


def excerpt(text: str, words: list[str]) -> str:
    """Return the text around the first match on one line."""
    text = " ".join(text.split())
    lower = text.lower()
    places = [place for word in words if (place := lower.find(word.lower())) >= 0]
    start = max(0, min(places, default=0) - EXCERPT_CHARS // 3)
    start = min(start, max(0, len(text) - EXCERPT_CHARS))
    end = start + EXCERPT_CHARS
    return f"{'…' if start else ''}{text[start:end]}{'…' if end < len(text) else ''}"
