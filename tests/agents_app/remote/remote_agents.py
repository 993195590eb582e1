"""Remote agents for tests: rows and specs that name an address, and what their runs show."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from asgiref.sync import sync_to_async

from agents_app.models import Agent
from agents_app.outbound.keys import encrypted_key
from agents_app.outbound.rules import check_url
from agents_app.remote.addresses import close_remotes, policy
from agents_app.runtime.agent_run import AgentError, RunFinished, RunRequest, run_agent
from agents_app.selectors import AgentSpec, get_spec
from tests.agents_app.run_context import Broker, Media
from uamp.types.content import Message

if TYPE_CHECKING:
    from collections.abc import Callable

    from uamp.events import Event


def remote_agent(url: str, *, protocol: str = "completions", key: str = "", **fields: Any) -> Agent:
    """Make a public remote agent, with a key where there is one."""
    values: dict[str, Any] = {"name": "far", "model": "far", "is_public": True, **fields}
    secret = encrypted_key(key, check_url(url, policy()).place)
    return Agent.objects.create(kind="remote", url=url, protocol=protocol, secret=secret, **values)


async def remote_spec(url: str, **fields: Any) -> AgentSpec:
    """Make a remote agent and return what a run knows of it."""
    agent = await sync_to_async(remote_agent)(url, **fields)
    return await sync_to_async(get_spec)(agent.pk)


def request_of(text: str = "hello", **values: Any) -> RunRequest:
    """Return a request of one message."""
    values.setdefault("history", [Message(role="user", content=text)])
    return RunRequest(response_id="r1", **values)


async def run(
    spec: AgentSpec,
    request: RunRequest,
    *,
    broker: Broker | None = None,
    until: Callable[[], bool] | None = None,
) -> tuple[list[Event | str], RunFinished]:
    """Return the events of a run, and its end.

    With `until`, the connections stay open until it is true: a run does not wait for its stops.
    """
    events: list[Event | str] = []
    try:
        end = await run_agent(
            spec, request, events.append, broker=broker or Broker(), media=Media()
        )
        async with asyncio.timeout(30):
            while until is not None and not until():  # noqa: ASYNC110 requests of the other side
                await asyncio.sleep(0.01)
    finally:
        await close_remotes()
    return events, end


async def failure(
    spec: AgentSpec, request: RunRequest, *, media: Media | None = None
) -> tuple[list[Event | str], AgentError]:
    """Return the events of a run that fails, and its error."""
    events: list[Event | str] = []
    with pytest.raises(AgentError) as caught:
        await run_agent(spec, request, events.append, broker=Broker(), media=media or Media())
    await close_remotes()
    return events, caught.value


def text_of(events: list[Event | str]) -> str:
    """Return the text of an answer."""
    return "".join(piece for piece in events if isinstance(piece, str))
