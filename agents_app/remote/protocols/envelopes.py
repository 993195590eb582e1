"""Remote agents of peers, called with signed envelopes; the name on the other side is a DID."""

from contextlib import aclosing
from dataclasses import replace

from agents_app.remote.protocols.conversations import one_text
from agents_app.remote.protocols.peers import PeerQuestion, ask_peer
from agents_app.remote.protocols.server import Called, SideEvents
from agents_app.remote.protocols.uamp_events import UampAnswer, provider_code
from uamp import RemoteProtocolError
from upp import ErrorCode, LLMCapabilities, LLMRequest, LLMResponse, StreamEvent
from upp.model import EmittingModel
from upp.providers.http.failures import Failures
from upp.stream import Emit, EventDelta


class EnvelopeModel(EmittingModel):
    """Sends an `ask` for each inference, with the conversation as one text."""

    capabilities = LLMCapabilities(tools=False, structured_output=False)

    def __init__(self, called: Called, side_events: SideEvents) -> None:
        self.called = called
        self.side_events = side_events
        self.failures = Failures(provider=called.protocol, url=called.url)

    @property
    def model_id(self) -> str:
        """See Model."""
        return self.called.name

    @property
    def provider(self) -> str:
        """See Model."""
        return self.called.protocol

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See EmittingModel."""
        await emit(StreamEvent(type="message_start"))
        answer = UampAnswer(self, request, self.failures)
        text = one_text(request)
        question = PeerQuestion(
            protocol=self.called.protocol,
            target=self.called.target,
            receiver=self.called.name,
            text=text,
            hops=self.called.hops,
            silent=self.called.silent,
            token=self.called.key or "",
        )
        try:
            async with aclosing(ask_peer(question)) as events:
                async for event in events:
                    for stream_event in answer.take(event):
                        await emit(stream_event)
        except RemoteProtocolError as error:
            raise self.failures.error(error.message, provider_code(error.code)) from error
        if not answer.complete:
            message = "The answer was cut off."
            raise self.failures.error(message, ErrorCode.INVALID_RESPONSE)
        response = answer.response()
        written = len(answer.text.encode()) + self.called.reasoning
        usage = response.usage.within(read=len(text.encode()), written=written)
        await emit(StreamEvent(type="message_stop", delta=EventDelta(usage=usage)))
        return replace(response, usage=usage)
