"""Scripted models that write text."""

from collections.abc import AsyncIterator

from upp import LLMRequest
from upp.providers.scripted import Step, Text


async def three_words(_request: LLMRequest) -> AsyncIterator[Step]:
    for word in ("a", "b", "c"):
        yield Text(word)
