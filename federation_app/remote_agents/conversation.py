"""One question to an agent of a peer, over as many connections as it takes.

The same bytes of the question are sent again until the first delta arrives; the peer answers them
once. From then on, each new connection resumes after the last delta. If the answer is abandoned
here before its end, it is cancelled at the peer.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing
from typing import TYPE_CHECKING, Final

from django.conf import settings

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, unauthenticated
from federation_app.envelope.limits import load
from federation_app.envelope.members.reading import Intent
from federation_app.envelope.streams.deltas import delta_of, is_delta
from federation_app.exchange.replies import SIGNED_CHARS
from federation_app.peers.reading import with_keys
from federation_app.remote_agents import questions
from federation_app.remote_agents.answers import (
    PeerAnswer,
    PeerRefusal,
    refusal_of,
    uamp_error,
)
from federation_app.remote_agents.transports.connection import (
    RECORD_BYTES,
    ConnectionLost,
    PeerConnection,
)
from federation_app.remote_agents.transports.rpc import GrpcPeerConnection
from federation_app.remote_agents.transports.web import HttpPeerConnection
from federation_app.remote_agents.transports.web_socket import WebSocketPeerConnection
from sessions_app import database
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_app.remote.protocols.peers import PeerQuestion
    from federation_app.envelope.streams.deltas import StreamDelta
    from federation_app.remote_agents.questions import SignedQuestion
    from uamp.events import Event

logger = logging.getLogger(__name__)

CONNECTIONS: Final[dict[str, type[PeerConnection]]] = {
    "envelope": WebSocketPeerConnection,
    "envelope_grpc": GrpcPeerConnection,
    "envelope_http": HttpPeerConnection,
}
MAX_LOST_CONNECTIONS: Final = 6
"""How many connections in a row may fail to deliver a delta."""
MAX_CONNECTIONS: Final = 256
PAUSE_SECONDS: Final = 0.1
MAX_PAUSE_SECONDS: Final = 5.0
_cancelling: Final[set[asyncio.Task[None]]] = set()


async def ask(question: PeerQuestion) -> AsyncGenerator[Event]:
    """Ask an agent of a peer (`agents_app.remote.protocols.peers.AskPeer`)."""
    try:
        signed = await with_keys(
            questions.signed_question,
            question.receiver,
            question.text,
            hops=question.hops,
            token=question.token,
        )
    except EnvelopeError as error:
        raise uamp_error(error) from None
    answer = PeerAnswer(signed.id, signed.window)
    is_over = False
    try:
        yield ev.ResponseCreated(response_id=signed.id)
        async with aclosing(_over_connections(question, signed, answer)) as events:
            async for event in events:
                yield event
        is_over = True
    except PeerRefusal as refusal:
        # An answer that has begun runs on, whatever else the peer refuses, and costs until its end.
        is_over = answer.window.last < 0
        raise uamp_error(refusal.error) from None
    except EnvelopeError as error:
        message = f"The answer from {signed.receiver} was rejected: {error.message}"
        raise RemoteProtocolError(ErrorCode.PROVIDER_ERROR, message) from None
    except TimeoutError:
        message = f"{signed.receiver} was silent for too long."
        raise RemoteProtocolError(ErrorCode.TIMEOUT, message) from None
    finally:
        if not is_over and not answer.window.has_ended:
            task = asyncio.create_task(_cancel(question, signed))
            _cancelling.add(task)
            task.add_done_callback(_cancelling.discard)


async def _over_connections(
    question: PeerQuestion, signed: SignedQuestion, answer: PeerAnswer
) -> AsyncGenerator[Event]:
    lost = 0
    for _ in range(MAX_CONNECTIONS):
        before, pause = answer.window.last, 0.0
        try:
            async with (
                CONNECTIONS[question.protocol](question, signed) as connection,
                aclosing(_answered_on(connection, answer)) as events,
            ):
                async for event in events:
                    yield event
        except ConnectionLost:
            pause = PAUSE_SECONDS * 2 ** min(lost, 5)
        except PeerRefusal as refusal:
            if not _may_resume(answer, refusal):
                raise
            pause = float(refusal.error.retry_after or PAUSE_SECONDS)
        else:
            return
        lost = 0 if answer.window.last > before else lost + 1
        if lost > MAX_LOST_CONNECTIONS:
            break
        await asyncio.sleep(min(pause, MAX_PAUSE_SECONDS))
    message = f"The server of {signed.receiver} cannot be reached."
    raise RemoteProtocolError(ErrorCode.AGENT_OFFLINE, message)


def _may_resume(answer: PeerAnswer, refusal: PeerRefusal) -> bool:
    """Return whether a peer may be asked again, because it is busy or has a limit on requests.

    The end of an answer is final, and so is the refusal of the question itself by a limit.
    """
    if answer.window.has_ended:
        return False
    is_running = answer.window.last >= 0
    code = refusal.error.code
    return code is EnvelopeCode.BUSY or (is_running and code is EnvelopeCode.RATE_LIMITED)


async def _answered_on(connection: PeerConnection, answer: PeerAnswer) -> AsyncGenerator[Event]:
    """Yield the events that arrive on one connection, up to the end of the answer."""
    signed = connection.signed_question
    await connection.begin(answer.window.last)
    for _ in range(settings.UAMP_REMOTE_EVENTS):
        delta = await _delta(connection, signed)
        try:
            events = [] if delta is None else answer.take(delta)
        except EnvelopeError as error:
            if error.expected is None:
                raise
            await connection.miss(error.expected)
            continue
        for event in events:
            yield event
        if answer.window.has_ended:
            for event in await _final_events(connection.question, signed, answer):
                yield event
            return
        if answer.window.length > settings.UAMP_REMOTE_ANSWER_BYTES:
            break
        if (ack := answer.window.ack) is not None:
            await connection.acknowledge(ack)
    raise EnvelopeError(EnvelopeCode.TOO_LARGE, "The answer is too long.", detail="bytes")


async def _delta(connection: PeerConnection, signed: SignedQuestion) -> StreamDelta | None:
    """Return the next record if it is a delta of the question; raises as `connection.receive`."""
    value = load(await connection.receive(), limit=RECORD_BYTES)
    if not is_delta(value):
        await _refuse(signed, value)
        return None
    delta = delta_of(value)
    return delta if delta.stream_id == signed.stream_id else None


async def _final_events(
    question: PeerQuestion, signed: SignedQuestion, answer: PeerAnswer
) -> list[Event]:
    """Verify the agent's signature at the end of an answer, and return the final events.

    If the answer is too long for an envelope, its digest is signed. Servers that do not sign it yet
    are trusted over TLS only if no hub sits in between, since it could change the text. Raises
    EnvelopeError.
    """
    if answer.done is None:
        return []
    envelope = answer.done.get("envelope")
    if envelope is not None:
        return answer.ended(await with_keys(questions.verified_answer, signed, envelope))
    digest = answer.done.get("digest")
    if digest is not None:
        await with_keys(questions.check_digest, signed, digest, answer.window.text)
        return answer.ended(None)
    if answer.window.length <= SIGNED_CHARS:
        raise unauthenticated("The answer is not signed.", detail="sig")
    if not questions.is_direct(signed, question.target):
        raise unauthenticated(
            "The answer came through a hub, and its digest is not signed.", detail="sig"
        )
    return answer.ended(None)


async def _refuse(signed: SignedQuestion, value: object) -> None:
    """Raise PeerRefusal for an error about the question; ignore any other envelope."""
    if isinstance(value, dict) and "code" in value and "intent" not in value:
        # The end of a stream over HTTP, but not of its answer.
        raise refusal_of(value)
    error = await with_keys(questions.verified_error, signed, value)
    if error is not None:
        raise refusal_of(load(error.body.content))


async def _cancel(question: PeerQuestion, signed: SignedQuestion) -> None:
    """Cancel an answer at the peer; an unreachable peer gives up on its own."""
    for attempt in range(MAX_LOST_CONNECTIONS):
        try:
            raw = await database.run(questions.signed_about, signed, Intent.CANCEL, {})
            async with CONNECTIONS[question.protocol](question, signed) as connection:
                await connection.tell(raw)
        except ConnectionLost:
            await asyncio.sleep(PAUSE_SECONDS * 2**attempt)
        except PeerRefusal as refusal:
            if refusal.error.code not in {EnvelopeCode.BUSY, EnvelopeCode.RATE_LIMITED}:
                logger.info("an answer of %s was not cancelled: %s", signed.receiver, refusal)
                return
            await asyncio.sleep(min(refusal.error.retry_after or 1, MAX_PAUSE_SECONDS))
        except (EnvelopeError, TimeoutError) as error:
            logger.info("an answer of %s was not cancelled: %s", signed.receiver, error)
            return
        else:
            return
