"""A run of a connected agent: its daemon answers over the socket on which it registered.

The daemon is another program, so its events are not trusted: ids are replaced with this server's,
text is made storable, usage is capped by the bytes sent and received, and an event that breaks the
protocol ends the answer with a typed error. If a daemon is lost before it has sent anything,
another one is asked, unless the agent does not start over; after that, its loss ends the answer.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import msgspec
from django.utils.translation import gettext_noop

from agents_app.runtime.connected.calls import DaemonCalls
from agents_app.runtime.connected.claims import DaemonClaims
from agents_app.runtime.connected.daemons import DaemonLost, starts_over
from agents_app.runtime.failures import AgentError
from agents_app.runtime.run_request import RunFinished
from uamp.errors import ErrorCode, PaymentErrorCode
from uamp.events import (
    Delta,
    PaymentError,
    PaymentRequired,
    Progress,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    Thinking,
    ToolCall,
    ToolCallDone,
    ToolProgress,
    UsageDelta,
)
from uamp.storable_text import storable
from uamp.types.content import TextContent, ToolCallData, ToolResultData
from uamp.types.session import UsageStats

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import TypeAlias

    from agents_app.runtime.connected.daemons import DaemonAnswer, Daemons
    from agents_app.runtime.run_request import RunRequest, ToolBroker
    from agents_app.selectors import AgentSpec
    from uamp.events import Event

    Receive: TypeAlias = Callable[[Event | str], Awaitable[None] | None]

TRIES: Final = 4
"""The number of daemons tried for one answer when one after another is lost."""
DISCONNECTED: Final = gettext_noop("The agent's program disconnected during an answer.")
"""What its owner and operators read of an interrupted answer."""
_WORDS_CHARS: Final = 1000


async def run_connected(
    spec: AgentSpec,
    request: RunRequest,
    receive: Receive,
    *,
    broker: ToolBroker,
    daemons: Daemons,
) -> RunFinished:
    """Have a daemon answer a request; pass text and events to `receive` as `run_agent` does.

    Raises AgentError, DaemonElsewhere before anything was received, and whatever `receive` raises.
    """
    if request.resume or request.checkpoint is not None:
        # Only the lost daemon knew how to continue.
        raise _interrupted(spec)
    await broker.admit_step()
    for _ in range(TRIES):
        answer = await daemons.ask()
        broker.inference_sent()
        relay = _Relay(spec, request, receive, broker, answer)
        try:
            finished = await relay.run()
        except DaemonLost:
            answer.close(cancel=False)
            if relay.has_begun or not starts_over(spec):
                raise _interrupted(spec) from None
        except BaseException:
            answer.close(cancel=True)
            raise
        else:
            answer.close(cancel=relay.is_unfinished)
            return finished
    raise AgentError(f"{spec.name} is not connected.", code=ErrorCode.AGENT_OFFLINE)


def _interrupted(spec: AgentSpec) -> AgentError:
    return AgentError(
        f"The connection to {spec.name} was lost during the answer. The text so far is kept;"
        " ask again.",
        code=ErrorCode.INTERRUPTED,
        cause=DISCONNECTED,
    )


class _Relay:
    """Translates one answer of one daemon into the events of the response.

    Only the run's task calls it.
    """

    def __init__(
        self,
        spec: AgentSpec,
        request: RunRequest,
        receive: Receive,
        broker: ToolBroker,
        answer: DaemonAnswer,
    ) -> None:
        # Whether the daemon has sent any part of the answer.
        self.has_begun = False
        self._response_id = request.response_id
        self._receive, self._answer = receive, answer
        self._claims = DaemonClaims(spec)
        self._calls = DaemonCalls(spec, request, broker, answer, self._claims)
        self._is_announced = False
        # Whether the daemon has demanded a payment and was refused.
        self._has_demanded = False

    @property
    def is_unfinished(self) -> bool:
        """Whether the response ended at the client's calls before the daemon was done."""
        return self._calls.was_handed_over

    async def run(self) -> RunFinished:
        """Return the end of the run; raises DaemonLost, AgentError and errors of `receive`."""
        calls = self._calls
        try:
            while True:
                event = await self._next()
                await self._show_calls()
                if isinstance(event, ResponseDone):
                    return await self._done(event)
                if not self._has_taken_control(event):
                    self.has_begun = True
                    await self._take(event)
                if calls.was_handed_over:
                    return self._finished("tool_calls")
        finally:
            await calls.stop()

    async def _next(self) -> Event:
        """Return the next event, or raise the error of a client tool's task."""
        self._claims.event()
        calls = self._calls
        await self._show_calls()
        if not calls.result_tasks:
            return await self._answer.next()
        reading = asyncio.ensure_future(self._answer.next())
        try:
            while not reading.done():
                await asyncio.wait(
                    [reading, *calls.result_tasks], return_when=asyncio.FIRST_COMPLETED
                )
                calls.reap()
                await self._show_calls()
            # A call may have ended while the last event was passed to the response.
            calls.reap()
            return reading.result()
        finally:
            reading.cancel()

    async def _show_calls(self) -> None:
        for event in self._calls.take_events():
            await self._give(event)

    def _has_taken_control(self, event: Event) -> bool:
        """Process an event that is not part of the answer; return whether it was one."""
        match event:
            case ResponseCreated():
                if self._is_announced or self.has_begun:
                    self._claims.fail("response.created after the answer had begun")
                self._is_announced = True
            case ResponseError(error=error):
                self._claims.fail(f"{error.code}: {error.message}")
            case ResponseCancelled():
                self._claims.fail("it cancelled the answer")
            case ToolCallDone():
                # Clients receive their own with the result of the call.
                return True
            case PaymentRequired():
                # The asker has agreed only to the price in the agent's row.
                if self._has_demanded:
                    self._claims.fail("a second payment.required")
                self._has_demanded = True
                refused = PaymentError(
                    response_id=self._response_id,
                    code=PaymentErrorCode.PAYMENT_FAILED,
                    message="A connected agent is paid by the price that its owner set here.",
                    can_retry=False,
                )
                self._answer.send(refused)
            case _:
                return False
        return True

    async def _take(self, event: Event) -> None:
        match event:
            case ResponseDelta(delta=delta, offset=offset):
                await self._delta(delta, offset)
            case Thinking(content=""):
                # An empty thought would become an empty item of the output.
                pass
            case Thinking():
                thought = self._thought(event)
                self._claims.thought(event.content, thought.stage or "", is_delta=event.is_delta)
                await self._give(thought)
            case Progress():
                await self._give(self._progress(event))
            case ToolCall():
                await self._calls.ask(event)
            case UsageDelta(delta=usage):
                await self._use(usage)
            case _:
                self._claims.fail(f"{type(event).__name__} is not part of an answer")

    async def _delta(self, delta: Delta, offset: int | None) -> None:
        match delta:
            case Delta(type="text", text=str() as text):
                await self._text(text, offset)
            case Delta(tool_call=ToolCallData() as call):
                admitted_call = await self._calls.admit_daemon_call(call)
                await self._show(Delta(type="tool_call", tool_call=admitted_call))
            case Delta(tool_result=ToolResultData() as result):
                ended = self._calls.ended(result)
                await self._show(Delta(type="tool_result", tool_result=ended))
                await self._give(ToolCallDone(call_id=ended.call_id, response_id=self._response_id))
            case Delta(tool_progress=ToolProgress() as progress):
                if progress.call_id not in self._calls:
                    self._claims.fail("the progress of a call that was not made")
                self._claims.wrote(progress.text)
                shown_progress = ToolProgress(
                    call_id=progress.call_id,
                    text=storable(progress.text),
                    replace=progress.replace,
                    status=_words(progress.status),
                    progress_percent=progress.progress_percent,
                )
                await self._show(Delta(type="tool_progress", tool_progress=shown_progress))
            case _:
                self._claims.fail(f"a delta of the type {delta.type[:40]}, which is not accepted")

    async def _text(self, text: str, offset: int | None) -> None:
        claims = self._claims
        if offset is not None and offset != claims.text_chars:
            claims.fail(f"text at offset {offset}, where {claims.text_chars} was expected")
        claims.text_chars += len(text)
        claims.wrote(text)
        if text:
            await self._give(storable(text))

    def _thought(self, event: Thinking) -> Thinking:
        return Thinking(
            response_id=self._response_id,
            content=storable(event.content),
            stage=_words(event.stage),
            redacted=event.redacted,
            is_delta=event.is_delta,
        )

    def _progress(self, event: Progress) -> Progress:
        is_tools = event.target == "tool" and event.target_id in self._calls
        return msgspec.structs.replace(
            event,
            event_id=None,
            timestamp=None,
            session_id=None,
            seq=None,
            target="tool" if is_tools else "response",
            target_id=event.target_id if is_tools else self._response_id,
            stage=_words(event.stage),
            message=_words(event.message),
            response_id=self._response_id,
        )

    async def _use(self, claimed: UsageStats) -> None:
        bounded = self._claims.bounded(claimed, sent_bytes=self._answer.sent_bytes)
        if bounded is not None:
            await self._give(UsageDelta(response_id=self._response_id, delta=bounded))

    async def _done(self, event: ResponseDone) -> RunFinished:
        """Process the end of the answer and any output that was not streamed."""
        response, claims = event.response, self._claims
        output = () if response is None else response.output
        whole = "".join(item.text for item in output if isinstance(item, TextContent))
        if response is not None and response.status not in {"completed", "in_progress"}:
            # Operators read the cause, and few of them may read what was said in a chat.
            detail = "" if claims.text_chars else whole
            claims.fail(
                f"{response.status}: {response.error.message if response.error else detail}"
            )
        if self._calls.result_tasks:
            claims.fail("an end before the results of the tools that it called")
        if whole and not claims.text_chars:
            self.has_begun = True
            await self._text(whole, None)
        if not self.has_begun:
            claims.fail("an end without an answer")
        if response is not None and response.usage is not None and claims.used == UsageStats():
            await self._use(response.usage)
        reason = None if response is None else _words(response.finish_reason)
        return self._finished(reason or "stop")

    def _finished(self, reason: str) -> RunFinished:
        return RunFinished(usage=self._claims.used, finish_reason=reason[:40], steps=1, model="")

    async def _show(self, delta: Delta) -> None:
        await self._give(ResponseDelta(response_id=self._response_id, delta=delta))

    async def _give(self, event: Event | str) -> None:
        if (receiving := self._receive(event)) is not None:
            await receiving


def _words(text: str | None) -> str | None:
    return None if text is None else storable(text)[:_WORDS_CHARS]
