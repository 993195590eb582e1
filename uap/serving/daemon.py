"""The daemon: maintains a connection to a server and answers for its agents (UAMP §10.2)."""

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import httpx2

from uamp.client.errors import (
    ClientError,
    ConnectionLostError,
    NotFoundError,
    NotPermittedError,
    UnauthorizedError,
)
from uamp.client.transports.frames import TransportClosed, UpgradeRefused
from uamp.client.transports.web_socket import WebSocketTransport
from uamp.codec.frames import decode
from uamp.errors import RemoteProtocolError
from uamp.events import Ping
from uamp.events.base import Event
from uamp.types.capabilities import Capabilities, ToolCapabilities
from uap import Agent
from uap.serving.addresses import ServerAddress
from uap.serving.answers import ServedAnswer, history_of
from uap.serving.contents import ServerContents
from uap.serving.link import (
    AgentLink,
    Cancel,
    Refused,
    Registered,
    Registration,
    RequestedAnswer,
    ToolAnswered,
    frame_of,
)
from uap.serving.options import accepted_options

logger = logging.getLogger(__name__)

CONNECT_SECONDS = 15.0
"""The time limit of a handshake, and then of a registration."""
PING_SECONDS = 30.0
"""After this long without a frame, the daemon pings; after twice as long, it reconnects."""
FIRST_ATTEMPTS = 3
"""The attempts to reach a server for the first time; reconnecting has no limit."""
CANCEL_SECONDS = 5.0
"""How long the daemon waits for a cancelled answer to end."""
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0
_REFUSALS: Mapping[int, type[ClientError]] = {
    401: UnauthorizedError,
    403: NotPermittedError,
    404: NotFoundError,
}


@dataclass(frozen=True, kw_only=True)
class ServedAgent:
    """An agent, its name on the server, and the token that registers it."""

    name: str
    token: str
    bot: Agent

    @property
    def registration(self) -> Registration:
        """The data sent to register the agent."""
        options = accepted_options(self.bot)
        capabilities = Capabilities(
            id=self.bot.model.model_id,
            provider=self.bot.model.provider,
            supports_streaming=True,
            # The model is offered the tools of the chat besides its own.
            tools=ToolCapabilities(supports_tools=self.bot.model.capabilities.tools),
            extensions={"options": list(options)} if options else {},
        )
        return Registration(name=self.name, token=self.token, capabilities=capabilities)


class Daemon:
    """Serves agents until `stop` is called; its tasks run on one event loop.

    `report` receives a sentence for the person who started the daemon whenever something changes.
    Once a server has been reached, the daemon keeps reconnecting no matter how long it is gone.
    Answers in progress end with the connection, because the server ends them too.
    """

    def __init__(
        self,
        agents: Mapping[str, ServedAgent],
        address: ServerAddress,
        *,
        max_answers: int,
        drain_seconds: float,
        report: Callable[[str], None],
    ) -> None:
        self._agents = agents
        self._address = address
        self._drain_seconds = drain_seconds
        self._report = report
        registrations = {name: agent.registration for name, agent in agents.items()}
        self._link = AgentLink(registrations, max_answers=max_answers, new_id=_new_id)
        self._free = asyncio.Semaphore(max_answers)
        self._stopping = asyncio.Event()
        self._transport: WebSocketTransport | None = None
        self._http = httpx2.AsyncClient(follow_redirects=False)
        self._runs: dict[str, tuple[ServedAnswer, asyncio.Task[None]]] = {}
        self._later: set[asyncio.Task[None]] = set()
        self._refusal: ClientError | None = None
        self._received_at = 0.0
        self._was_registered = False
        self._has_been_registered = False

    def stop(self) -> None:
        """Accept no more answers, let those in progress finish within the drain time, then end."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    async def run(self) -> None:
        """Serve until stopped.

        Raises ClientError if retrying is pointless: the token was refused, or the server was never
        reached.
        """
        attempt = 0
        try:
            while not self._stopping.is_set():
                self._was_registered = False
                reason = await self._serve_once()
                if self._stopping.is_set():
                    break
                attempt = 1 if self._was_registered else attempt + 1
                if attempt >= FIRST_ATTEMPTS and not self._has_been_registered:
                    raise ConnectionLostError(
                        f"{self._address.display} could not be reached: {reason}"
                    )
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2 ** (attempt - 1))
                pause *= random.uniform(0.5, 1.0)  # noqa: S311 not a secret
                self._report(f"not connected ({reason}); reconnecting in {pause:.1f} s")
                await self._pause(pause)
        finally:
            await self._http.aclose()

    async def _pause(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    # --- One connection ---

    async def _serve_once(self) -> str:
        """Connect and serve until the connection is lost; return the reason. Raises ClientError."""
        try:
            transport = await self._open()
        except (OSError, TimeoutError) as error:
            return str(error) or type(error).__name__
        self._transport, self._received_at = transport, time.monotonic()
        self._link.begin()
        reader = asyncio.create_task(self._read(transport))
        beat = asyncio.create_task(self._beat(transport))
        stopping = asyncio.create_task(self._stopping.wait())
        try:
            await self._send_output()
            await asyncio.wait({reader, beat, stopping}, return_when=asyncio.FIRST_COMPLETED)
            if stopping.done() and not reader.done():
                await self._drain(reader)
        finally:
            for task in (reader, beat, stopping, *self._later):
                task.cancel()
            self._transport = None
            self._link.connection_lost()
            self._do_work()
            await self._finish_cancelled()
            ended = await asyncio.gather(reader, beat, return_exceptions=True)
            await transport.close()
        if self._refusal is not None:
            raise self._refusal
        return self._reason_of(ended)

    def _reason_of(self, ended: Iterable[BaseException | None]) -> str:
        for error in ended:
            if isinstance(error, TransportClosed):
                if error.error is not None:
                    raise error.error
                return str(error)
            if error is not None and not isinstance(error, asyncio.CancelledError):
                raise error
        return "the server does not answer"

    async def _open(self) -> WebSocketTransport:
        token = next(iter(self._agents.values())).token
        headers = {"Authorization": f"Bearer {token}"}
        try:
            return await WebSocketTransport.open(
                self._address.socket, headers, seconds=CONNECT_SECONDS
            )
        except UpgradeRefused as refused:
            kind = _REFUSALS.get(refused.status)
            if kind is None:
                raise ConnectionError(str(refused)) from None
            if kind is NotPermittedError and await self._is_unknown(headers):
                kind = UnauthorizedError
            message = f"{self._address.display} refused the connection: {refused}."
            raise kind(message, code="refused", what_to_do=_WHAT_TO_DO[kind]) from None

    async def _is_unknown(self, headers: Mapping[str, str]) -> bool:
        """Return whether the server does not know the token.

        The handshake does not say so: its 403 may also mean too many connections. REST answers an
        unknown token with 401.
        """
        try:
            answer = await self._http.get(
                f"{self._address.origin}/api/v1/me", headers=headers, timeout=CONNECT_SECONDS
            )
        except httpx2.HTTPError as error:
            logger.info("the server gave no reason for refusing the connection: %s", error)
            return False
        return answer.status_code == httpx2.codes.UNAUTHORIZED

    async def _read(self, transport: WebSocketTransport) -> None:
        """Process the server's frames until an agent is refused. Raises TransportClosed."""
        while self._refusal is None:
            frame = await transport.receive()
            self._received_at = time.monotonic()
            try:
                event = decode(frame, sender="any")
            except RemoteProtocolError as error:
                logger.warning("ignored an invalid frame of the server: %s", error)
                continue
            self._link.receive(event)
            self._do_work()
            await self._send_output()

    async def _beat(self, transport: WebSocketTransport) -> None:
        """Keep the connection alive; return if the server stops answering."""
        await asyncio.sleep(CONNECT_SECONDS)
        if not self._link.registered and self._refusal is None and not self._later:
            return
        while True:
            silent = time.monotonic() - self._received_at
            if silent >= 2 * PING_SECONDS:
                return
            await self._send_event(Ping(), transport)
            await asyncio.sleep(PING_SECONDS)

    async def _drain(self, reader: asyncio.Task[None]) -> None:
        """Unregister the agents and finish the answers in progress."""
        self._link.is_draining = True
        self._link.leave()
        await self._send_output()
        if self._runs:
            self._report(f"stopping; {len(self._runs)} answers are in progress")
            finishing = asyncio.create_task(self._finish())
            await asyncio.wait(
                {finishing, reader},
                timeout=self._drain_seconds,
                return_when=asyncio.FIRST_COMPLETED,
            )
            finishing.cancel()
        for run, task in list(self._runs.values()):
            run.ends_interrupted = True
            task.cancel()
        await self._finish_cancelled()

    async def _finish(self) -> None:
        """Wait until the answers in progress have ended, without cancelling any."""
        if self._runs:
            await asyncio.wait([task for _, task in self._runs.values()])

    async def _finish_cancelled(self) -> None:
        """Wait until the cancelled answers have ended, for CANCEL_SECONDS at most."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CANCEL_SECONDS):
                await self._finish()
        for response_id in self._runs:
            logger.warning(
                "the answer %s does not end: its code swallowed the cancellation", response_id
            )

    # --- Work ---

    def _do_work(self) -> None:
        for work in self._link.take_work():
            match work:
                case RequestedAnswer():
                    self._start(work)
                case Cancel(response_id=response_id):
                    if (run := self._runs.get(response_id)) is not None:
                        # A task cancelled before its first step would not run at all.
                        asyncio.get_running_loop().call_soon(run[1].cancel)
                case ToolAnswered(response_id=response_id, result=result):
                    if (run := self._runs.get(response_id)) is not None:
                        run[0].take_result(result)
                case Registered(agent=name):
                    self._was_registered = self._has_been_registered = True
                    self._report(f"@{name} is connected to {self._address.display}")
                case Refused():
                    self._handle_refusal(work)

    def _start(self, answer: RequestedAnswer) -> None:
        agent = self._agents[answer.agent]
        contents = ServerContents(
            self._http, self._address.origin, agent.token, history_of(answer.input)
        )

        async def send(event: Event) -> None:
            await self._send_event(event, self._transport, session_id=answer.session_id)

        run = ServedAnswer(agent.bot, answer, media=contents, send=send)

        async def work() -> None:
            try:
                async with self._free:
                    await run.run()
            except asyncio.CancelledError:
                # It was still waiting for its turn, so nothing has been sent yet.
                if not run.has_ended:
                    await send(run.cancelled())
            finally:
                self._link.ended(answer.response_id)
                del self._runs[answer.response_id]

        self._runs[answer.response_id] = (run, asyncio.create_task(work()))

    def _handle_refusal(self, refusal: Refused) -> None:
        reason = refusal.error.message
        if refusal.again_after is None:
            self._refusal = refusal.error
            return
        self._report(f"@{refusal.agent} is not registered ({reason}); trying again")

        async def again() -> None:
            await asyncio.sleep(refusal.again_after or 0)
            self._link.register(refusal.agent)
            await self._send_output()

        task = asyncio.create_task(again())
        self._later.add(task)
        task.add_done_callback(self._later.discard)

    # --- Sending ---

    async def _send_output(self) -> None:
        for event in self._link.take_events():
            await self._send_event(event, self._transport)

    async def _send_event(
        self, event: Event, transport: WebSocketTransport | None, *, session_id: str | None = None
    ) -> None:
        """Send an event; without a connection it is dropped, and the reader ends the answers."""
        if transport is None:
            return
        frame = frame_of(
            event, event_id=_new_id(), timestamp=round(time.time() * 1000), session_id=session_id
        )
        with contextlib.suppress(TransportClosed):
            await transport.send(frame, None)


def _new_id() -> str:
    return uuid.uuid4().hex


_WHAT_TO_DO = {
    UnauthorizedError: "Create a new token in the browser, under Connect your own agent.",
    NotPermittedError: "Stop other daemons that use the token, or create a new one in the browser.",
    NotFoundError: "Check the address against the one that the browser shows.",
}
