"""Streams that fail or do not end."""

import asyncio
from collections.abc import AsyncIterator

from upp import (
    ErrorCode,
    LLMRequest,
    UPPError,
)
from upp.providers.scripted import Fail, Step, Text


async def failing(_request: LLMRequest) -> AsyncIterator[Step]:
    yield Fail(UPPError("no", code=ErrorCode.RATE_LIMITED))


async def endless(_request: LLMRequest) -> AsyncIterator[Step]:
    yield Text("a")
    await asyncio.sleep(60)
