"""`POST /v1/messages` and `GET /v1/stream/{id}`: envelopes over HTTP (envelope §7).

The paths work the same over HTTP/2, HTTP/3 and HTTP/1.1. A refusal is a problem document (RFC 9457)
with `code`.
"""

from __future__ import annotations

import asyncio
import weakref
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.views.decorators.csrf import csrf_exempt

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError, malformed, unauthenticated
from federation_app.envelope.limits import ENVELOPE_BYTES
from federation_app.exchange import admission
from federation_app.exchange.held_turns import HeldTurn, held_turns
from federation_app.exchange.receipts import encoded_receipt
from federation_app.exchange.receiver import EnvelopeReceiver
from federation_app.exchange.relay import RELAYED_BY, read_relays
from federation_app.exchange.relayed_streams import RelayedStream, error_frame
from federation_app.peers.reading import with_keys
from sessions_app.access.auth import Handshake
from sessions_app.process import registry as processes
from sessions_app.transports.http_exchange import STREAM_HEADERS
from uamp.codec.single_lines import single_lines

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from federation_app.exchange.receipts import EnvelopeReceipt
    from federation_app.exchange.windowed import WindowedStream
    from federation_app.models import EnvelopeStream, Peer

    View: TypeAlias = Callable[..., Awaitable[HttpResponseBase]]

ENVELOPE_MEDIA_TYPE: Final = "application/uamp+json"
_MEDIA_TYPES: Final = frozenset({ENVELOPE_MEDIA_TYPE, "application/json"})
_NUMBER_CHARS: Final = 16
_KEEP_ALIVE: Final = b": keep-alive\n\n"


def problem(error: EnvelopeError) -> HttpResponse:
    """Return an error as a problem document with the HTTP status of its code."""
    meaning = error.meaning
    body = {
        "type": "about:blank",
        "title": meaning.title,
        "status": meaning.http,
        "retry": meaning.retry,
        **error.payload(),
        "detail": error.message,
        "reason": error.detail,
    }
    response = HttpResponse(
        msgspec.json.encode(body), status=meaning.http, content_type="application/problem+json"
    )
    if error.code is EnvelopeCode.UNAUTHENTICATED:
        response["WWW-Authenticate"] = 'Bearer realm="uamp"'
    if error.retry_after is not None:
        response["Retry-After"] = str(error.retry_after)
    return response


def envelope_view(method: str) -> Callable[[View], Any]:
    """Restrict a view to one method, and report EnvelopeError as a problem document.

    Peers authenticate with signatures, so the view is exempt from CSRF.
    """

    def decorated(view: View) -> Any:
        @wraps(view)
        async def guarded(request: HttpRequest, **path: str) -> HttpResponseBase:
            if request.method != method:
                response = problem(malformed(f"Use {method} here.", detail="method"))
                response.status_code = 405
                response["Allow"] = method
                return response
            try:
                return await view(request, **path)
            except EnvelopeError as error:
                return problem(error)

        return csrf_exempt(guarded)

    return decorated


@envelope_view("POST")
async def messages(request: HttpRequest) -> HttpResponseBase:
    """Accept one envelope with 202, and the address of its stream in `Location`."""
    if (request.content_type or "").lower() not in _MEDIA_TYPES:
        raise EnvelopeError(
            EnvelopeCode.UNSUPPORTED, f"Send the envelope as {ENVELOPE_MEDIA_TYPE}.", detail="type"
        )
    if len(request.body) > ENVELOPE_BYTES:
        raise EnvelopeError(
            EnvelopeCode.TOO_LARGE, f"An envelope may have at most {ENVELOPE_BYTES} bytes."
        )
    relays = read_relays(request.headers.get(RELAYED_BY, ""))
    receiver = EnvelopeReceiver(address=_handshake(request).address, relays=relays)
    receipt = await receiver.take(request.body, holds=True)
    await _hold(receipt)
    response = HttpResponse(encoded_receipt(receipt), status=202, content_type="application/json")
    if receipt.stream_id:
        response["Location"] = f"/v1/stream/{receipt.stream_id}"
    return response


@envelope_view("GET")
async def stream(request: HttpRequest, stream_id: str) -> HttpResponseBase:
    """Send the deltas of a stream as events whose ids are their `delta_seq`.

    The peer shows a bearer token that it signed, or its certificate (envelope §6.2).
    `Last-Event-ID` names the last delta that the peer has received, and acknowledges it.
    """
    handshake = _handshake(request)
    after = _place(request.headers.get("Last-Event-ID", ""))
    peer, row = await with_keys(_stream_of, _claimed_peer(request), stream_id)
    opened: WindowedStream | RelayedStream
    if row.relayed_to_id is None:
        opened = await _opened(peer, row, after=after, address=handshake.address)
        frames = _frames(opened)
    else:
        if not handshake.header_token:
            raise unauthenticated("Show a bearer token for both servers.", detail="token")
        opened = RelayedStream(peer, row)
        await opened.open(
            token=handshake.header_token,
            after="" if after < 0 else str(after),
            relays=read_relays(request.headers.get(RELAYED_BY, "")),
        )
        frames = _relayed_frames(opened)
    response = StreamingHttpResponse(
        frames, content_type="text/event-stream", headers=STREAM_HEADERS
    )
    # A client that leaves before the first frame would otherwise leave the stream open, because the
    # iterator is then neither started nor closed.
    weakref.finalize(response, _leave, asyncio.get_running_loop(), opened)
    return response


async def peer_of(request: HttpRequest) -> Peer:
    """Return the peer of a request without an envelope; raises EnvelopeError unauthenticated."""
    return await with_keys(_claimed_peer(request))


def _claimed_peer(request: HttpRequest) -> Callable[[], Peer]:
    """Return the function that verifies the peer of a request; for `with_keys`.

    Raises EnvelopeError unauthenticated if the request claims none.
    """
    handshake = _handshake(request)
    if handshake.header_token:
        return partial(admission.bearer_of, handshake.header_token)
    if handshake.certificate:
        return partial(admission.certified_peer, handshake.certificate)
    raise unauthenticated("Show a bearer token that you signed.", detail="token")


def _stream_of(claimed: Callable[[], Peer], stream_id: str) -> tuple[Peer, EnvelopeStream]:
    peer = claimed()
    return peer, admission.find_stream(peer, stream_id=stream_id)


async def _hold(receipt: EnvelopeReceipt) -> None:
    """Hold the turn of an `ask` for the reader of its stream, or leave it."""
    if receipt.turn is None or receipt.stream is None:
        return
    held = HeldTurn(receipt.turn, receipt.request)
    if not held_turns().hold(receipt.stream.pk, held):
        await receipt.leave()


async def _opened(peer: Peer, row: EnvelopeStream, *, after: int, address: str) -> WindowedStream:
    """Open a stream after a delta; from its start with the turn that is held here, if any."""
    receiver = EnvelopeReceiver(address=address)
    held = held_turns().take(row.pk)
    if held is None:
        return await receiver.open_stream(peer, row, after=after)
    turn = held.turn if after < 0 else None
    try:
        return await receiver.open_stream(peer, row, after=after, request=held.request, turn=turn)
    except BaseException:
        turn = None
        raise
    finally:
        if turn is None:
            await held.turn.close()


async def _frames(opened: WindowedStream) -> AsyncIterator[bytes]:
    try:
        # Sends the headers at once, even if the answer takes a while.
        yield b": ok\n\n"
        async for delta in opened.deltas():
            if delta is None:
                yield _KEEP_ALIVE
            else:
                yield b"id: %d\ndata: %b\n\n" % (delta.delta_seq, single_lines(delta.encoded()))
    except EnvelopeError as error:
        yield error_frame(error)
    finally:
        await opened.close()


async def _relayed_frames(opened: RelayedStream) -> AsyncIterator[bytes]:
    try:
        async for frames in opened.frames():
            yield frames
    except EnvelopeError as error:
        yield error_frame(error)
    finally:
        await opened.close()


def _leave(loop: asyncio.AbstractEventLoop, opened: WindowedStream | RelayedStream) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(
            lambda: processes.current().spawn(opened.close(), name="close a stream")
        )


def _handshake(request: HttpRequest) -> Handshake:
    return Handshake.of(request.scope)  # type: ignore[attr-defined]  # an ASGIRequest


def _place(text: str) -> int:
    if not text:
        return -1
    if not text.isascii() or not text.isdigit() or len(text) > _NUMBER_CHARS:
        raise malformed("Last-Event-ID must be the delta_seq of a delta.", detail="last_event_id")
    return int(text)
