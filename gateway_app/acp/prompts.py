"""A prompt and its response, as the messages that the client receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

import uamp
from gateway_app.acp import read, write
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gateway_app.acp.read import RpcId
    from uamp.events import Event

ENDS: Final = (ev.ResponseDone, ev.ResponseError, ev.ResponseCancelled)
DEMANDS: Final = (
    ev.ToolApprovalRequired,
    ev.PaymentRequired,
    ev.PaymentAccepted,
    ev.PaymentError,
)
"""Events of demands, which delegated work makes too."""


class Prompt:
    """One prompt of a session, until it is answered.

    A prompt without a request follows another connection's response: its updates are sent, but no
    answer. `is_submitted` marks a prompt of webagents' dialect (`prompt/submit`); with `is_whole`,
    for a client that accepts no updates, the result carries the text as `content`. `is_answered` is
    set with the answer, and `is_unpaid` if that is a demand for payment, for which the response
    `unpaid_id` waits: this one, or work that it delegated.
    """

    def __init__(
        self,
        session_id: str,
        *,
        request_id: RpcId | msgspec.UnsetType = msgspec.UNSET,
        response_id: str = "",
        is_submitted: bool = False,
        is_whole: bool = False,
        link: Callable[[str], str],
    ) -> None:
        self.session_id = session_id
        self.request_id = request_id
        self.is_submitted = is_submitted
        self.is_whole = is_whole
        self.is_answered = False
        self.is_unpaid = False
        self._link = link
        self._writer: write.PromptWriter | None = None
        self.response_id = response_id
        self.unpaid_id = ""
        # The demand for payment, until a payment is accepted.
        self._demand: dict[str, Any] | None = None

    def answer_to(self, request_id: RpcId) -> None:
        """Redirect the answer to another request: the same prompt, resent with its payment."""
        self.request_id = request_id
        self.is_answered = self.is_unpaid = False

    def feed(self, event: Event) -> Iterator[dict[str, Any]]:
        """Yield the messages for an event of the response."""
        writer = self._writer = self._writer or write.PromptWriter(
            self.response_id, link=self._link
        )
        for content_update in writer.feed(event):
            yield self._notification(content_update)
        match event:
            case ev.ToolApprovalRequired():
                for content_update in writer.call(event.call_id, event.name, event.arguments):
                    yield self._notification(content_update)
                yield write.permission_request(event, self.session_id)
            case ev.PaymentRequired():
                self.expect_payment(event)
                yield from self._refuse_unpaid("Payment token required")
            case ev.PaymentAccepted():
                self._demand = None
            case ev.PaymentError(code=code, message=message) if self._demand is not None:
                # The response still waits, for another token.
                yield from self._refuse_unpaid(message, payment_error=code)
            case ev.ResponseDone(response=ev.ResponseOutput() as output):
                yield from self._answer({**self._result(output), **write.signed(event.signature)})
            case ev.ResponseCancelled():
                yield from self._answer({"stopReason": "cancelled"})
            case ev.ResponseError(error=error):
                code = ErrorCode(error.code)
                yield from self.fail(
                    RemoteProtocolError(code, error.message, details=error.details)
                )

    def expect_payment(self, event: Event) -> None:
        """Record the demand that the response waits to be paid."""
        if isinstance(event, ev.PaymentRequired):
            self.unpaid_id = event.response_id or self.response_id
            required = msgspec.to_builtins(event.requirements)
            self._demand = {"accepts": required["schemes"]}
            self._demand |= {name: required[name] for name in ("amount", "currency")}
            if agent := (event.requirements.extra or {}).get("agent"):
                self._demand["agent"] = agent
            self._demand["response_id"] = self.response_id or self.unpaid_id

    def fail(self, error: RemoteProtocolError) -> Iterator[dict[str, Any]]:
        """Yield the refusal of the request, if there is one."""
        if self.request_id is not msgspec.UNSET and not self.is_answered:
            self.is_answered = True
            yield write.failure(self.request_id, read.RpcError.of(error).body())

    def _refuse_unpaid(self, message: str, **details: str) -> Iterator[dict[str, Any]]:
        self.is_unpaid = True
        details = {**(self._demand or {}), **details}
        yield from self.fail(
            RemoteProtocolError(ErrorCode.PAYMENT_REQUIRED, message, details=details)
        )

    def _answer(self, result: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if self.request_id is not msgspec.UNSET and not self.is_answered:
            self.is_answered = True
            yield write.success(self.request_id, result)

    def _result(self, output: ev.ResponseOutput) -> dict[str, Any]:
        if self.is_submitted:
            return {"status": "complete", "content": uamp.text_of(output.output)}
        used = write.usage(output.usage)
        result: dict[str, Any] = {"stopReason": write.stop_reason(output)}
        if self.is_whole:
            result["content"] = uamp.text_of(output.output)
        return result | ({"usage": used} if used else {})

    def _notification(self, content_update: dict[str, Any]) -> dict[str, Any]:
        """Convert an update to the client's dialect."""
        if not self.is_submitted:
            return write.update(self.session_id, content_update)
        content = content_update.get("content")
        text = content["text"] if isinstance(content, dict) and "text" in content else ""
        params = {"content": text, "role": "assistant", "update": content_update["sessionUpdate"]}
        return write.notification("prompt/progress", params)
