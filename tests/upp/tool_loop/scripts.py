"""Failing tools, and a model that keeps calling."""

from collections.abc import AsyncIterator
from typing import Any

from upp import LLMRequest
from upp.providers.scripted import Call, Step


async def keeps_calling(request: LLMRequest) -> AsyncIterator[Step]:
    yield Call(name="t", arguments={"round": len(request.messages)})


def broken(_arguments: dict[str, Any]) -> None:
    raise ValueError("it is broken")


def speechless(_arguments: dict[str, Any]) -> None:
    raise KeyError
