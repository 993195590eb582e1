"""Agents with a model behind an address of the test."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from agents_app.providers.clients import close_providers
from agents_app.selectors import AgentSpec


@asynccontextmanager
async def aclosing_providers() -> AsyncIterator[None]:
    try:
        yield
    finally:
        await close_providers()


def model_agent(url: str) -> AgentSpec:
    return AgentSpec(
        id="a", name="gpt", provider="openai_compat", model="m1", options={"base_url": url}
    )
