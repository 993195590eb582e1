"""A model on a server that sends one answer, and a tool."""

import asyncio
from typing import Any

import pytest

from tests.upp.wire_server import Answer, serve
from upp import ProviderConfig, Tool, Turn, UPPError, llm
from upp.providers.openai_compat import OpenAICompatProvider

KEY = "sk-secret"


async def ask(answer: Answer, **options: Any) -> Turn:
    """Return the turn of a model on a server that answers so."""
    async with serve(answer) as wire:
        config = ProviderConfig(
            timeout=options.pop("timeout", None),
            hidden_tokens=options.pop("hidden_tokens", None),
            media_tokens=options.pop("media_tokens", None),
        )
        provider = OpenAICompatProvider(base_url=wire.url, api_key=KEY, config=config)
        try:
            return await asyncio.wait_for(
                llm(model=provider("m1"), **options).generate([], "hi"), 5
            )
        finally:
            await provider.aclose()


async def failure(answer: Answer, **options: Any) -> UPPError:
    """Return the error of a model on a server that answers so."""
    with pytest.raises(UPPError) as caught:
        await ask(answer, **options)
    assert KEY not in str(caught.value)
    assert caught.value.provider == "openai_compat"
    return caught.value


def search(arguments: dict[str, Any]) -> dict[str, Any]:
    return {"found": arguments["q"]}


TOOLS = [Tool(name="search", description="Searches", parameters={"type": "object"}, run=search)]
