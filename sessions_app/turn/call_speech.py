"""Speech to an agent in a call: a turn from its host that only this agent answers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from django.conf import settings

from chat_app.calls.agents import hosted_agent
from chat_app.calls.call_change import NotInCall
from chat_app.contents.wave import duration_ms
from chat_app.members import membership
from sessions_app import database
from sessions_app.access.standing import agent_disabled, is_private
from sessions_app.models import Response
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.types.inline_media import media_bytes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from chat_app.members.membership import AgentMember
    from sessions_app.records import OpenSession

FORMATS: Final = ("pcm16", "g711_ulaw", "g711_alaw")
MIN_MS: Final = 100
"""Vendors reject shorter audio."""
TEXT_CHARS: Final = 1_000
"""Limit for the text beside the audio, which says who is speaking."""
AGAIN_SECONDS: Final = 1


async def agent_spoken_to(
    session: OpenSession, create: ev.ResponseCreate, inputs: Sequence[ev.InputEvent]
) -> AgentMember:
    """Return the agent of a call that a turn speaks to.

    Raises RemoteProtocolError: not_in_call unless the session is the agent's host; agent_not_found
    if the agent is quiet or has left the chat; forbidden if the person may not use it;
    agent_disabled if it is switched off; invalid_event
    and event_too_large for inputs that are not valid speech; busy while the agent is answering in
    this chat.
    """
    speech = create.call
    if speech is None or create.replaces is not None or create.queue:
        raise _invalid("Speech in a call cannot replace an answer or be queued.", "call")
    _check_speech(inputs)
    agent = await database.run(partial(_agent, session, speech))
    if agent.is_quiet:
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "The agents of this chat are paused.")
    return agent


def _agent(session: OpenSession, speech: ev.CallSpeech) -> AgentMember:
    """Return the agent, which must not be answering in the chat. Synchronous."""
    try:
        agent_id = hosted_agent(
            chat_id=session.chat_id,
            call_id=speech.call_id,
            session_id=session.id,
            name=speech.agent,
        )
    except NotInCall:
        raise RemoteProtocolError(
            ErrorCode.NOT_IN_CALL, "Only the agent's host in the call may speak to it."
        ) from None
    members = membership.all_agent_members(session.chat_id, asker=session.principal.user_id)
    agent = next((member for member in members if member.agent_id == agent_id), None)
    if agent is None:
        raise RemoteProtocolError(ErrorCode.AGENT_NOT_FOUND, "The agent is not in this chat.")
    if not agent.is_usable:
        raise RemoteProtocolError(ErrorCode.FORBIDDEN, is_private(agent.name))
    if not agent.is_enabled:
        raise RemoteProtocolError(*agent_disabled(agent.name))
    answering = Response.objects.filter(
        chat_id=session.chat_id, agent_id=agent_id, status__in=Response.LIVE
    )
    if answering.exists():
        raise RemoteProtocolError(
            ErrorCode.BUSY,
            f"{agent.name} is answering. Cancel that answer, or try again when it has finished.",
            details={"retry_after": AGAIN_SECONDS},
        )
    return agent


def _check_speech(inputs: Sequence[ev.InputEvent]) -> None:
    limit = settings.UAMP_CALL_SPEECH_SECONDS * 1000
    length = words = 0
    for input_event in inputs:
        if (
            isinstance(input_event, ev.InputText)
            and input_event.role == "user"
            and input_event.messages is None
        ):
            words += len(input_event.text)
        elif isinstance(input_event, ev.InputAudio) and isinstance(input_event.audio, str):
            length += _length_of(input_event)
        else:
            raise _invalid("Speech in a call must be raw audio, with its text.", "inputs")
    if length > limit or words > TEXT_CHARS:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE,
            f"One utterance in a call may have at most {limit // 1000} seconds of audio and"
            f" {TEXT_CHARS} characters of text.",
        )
    if length < MIN_MS:
        raise _invalid(f"Speech in a call must have at least {MIN_MS} ms of audio.", "inputs")


def _length_of(sound: ev.InputAudio) -> int:
    """Return the duration of an audio input in milliseconds."""
    if sound.format not in FORMATS:
        raise RemoteProtocolError(
            ErrorCode.UNSUPPORTED_MODALITY,
            f"Audio in a call must be {' or '.join(FORMATS)}.",
            details={"modality": "audio"},
        )
    try:
        samples = media_bytes(str(sound.audio))
    except ValueError:
        raise RemoteProtocolError(ErrorCode.INVALID_MEDIA, "The audio is not base64.") from None
    return duration_ms(len(samples), sound.format)


def _invalid(message: str, field: str) -> RemoteProtocolError:
    return RemoteProtocolError(ErrorCode.INVALID_EVENT, message, details={"field": field})
