"""The sound formats that an agent accepts and speaks, for voice protocols."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from agents_app import selectors as agents
from agents_app.providers.options import audio_formats, speech_formats
from agents_app.rest.rights import ANY
from sessions_app import database
from sessions_app.transports.http_exchange import principal_of

if TYPE_CHECKING:
    from django.http import HttpRequest

    from sessions_app.access.principal import Principal

_SAMPLES = ("pcm16",)


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSpeech:
    """The raw sample formats that an agent accepts, and those in which it speaks."""

    takes: tuple[str, ...] = ()
    speaks: tuple[str, ...] = ()


async def speech_of(principal: Principal, agent: str | None) -> AgentSpeech:
    """Return the formats of an agent, or none for one that the caller may not use."""
    spec = None
    if agent is not None:
        spec = await database.run(partial(agents.get_agent, agent, viewer=principal.user_id))
    if spec is None:
        return AgentSpeech()
    speaks = speech_formats(spec.provider)
    takes = _SAMPLES if "wav" in audio_formats(spec.provider, spec.options) else ()
    return AgentSpeech(takes=speaks or takes, speaks=speaks)


async def speech_for(request: HttpRequest, agent: str) -> AgentSpeech:
    """Return the formats of an agent for the caller of a request."""
    return await speech_of(await principal_of(request, protocol="realtime", scope=ANY), agent)
