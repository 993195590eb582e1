"""The model of a remote agent, used by `agents_app.runtime` in place of a provider's.

A remote agent is called like a model: it gets the conversation and the client's tools, and its
calls, thoughts and text reach the chat in the same way. Payment, stopping, resuming and limits
therefore work as for every other agent.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents_app.models.agents import ENVELOPES
from agents_app.outbound.keys import Undecipherable, key_for
from agents_app.outbound.rules import Unreachable
from agents_app.providers.options import problem_of
from agents_app.remote.addresses import target_of
from agents_app.remote.onward import OnwardPayments
from agents_app.remote.protocols.a2a import A2a03Server, A2aServer
from agents_app.remote.protocols.acp import AcpModel
from agents_app.remote.protocols.ag_ui import AgUiServer
from agents_app.remote.protocols.completions import CompletionsServer
from agents_app.remote.protocols.envelopes import EnvelopeModel
from agents_app.remote.protocols.responses import ResponsesServer
from agents_app.remote.protocols.server import Called, RemoteServer, SideEvents
from agents_app.remote.protocols.uamp_socket import UampSocketModel
from agents_app.remote.protocols.uamp_stream import UampStreamServer
from agents_app.remote.rules import OPTIONS
from agents_app.remote.tasks import Ids, TaskHandle, TaskRecorder, TrackedTask
from agents_app.selectors import AgentSpec
from uamp.events import Event
from upp import ErrorCode, LLMCapabilities, LLMRequest, LLMResponse, Model, StreamEvent, UPPError
from upp.model import EmittingModel, infer
from upp.stream import Emit

Give = Callable[[Event], Awaitable[None]]
"""Receives UAMP events of an answer that have no counterpart in a model's stream."""

_SERVERS: Mapping[str, type[RemoteServer]] = {
    "a2a": A2aServer,
    "a2a_03": A2a03Server,
    "ag_ui": AgUiServer,
    "completions": CompletionsServer,
    "responses": ResponsesServer,
    "uamp_http": UampStreamServer,
}
_MODELS: Mapping[str, Callable[[Called, SideEvents], Model]] = {
    "acp": AcpModel,
    "envelope": EnvelopeModel,
    "envelope_grpc": EnvelopeModel,
    "envelope_http": EnvelopeModel,
    "uamp": UampSocketModel,
}
logger = logging.getLogger(__name__)
_cancelling: set[asyncio.Task[None]] = set()


def remote_model(
    spec: AgentSpec,
    *,
    response_id: str,
    servers: int,
    give: Give,
    recorder: TaskRecorder | None = None,
    handle: TaskHandle | None = None,
) -> Model:
    """Return the model of a remote agent for one run.

    `servers` is the number of servers that passed the request on before this one. `recorder` stores
    where an answer is in progress, and `handle` is what another process stored. Raises UPPError
    INVALID_REQUEST if the row has invalid options or no permitted address, AUTHENTICATION_FAILED if
    its key can no longer be decrypted, PROVIDER_ERROR if the request has passed too many servers.
    """
    problem = problem_of(f"{OPTIONS}_{spec.protocol}", spec.options)
    if problem is not None:
        message = f"its options are wrong: {problem.rstrip('.')}"
        raise _refused(spec, message, ErrorCode.INVALID_REQUEST)
    side_events = SideEvents()
    called = called_of(
        spec, response_id=response_id, servers=servers, recorder=recorder, handle=handle
    )
    if spec.protocol == "uamp":
        socket = UampSocketModel(called, side_events)
        return RemoteModel(socket, called, side_events, give, cancel=socket.cancel)
    if spec.protocol in _MODELS:
        return RemoteModel(_MODELS[spec.protocol](called, side_events), called, side_events, give)
    server = _SERVERS[spec.protocol](called, side_events)
    model = server(spec.model)
    return RemoteModel(model, called, side_events, give, cancel=server.cancel, stop=server.stop)


async def stop_orphaned(spec: AgentSpec, response_id: str, handle: TaskHandle | None) -> None:
    """Stop an answer that a dead process left behind, and settle what it was paid.

    If it has no handle or the other side cannot be reached, the answer continues there; the latter
    is logged.
    """
    if handle is not None:
        try:
            await _stop(spec, response_id, handle)
        except UPPError as error:
            logger.warning("an answer of agent %s was not stopped: %s", spec.name, error.code)
    payments = OnwardPayments(spec.id, response_id, spec.options)
    await payments.restore()
    await payments.settle()


async def _stop(spec: AgentSpec, response_id: str, handle: TaskHandle) -> None:
    called = called_of(spec, response_id=response_id, servers=0)
    if (called.protocol, str(called.target.url)) != (handle.protocol, handle.address):
        logger.warning("the address of agent %s has changed during an answer", spec.name)
    elif called.protocol in _MODELS:
        await UampSocketModel(called, SideEvents()).stop(handle.ids)
    else:
        await _SERVERS[called.protocol](called, SideEvents()).stop(handle.ids)


def called_of(
    spec: AgentSpec,
    *,
    response_id: str,
    servers: int,
    recorder: TaskRecorder | None = None,
    handle: TaskHandle | None = None,
) -> Called:
    """Return where and how to call an agent; raises UPPError like `remote_model`."""
    if spec.protocol not in _SERVERS.keys() | _MODELS.keys():
        raise _refused(spec, "no protocol is set for it", ErrorCode.INVALID_REQUEST)
    try:
        target = target_of(spec.url, is_peer=spec.protocol in ENVELOPES)
        key = key_for(spec.secret, target.place)
    except Unreachable as error:
        message = f"its address may not be called ({error.reason})"
        raise _refused(spec, message, ErrorCode.INVALID_REQUEST) from error
    except Undecipherable as error:
        message = "its key cannot be read, because SECRET_KEY has changed"
        raise _refused(spec, message, ErrorCode.AUTHENTICATION_FAILED) from error
    return Called(
        agent=spec.name,
        protocol=spec.protocol,
        target=target,
        name=spec.model,
        response_id=response_id,
        hops=servers + 1,
        silent=float(spec.options.get("timeout") or settings.UAMP_REMOTE_SILENT_SECONDS),
        streams=spec.options.get("streams") is not False,
        reasoning=int(spec.options.get("reasoning_tokens") or 0),
        task=TrackedTask(spec.protocol, str(target.url), recorder=recorder, handle=handle),
        payments=OnwardPayments(spec.id, response_id, spec.options),
        key=key,
    )


@dataclass(frozen=True)
class RemoteModel(EmittingModel):
    """A remote agent as a model; `give` receives its further events.

    `cancel` stops what the other side has left to do when the answer ends here, and `stop` an
    answer that a dead process left there; neither is awaited.
    """

    inner: Model
    called: Called
    side_events: SideEvents
    give: Give
    cancel: Callable[[], Coroutine[Any, Any, None]] | None = None
    stop: Callable[[Ids], Coroutine[Any, Any, None]] | None = None

    @property
    def model_id(self) -> str:
        """See Model."""
        return self.inner.model_id

    @property
    def provider(self) -> str:
        """See Model."""
        return self.inner.provider

    @property
    def capabilities(self) -> LLMCapabilities:
        """See Model."""
        return self.inner.capabilities

    async def _begin_task(self, request: LLMRequest) -> None:
        task, payments = self.called.task, self.called.payments
        is_resumed = task.begin(request)
        if is_resumed and payments is not None:
            await payments.restore()
        if task.left_ids is not None and self.stop is not None:
            _begin(self.stop(task.left_ids))

    async def infer(self, request: LLMRequest, emit: Emit) -> LLMResponse:
        """See Model."""

        async def pass_on(event: StreamEvent) -> None:
            for side_event in self.side_events.take():
                await self.give(side_event)
            await emit(event)

        called = self.called
        await self._begin_task(request)
        try:
            response = await infer(self.inner, request, pass_on)
        except BaseException:
            if called.task.is_left:
                raise
            if self.cancel is not None:
                _begin(self.cancel())
            if called.payments is not None:
                _begin(called.payments.settle())
            _begin(called.task.end())
            raise
        if self.cancel is not None:
            _begin(self.cancel())
        if called.payments is not None:
            # The answer exists even if the run is stopped now, so its cost must be counted.
            await asyncio.shield(_begin(called.payments.settle(called.payments.cost)))
        await asyncio.shield(_begin(called.task.end()))
        return response


def _begin(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Run a coroutine to its end, whatever happens to the run."""
    task = asyncio.create_task(work)
    _cancelling.add(task)
    task.add_done_callback(_cancelling.discard)
    return task


def _refused(spec: AgentSpec, message: str, code: ErrorCode) -> UPPError:
    return UPPError(f"Agent {spec.name}: {message}.", code=code, provider=spec.protocol)
