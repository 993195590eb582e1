"""The Agent Client Protocol, and webagents' dialect of it, on a WebSocket.

A prompt is answered when its turn ends. A call that a person has to approve becomes a request to
the client. A turn that must be paid for first is refused with -32402; the client then resends the
prompt with a `payment_token`.
"""

from __future__ import annotations

import logging
import uuid
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeAlias

import msgspec

import uamp
from gateway_app.acp import methods, read, write
from gateway_app.acp.prompts import DEMANDS, ENDS, Prompt
from gateway_app.backend.socket import ForeignDialect, SocketApplication
from gateway_app.types.lost_sessions import lost_session
from uamp import RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator

    from gateway_app.acp.read import Rpc, RpcId
    from uamp.events import Event

    Method: TypeAlias = Callable[[Rpc], Awaitable[dict[str, Any] | None]]

logger = logging.getLogger(__name__)

# The only notification that clients of version 1 send; others are ignored.
_NOTIFICATIONS: Final = frozenset({"session/cancel"})
_encoder: Final = msgspec.json.Encoder()


class AcpDialect(ForeignDialect):
    """The connection of one client: its sessions, with one prompt of each at a time."""

    transport: ClassVar[str] = methods.TRANSPORT

    def prepare(self) -> None:
        """Start without sessions, and require turns to be paid for before they begin."""
        self.demand_payments()
        # The unanswered prompt of each session.
        self._prompts: dict[str, Prompt] = {}
        # The refused prompt of each session whose response waits for a payment.
        self._unpaid: dict[str, Prompt] = {}
        # Responses in the sessions that another connection requested.
        self._followed: dict[str, Prompt] = {}
        self._submit_session = ""
        self._methods: dict[str, Method] = {
            "initialize": self._initialize,
            "session/new": partial(methods.new_session, self),
            "session/list": partial(methods.list_sessions, self),
            "session/load": self._load_session,
            "session/resume": self._resume_session,
            "session/close": self._close_session,
            "session/prompt": self._prompt,
            "session/cancel": self._cancel,
            "prompt/submit": self._submit,
            "chat/submit": self._submit,
            "tools/list": partial(methods.list_tools, self),
            "tools/call": partial(methods.call_tool, self),
        }

    @property
    def headers(self) -> Iterable[tuple[bytes, bytes]]:
        """The header that names the connection, as ACP's transport requires."""
        return [(b"acp-connection-id", uuid.uuid4().hex.encode())]

    # --- Client to server ---

    async def receive(self, frame: str | bytes) -> None:
        """Process a request, a notification, or the answer to one of our requests.

        Only requests (JSON-RPC 2.0 §4.1) and unreadable frames are answered.
        """
        try:
            message = read.read_rpc(frame)
        except read.RpcError as error:
            self._refuse(None, error)
            return
        try:
            if message.method is None:
                await self._take_answer(message)
                return
            if message.id is not msgspec.UNSET or message.method in _NOTIFICATIONS:
                result = await self._method(message.method)(message)
            else:
                return
        except (read.RpcError, RemoteProtocolError) as error:
            refused = error if isinstance(error, read.RpcError) else read.RpcError.of(error)
            if message.method is None or message.id is msgspec.UNSET:
                logger.info("an answer or a notification was refused: %s", refused.message)
            else:
                self._refuse(message.id, refused)
            return
        if result is not None and message.id is not msgspec.UNSET:
            self.send_json(write.success(message.id, result))

    def _method(self, name: str) -> Method:
        """Return the handler of a method; raises RpcError method not found."""
        if (method := self._methods.get(name)) is None:
            raise read.RpcError(read.METHOD_NOT_FOUND, f"Unknown method: {name!r}.")
        return method

    def _refuse(self, request_id: RpcId, error: read.RpcError) -> None:
        self.send_json(write.failure(request_id, error.body()))

    async def _initialize(self, message: Rpc) -> dict[str, Any]:
        return methods.initialize(message, self.agent)

    async def _load_session(self, message: Rpc) -> dict[str, Any]:
        """Send the messages of a session, and resume it from there."""
        session_id = methods.params_of(message, read.SessionParams).session_id
        loaded = await self.own_sessions(methods.EXTENSION).load(session_id)
        for update in methods.history_of(self, session_id, loaded):
            self.send_json(update)
        if session_id not in self.connection.sessions:
            await self.resume_session(session_id, after=(loaded.epoch, loaded.seq))
        return {}

    async def _resume_session(self, message: Rpc) -> dict[str, Any]:
        session_id = methods.params_of(message, read.SessionParams).session_id
        if session_id not in self.connection.sessions:
            await self.resume_session(session_id)
        return {}

    async def _close_session(self, message: Rpc) -> dict[str, Any]:
        session_id = methods.params_of(message, read.SessionParams).session_id
        await self._cancel(message)
        await self.send(ev.SessionEnd(session_id=session_id))
        if (prompt := self._prompts.pop(session_id, None)) is not None:
            for update in prompt.feed(ev.ResponseCancelled(response_id=prompt.response_id)):
                self.send_json(update)
        return {}

    async def _prompt(self, message: Rpc) -> None:
        params = methods.params_of(message, read.PromptParams)
        session_id = params.session_id
        self._check_free(session_id)
        if params.token is not None and session_id in self._unpaid:
            # The same prompt, resent with its payment, resumes its response.
            prompt = self._unpaid.pop(session_id)
            prompt.answer_to(_id_of(message))
            self._prompts[session_id] = prompt
            try:
                await self.send(methods.payment_of(session_id, prompt.unpaid_id, params.token))
            except RemoteProtocolError:
                # The response still waits for a valid token.
                self._unpaid[session_id] = self._prompts.pop(session_id)
                raise
            return
        inputs = read.inputs_of(params.prompt, session_id)
        link = self.link_of(session_id)
        prompt = Prompt(session_id, request_id=_id_of(message), link=link)
        await self._begin(prompt, inputs, ev.ResponseCreate(), token=params.token)

    async def _submit(self, message: Rpc) -> None:
        """Answer a whole conversation (webagents' dialect)."""
        params = methods.params_of(message, read.SubmitParams)
        if not self._submit_session:
            self._submit_session = await self.open_session(ev.SessionCreate())
        create = ev.ResponseCreate(response=uamp.ResponseConfig(messages=params.messages))
        request_id = _id_of(message)
        prompt = Prompt(
            self._submit_session,
            request_id=request_id,
            is_submitted=True,
            link=self.link_of(self._submit_session),
        )
        await self._begin(prompt, [], create, token=params.token)
        self.send_json(write.notification("prompt/started", {"requestId": str(request_id)}))

    async def _begin(
        self,
        prompt: Prompt,
        inputs: list[uamp.InputEvent],
        create: ev.ResponseCreate,
        *,
        token: str | None,
    ) -> None:
        session_id = prompt.session_id
        self._check_free(session_id)
        self._prompts[session_id] = prompt
        try:
            prompt.response_id = await methods.begin(self, session_id, inputs, create, token=token)
        except RemoteProtocolError:
            del self._prompts[session_id]
            raise

    def _check_free(self, session_id: str) -> None:
        """Raise RpcError if the session has an unanswered prompt."""
        if session_id in self._prompts:
            raise read.RpcError(read.INVALID_REQUEST, "A prompt of this session is being answered.")

    async def _cancel(self, message: Rpc) -> None:
        params = methods.params_of(message, read.SessionParams)
        prompt = self._prompts.get(params.session_id) or self._unpaid.get(params.session_id)
        if prompt is not None:
            await self.send(
                ev.ResponseCancel(session_id=params.session_id, response_id=prompt.response_id)
            )

    async def _take_answer(self, message: Rpc) -> None:
        """Process the client's answer to `session/request_permission`, which gets no reply."""
        if (decision := methods.decision_of(message)) is not None:
            await self.send(decision)

    # --- Server to client ---

    def frames(self, event: Event) -> Iterator[str]:
        """Yield the protocol's messages for an event."""
        for message in self._messages(event, event.session_id or ""):
            yield _encoder.encode(message).decode()

    def _messages(self, event: Event, session_id: str) -> Iterator[dict[str, Any]]:
        if (lost := lost_session(event)) is not None:
            yield from self._report_lost(session_id, lost)
            return
        prompt = self._prompt_of(event, session_id)
        if prompt is None:
            return
        yield from prompt.feed(event)
        if prompt.is_unpaid:
            self._unpaid[session_id] = prompt
        if prompt.is_answered:
            self._prompts.pop(session_id, None)
        if isinstance(event, ENDS):
            self._followed.pop(prompt.response_id, None)
            if self._unpaid.get(session_id) is prompt:
                # The payment came too late: resending the prompt starts a new turn.
                del self._unpaid[session_id]

    def _prompt_of(self, event: Event, session_id: str) -> Prompt | None:
        """Return the prompt of an event; for another connection's response, one without request."""
        response_id = getattr(event, "response_id", None)
        if response_id is None:
            return self._prompts.get(session_id) if isinstance(event, ev.PaymentError) else None
        for prompts in (self._prompts, self._unpaid):
            prompt = prompts.get(session_id)
            if prompt is not None and prompt.response_id == response_id:
                return prompt
        if isinstance(event, DEMANDS) and self.is_private(session_id):
            # Delegated work asks in the chat of the prompt that it is done for.
            return self._prompts.get(session_id) or self._unpaid.get(session_id)
        begins = isinstance(event, (ev.ResponseCreated, *ENDS))
        if begins and response_id not in self._followed and self.is_private(session_id):
            link = self.link_of(session_id)
            prompt = Prompt(session_id, response_id=response_id, link=link)
            self._followed[response_id] = prompt
        return self._followed.get(response_id)

    def _report_lost(self, session_id: str, error: RemoteProtocolError) -> Iterator[dict[str, Any]]:
        """Report a lost session, in the answer to its prompt and in a notification."""
        self._unpaid.pop(session_id, None)
        if (prompt := self._prompts.pop(session_id, None)) is not None:
            yield from prompt.fail(error)
        yield write.session_lost(session_id, read.RpcError.of(error).body())


def _id_of(message: Rpc) -> RpcId:
    return None if message.id is msgspec.UNSET else message.id


application: Final = SocketApplication(AcpDialect)
