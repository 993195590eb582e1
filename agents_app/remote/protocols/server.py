"""The base of remote agents called with an HTTP POST: limits, the key, the hops header.

One object serves one run. Events other than text, thoughts and calls go to `SideEvents`.
"""

import logging
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Protocol

import aiohttp
import msgspec
from django.conf import settings

from agents_app.outbound.rules import Target
from agents_app.remote import hops
from agents_app.remote.addresses import session_of
from agents_app.remote.onward import CURRENCY, OnwardPayments, OverBudget
from agents_app.remote.protocols.demands import PAYMENT, TokenDemand, demand_in
from agents_app.remote.tasks import Ids, TrackedTask
from uamp.events import Event
from upp import ErrorCode, LLMCapabilities, LLMRequest, LLMResponse, ProviderConfig, StreamEvent
from upp.json_values import plain
from upp.providers.http.connections import HttpSession, read_body
from upp.providers.http.failures import Failures
from upp.providers.http.transport import Answer, HttpProvider, Post, Refusal

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Called:
    """Where and how a remote agent is called in one run.

    `hops` is the value of the header, including this server. `silent` is in seconds; `reasoning` is
    the number of tokens allowed besides the visible output. `streams` is False if the agent answers
    in one piece. `payments` pays its payment requests, `task` records where its answer is.
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
    task: TrackedTask = field(repr=False, compare=False)
    payments: OnwardPayments | None = field(default=None, repr=False, compare=False)
    key: str | None = field(default=None, repr=False)

    @property
    def url(self) -> str:
        """The address without a trailing slash."""
        return str(self.target.url).rstrip("/")


class SideEvents:
    """UAMP events of one answer without a counterpart in a model's stream; used by one task."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()

    def add(self, event: Event) -> None:
        """Append an event."""
        self._events.append(event)

    def take(self) -> list[Event]:
        """Return and clear the events so far."""
        events = list(self._events)
        self._events.clear()
        return events


TELL_SECONDS = 5.0
TOKEN_BYTES = 16 * 1024
TOKEN_SECONDS = 3600
"""When a token expires; then what an answer left of it returns to its account."""


class _IssuedToken(msgspec.Struct):
    token: str


class RemoteCaller(Protocol):
    """The client of a remote agent in one run, as seen by its answer."""

    called: Called
    side_events: SideEvents


FLUSH = StreamEvent(type="content_block_start")
"""An event that shows nothing, but flushes the events in `SideEvents`."""


class RemoteServer(HttpProvider):
    """A remote agent that gets one POST per inference and streams its answer."""

    default_name = "remote"
    default_base_url = ""
    needs_key = False
    capabilities = LLMCapabilities(image_input=True, document_input=True, audio_input=True)

    def __init__(self, called: Called, side_events: SideEvents) -> None:
        self.called = called
        self.side_events = side_events
        self._sent: Any = None
        self._is_paid = False
        config = ProviderConfig(
            base_url=called.url,
            api_key=called.key,
            timeout=called.silent,
            headers={hops.HEADER: str(called.hops), "Accept-Encoding": "identity"},
        )
        super().__init__(name=called.protocol, config=config)
        self.answer_bytes = settings.UAMP_REMOTE_ANSWER_BYTES

    def environment(self) -> tuple[str | None, str | None]:
        """Return nothing: this server's own keys must not go to foreign addresses."""
        return None, None

    def session(self, config: ProviderConfig) -> HttpSession:
        """Return the connections to the agent's host, shared by all runs."""
        del config
        return session_of(self.called.target)

    def post(
        self, model_id: str, request: LLMRequest, config: ProviderConfig, key: str | None
    ) -> Post:
        """Return the request to post; raises UPPError INVALID_REQUEST."""
        del config
        self._is_paid = False
        self._sent = self.body(model_id, request)
        return Post(url=self.path, body=self._sent, headers=self.credentials(key))

    @property
    def sent_bytes(self) -> int:
        """The size of the posted body in bytes."""
        return len(plain.encode(self._sent))

    def credentials(self, key: str | None) -> dict[str, str]:
        """Return the headers that carry the key."""
        return {"Authorization": f"Bearer {key}"} if key else {}

    async def after_refusal(self, post: Post, refusal: Refusal, failures: Failures) -> Post | None:
        """Pay a demand (x402) once, within the budget, with a token of the agent's server."""
        payments = self.called.payments
        if refusal.status != HTTPStatus.PAYMENT_REQUIRED or payments is None:
            return None
        if self._is_paid:
            payments.refused()
            return None
        demand = demand_in(refusal.headers, refusal.body)
        if demand is None or self.called.key is None:
            return None
        try:
            await payments.reserve(demand.amount, CURRENCY)
        except OverBudget as error:
            message = f"The agent failed: it requires a payment: {error}"
            raise failures.error(message, ErrorCode.QUOTA_EXCEEDED) from error
        self._is_paid = True
        try:
            token = await self._token_for(demand)
        except BaseException:
            payments.withdrawn()
            raise
        return replace(post, headers={**post.headers, PAYMENT: demand.header(token)})

    async def _token_for(self, demand: TokenDemand) -> str:
        """Return a token for a demand, from the account there of the key's owner."""
        url = f"{self.called.target.place}/api/payments/tokens"
        failures = Failures(provider=self.name, key=self.called.key, url=url)
        headers = {
            "Content-Type": "application/json",
            **RemoteServer.credentials(self, self.called.key),
            **self.config.headers,
        }
        body = {
            "amount": demand.amount,
            "currency": CURRENCY,
            "audience": [demand.payee],
            "expiresIn": TOKEN_SECONDS,
        }
        session = session_of(self.called.target)
        with failures.translated():
            response = await session.post(
                url, headers=headers, body=plain.encode(body), silent=self.called.silent
            )
            try:
                data = await read_body(response, TOKEN_BYTES)
            finally:
                response.close()
            if response.status != HTTPStatus.CREATED:
                message = f"The agent failed: its server issued no token (HTTP {response.status})."
                raise failures.error(message, ErrorCode.QUOTA_EXCEEDED)
            return msgspec.json.decode(data, type=_IssuedToken).token

    def answer(self, request: LLMRequest, failures: Failures) -> Answer:
        """Return an empty answer to a request, with its limits applied."""
        return _BoundedAnswer(self, self.read(request, failures), failures)

    async def cancel(self) -> None:
        """Stop what the agent has left to do; nothing if it has ended.

        For most protocols, closing the request is enough.
        """

    async def stop(self, ids: Ids) -> None:
        """Stop an answer that another process left behind."""
        raise NotImplementedError(f"answers over {self.called.protocol} end with their request")

    async def tell(self, url: str, body: Any) -> None:
        """Post a request whose response does not matter, such as a cancellation."""
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
        """The URL of the POST."""

    @abstractmethod
    def body(self, name: str, request: LLMRequest) -> Any:
        """Return the JSON body of the POST; raises UPPError INVALID_REQUEST if impossible."""

    @abstractmethod
    def read(self, request: LLMRequest, failures: Failures) -> Answer:
        """Return an empty answer of the protocol."""


class _BoundedAnswer:
    """An answer with a limited number of events, whose usage is capped by the bytes seen."""

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
        """See Answer; raises UPPError INVALID_RESPONSE when there are too many events."""
        self._events += 1
        self._received += len(data)
        if self._events > settings.UAMP_REMOTE_EVENTS:
            message = f"The answer has more than {settings.UAMP_REMOTE_EVENTS} events."
            raise self._failures.error(message, ErrorCode.INVALID_RESPONSE)
        return self._answer.add(data)

    def response(self) -> LLMResponse:
        """See Answer. A token is at least one byte of the data sent or received."""
        response = self._answer.response()
        usage = response.usage.within(
            read=self._server.sent_bytes if response.usage.input_tokens else 0,
            written=self._received + self._server.called.reasoning,
        )
        return replace(response, usage=usage)
