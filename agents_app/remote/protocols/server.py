"""The base of remote agents that answer a POST: bounds, the key, the header of hops.

One object serves one run. What an agent shows besides text, thoughts and calls goes to `Shown`.
"""

import logging
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import aiohttp
from django.conf import settings

from agents_app.outbound.rules import Target
from agents_app.remote import hops
from agents_app.remote.addresses import session_of
from agents_app.remote.onward import OnwardPayments
from uamp.events import Event
from upp import ErrorCode, LLMCapabilities, LLMRequest, LLMResponse, ProviderConfig, StreamEvent
from upp.conversation.turn import TokenUsage
from upp.json_values import plain
from upp.providers.http.connections import HttpSession
from upp.providers.http.failures import Failures
from upp.providers.http.transport import Answer, HttpProvider, Post

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Called:
    """Where and how a remote agent is called in one run.

    `hops` is the value of the header: this server is counted. `silent` is in seconds, `reasoning`
    the tokens that it may use besides what it shows. `streams` is False for one that answers at
    once. `payments` pays what it asks for.
    """

    agent: str
    protocol: str
    target: Target
    name: str
    response_id: str
    hops: int
    silent: float
    reasoning: int = 0
    streams: bool = True
    payments: OnwardPayments | None = field(default=None, repr=False, compare=False)
    key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address, without a slash at its end."""
        return str(self.target.url).rstrip("/")


class Shown:
    """UAMP events of one answer that a model has none for, in their order; one task uses it."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def add(self, event: Event) -> None:
        """Keep an event."""
        self._events.append(event)

    def take(self) -> list[Event]:
        """Return what came since the last time."""
        events = list(self._events)
        self._events.clear()
        return events


TELL_SECONDS = 5.0


class Asking(Protocol):
    """The client of a remote agent in one run, as its answer sees it."""

    called: Called
    shown: Shown


NOTHING = StreamEvent(type="content_block_start")
"""An event that shows nothing: with it come the events in `Shown`."""


class RemoteServer(HttpProvider):
    """A remote agent that is sent one POST for an inference and streams its answer."""

    default_name = "remote"
    default_base_url = ""
    needs_key = False
    capabilities = LLMCapabilities(image_input=True, document_input=True, audio_input=True)

    def __init__(self, called: Called, shown: Shown) -> None:
        self.called = called
        self.shown = shown
        self._sent: Any = None
        config = ProviderConfig(
            base_url=called.url,
            api_key=called.key,
            timeout=called.silent,
            headers={hops.HEADER: str(called.hops), "Accept-Encoding": "identity"},
        )
        super().__init__(name=called.protocol, config=config)
        self.answer_bytes = settings.UAMP_REMOTE_ANSWER_BYTES

    def environment(self) -> tuple[str | None, str | None]:
        """Return nothing: no key of this server is for an address of others."""
        return None, None

    def session(self, config: ProviderConfig) -> HttpSession:
        """Return the connections to the agent's place, which runs share."""
        del config
        return session_of(self.called.target)

    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Return what is posted; raises UPPError INVALID_REQUEST."""
        del config
        self._sent = self.body(model_id, request)
        return Post(url=self.path, body=self._sent, headers=self.credentials(key))

    @property
    def sent_bytes(self) -> int:
        """How long the body of the POST is."""
        return len(plain.encode(self._sent))

    def credentials(self, key: str | None) -> dict[str, str]:
        """Return the headers that carry the key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    def answer(self, request: LLMRequest, failures: Failures) -> Answer:
        """Return the empty answer to a request, with its bounds."""
        return _BoundedAnswer(self, self.read(request, failures), failures)

    async def cancel(self) -> None:
        """Stop an answer that was not read to its end; closing the request does it for most."""

    async def tell(self, url: str, body: Any) -> None:
        """Post something whose answer is not needed, such as that a task is to be cancelled."""
        headers = {
            "Content-Type": "application/json",
            **self.credentials(self.called.key),
            **self.config.headers,
        }
        session = session_of(self.called.target)
        try:
            response = await session.post(
                url, headers=headers, body=plain.encode(body), silent=TELL_SECONDS
            )
        except (aiohttp.ClientError, OSError) as error:
            logger.info("a stop was not sent to %s: %s", self.called.agent, error)
        else:
            response.close()

    @property
    @abstractmethod
    def path(self) -> str:
        """The address of the POST."""

    @abstractmethod
    def body(self, name: str, request: LLMRequest) -> Any:
        """Return the JSON of the POST; raises UPPError INVALID_REQUEST for what cannot be sent."""

    @abstractmethod
    def read(self, request: LLMRequest, failures: Failures) -> Answer:
        """Return the empty answer of the protocol."""


class _BoundedAnswer:
    """An answer of so many events, whose tokens are believed as far as bytes were seen for them."""

    def __init__(self, server: RemoteServer, answer: Answer, failures: Failures) -> None:
        self._server = server
        self._answer = answer
        self._failures = failures
        self._events = 0
        self._received = 0

    @property
    def done(self) -> bool:
        """See Answer."""
        return self._answer.done

    @property
    def complete(self) -> bool:
        """See Answer."""
        return self._answer.complete

    def add(self, data: bytes) -> list[StreamEvent]:
        """See Answer; raises UPPError INVALID_RESPONSE for an event too many."""
        self._events += 1
        self._received += len(data)
        if self._events > settings.UAMP_REMOTE_EVENTS:
            message = f"The answer has more than {settings.UAMP_REMOTE_EVENTS} events."
            raise self._failures.error(message, ErrorCode.INVALID_RESPONSE)
        return self._answer.add(data)

    def response(self) -> LLMResponse:
        """See Answer. A token is at least a byte of what was sent or received."""
        response = self._answer.response()
        usage = believed(
            response.usage,
            read=self._server.sent_bytes if response.usage.input_tokens else 0,
            written=self._received + self._server.called.reasoning,
        )
        return replace(response, usage=usage)


def believed(usage: TokenUsage, *, read: int, written: int) -> TokenUsage:
    """Return tokens of another server, none below 0 and none that were neither sent nor said."""
    taken = min(max(usage.input_tokens, 0), read)
    said = min(max(usage.output_tokens, 0), written)
    return TokenUsage(
        input_tokens=taken,
        output_tokens=said,
        total_tokens=taken + said,
        cache_read_tokens=min(max(usage.cache_read_tokens, 0), taken),
        reasoning_tokens=min(max(usage.reasoning_tokens, 0), said),
    )
