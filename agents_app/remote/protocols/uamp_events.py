"""The events of a remote agent over UAMP, whatever the transport (UAMP §6)."""

from agents_app.remote.onward import cost_in
from agents_app.remote.protocols.answers import RemoteAnswer
from agents_app.remote.protocols.server import RemoteCaller
from uamp import RemoteProtocolError, decode
from uamp.errors import ErrorCode as UampCode
from uamp.events import (
    Delta,
    ErrorDetail,
    Event,
    PaymentError,
    PaymentRequired,
    Progress,
    ResponseCancelled,
    ResponseCreated,
    ResponseDelta,
    ResponseDone,
    ResponseError,
    ResponseOutput,
    SessionCreated,
    SessionError,
    Thinking,
    ToolApprovalRequired,
    ToolCall,
    UsageDelta,
)
from uamp.types.content import (
    FileContent,
    ImageContent,
    MediaUrl,
    TextContent,
    ToolCallContent,
    ToolCallData,
    VideoContent,
    media_of,
)
from uamp.types.session import UsageStats
from upp import ErrorCode, LLMRequest, StreamEvent
from upp.conversation.turn import TokenUsage
from upp.providers.http.failures import Failures

_CODES = {
    UampCode.UNAUTHORIZED: ErrorCode.AUTHENTICATION_FAILED,
    UampCode.TOKEN_EXPIRED: ErrorCode.AUTHENTICATION_FAILED,
    UampCode.FORBIDDEN: ErrorCode.AUTHENTICATION_FAILED,
    UampCode.AGENT_NOT_FOUND: ErrorCode.MODEL_NOT_FOUND,
    UampCode.AGENT_DISABLED: ErrorCode.MODEL_NOT_FOUND,
    UampCode.AGENT_OFFLINE: ErrorCode.NETWORK_ERROR,
    UampCode.UNAVAILABLE: ErrorCode.NETWORK_ERROR,
    UampCode.TIMEOUT: ErrorCode.TIMEOUT,
    UampCode.RATE_LIMITED: ErrorCode.RATE_LIMITED,
    UampCode.RATE_LIMIT_EXCEEDED: ErrorCode.RATE_LIMITED,
    UampCode.CONTEXT_LENGTH_EXCEEDED: ErrorCode.CONTEXT_LENGTH_EXCEEDED,
    UampCode.CONTENT_FILTERED: ErrorCode.CONTENT_FILTERED,
    UampCode.PAYMENT_REQUIRED: ErrorCode.QUOTA_EXCEEDED,
    UampCode.PAYMENT_TIMEOUT: ErrorCode.QUOTA_EXCEEDED,
    UampCode.INVALID_EVENT: ErrorCode.INVALID_REQUEST,
    UampCode.EVENT_TOO_LARGE: ErrorCode.INVALID_REQUEST,
    UampCode.REQUEST_REFUSED: ErrorCode.INVALID_REQUEST,
    UampCode.UNSUPPORTED_PARAMETER: ErrorCode.INVALID_REQUEST,
    UampCode.TOO_MANY_STEPS: ErrorCode.INVALID_REQUEST,
    UampCode.TOO_MANY_HOPS: ErrorCode.INVALID_REQUEST,
    # These are caused by the asker and are not the agent's fault (agents_app.remote.health).
    UampCode.ANSWER_TOO_LONG: ErrorCode.INVALID_REQUEST,
    UampCode.INVALID_OUTPUT: ErrorCode.INVALID_REQUEST,
    UampCode.INVALID_TOOL_RESULT: ErrorCode.INVALID_REQUEST,
    UampCode.STEP_REFUSED: ErrorCode.INVALID_REQUEST,
}
_STOPS = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use"}


def provider_code(code: str) -> ErrorCode:
    """Return the provider error code for a UAMP error code."""
    return _CODES.get(code, ErrorCode.PROVIDER_ERROR)  # type: ignore[call-overload,no-any-return]


class UampAnswer(RemoteAnswer):
    """The first response of a session; responses of other agents are ignored."""

    response_id: str | None = None
    session_id: str | None = None

    def __init__(self, server: RemoteCaller, request: LLMRequest, failures: Failures) -> None:
        super().__init__(server, request, failures)
        # The current thought: its pieces, as the other side counts them.
        self._thought: list[str] = []

    def add(self, data: bytes) -> list[StreamEvent]:
        """See Answer."""
        if data.strip() == b"[DONE]":
            self.done = True
            return []
        try:
            event = decode(data, sender="server")
        except RemoteProtocolError as error:
            raise self.invalid(f"an invalid UAMP event: {error.message}") from error
        return self.take(event)

    def take(self, event: Event) -> list[StreamEvent]:
        """Process a UAMP event and return its stream events; raises UPPError for a failure."""
        if self.complete:
            return []
        match event:
            case SessionError(error=ErrorDetail(code=UampCode.TOKEN_EXPIRING)):
                return []
            case SessionError():
                code = provider_code(event.error.code)
                raise self.failed(event.error.message, code)
            case PaymentRequired():
                raise self.failed(
                    "it accepts payment only over a WebSocket", ErrorCode.QUOTA_EXCEEDED
                )
            case PaymentError():
                message = f"it refused the payment: {event.code} {event.message}"
                raise self.failed(message, ErrorCode.QUOTA_EXCEEDED)
            case SessionCreated() | ResponseCreated():
                self._begun(event)
                return []
            case Progress() | ToolApprovalRequired():
                return self._progress(event)
        named = getattr(event, "response_id", None)
        if named is not None and named != self.response_id:
            if self.response_id is None:
                raise self.invalid("an event of a response that had not begun")
            return []
        return self._of_response(event)

    def _begun(self, event: SessionCreated | ResponseCreated) -> None:
        if isinstance(event, SessionCreated):
            self.session_id = event.session_id or event.session.id
        else:
            self.response_id = self.response_id or event.response_id

    def _of_response(self, event: Event) -> list[StreamEvent]:
        match event:
            case UsageDelta():
                self.usage = self.usage + _tokens(event.delta)
            case ResponseDelta(delta=Delta(type="text") as delta):
                return self.say_at(delta.text or "", event.offset)
            case ResponseDelta():
                return self._delta(event.delta)
            case Thinking(redacted=False):
                return self._thinking(event)
            case ToolCall():
                return self.call(event.call_id, event.name, event.arguments)
            case ResponseDone():
                return self._ended(event.response or ResponseOutput(id="", status="completed"))
            case ResponseCancelled():
                raise self.failed("the answer was cancelled on its server", ErrorCode.CANCELLED)
            case ResponseError():
                code = provider_code(event.error.code)
                raise self.failed(event.error.message, code)
        return []

    def _thinking(self, event: Thinking) -> list[StreamEvent]:
        if event.is_delta:
            self._thought.append(event.content)
            return self.think(event.content)
        shown, self._thought = "".join(self._thought), [event.content]
        if shown and event.content.startswith(shown):
            # The whole thought, sent again after a reconnection.
            return self.think(event.content.removeprefix(shown))
        return self.think(f"{event.content}\n")

    def _delta(self, delta: Delta) -> list[StreamEvent]:
        if isinstance(delta.tool_call, ToolCallData):
            return self.progress(f"uses {delta.tool_call.name}", stage="working")
        label = delta.alt_text or delta.description or delta.filename or ""
        match delta.type:
            case "image":
                return self.link(_address(delta.image), label or "image", is_image=True)
            case "video" | "file":
                return self.link(_address(getattr(delta, delta.type)), label or delta.type)
        return []

    def _progress(self, event: Progress | ToolApprovalRequired) -> list[StreamEvent]:
        if isinstance(event, ToolApprovalRequired):
            return self.progress("A person on its server has to allow a tool.", stage="waiting")
        return self.progress(
            event.message or "",
            stage=event.stage,
            percent=event.percent,
            step=event.step,
            total_steps=event.total_steps,
        )

    def _costs(self, usage: UsageStats) -> None:
        payments = self.server.called.payments
        if payments is not None and usage.cost is not None:
            payments.cost = cost_in(usage.cost.total_cost, usage.cost.currency)

    def _ended(self, done: ResponseOutput) -> list[StreamEvent]:
        events: list[StreamEvent] = []
        if not self.length:
            # An agent may send its whole answer only at the end.
            for item in done.output:
                match item:
                    case TextContent(text=text):
                        events += self.say(text)
                    case ImageContent() | VideoContent() | FileContent():
                        is_image = isinstance(item, ImageContent)
                        label = getattr(item, "filename", "") or ("image" if is_image else "video")
                        events += self.link(_address(media_of(item)), label, is_image=is_image)
        if done.finish_reason == "tool_calls":
            answered = _answered(done)
            for item in done.output:
                if isinstance(item, ToolCallContent):
                    call = item.tool_call
                    if call.id not in answered:
                        events += self.call(call.id, call.name, call.arguments)
        if done.usage is not None:
            self.usage = _tokens(done.usage)
            self._costs(done.usage)
        return events + self.end(_STOPS.get(done.finish_reason or "stop", "end_turn"))


def _answered(done: ResponseOutput) -> set[str]:
    return {item.tool_result.call_id for item in done.output if hasattr(item, "tool_result")}


def _address(medium: object) -> str:
    return medium.url if isinstance(medium, MediaUrl) else str(medium or "")


def _tokens(usage: UsageStats) -> TokenUsage:
    read, written = usage.input_tokens or 0, usage.output_tokens or 0
    return TokenUsage(
        input_tokens=read,
        output_tokens=written,
        total_tokens=read + written,
        cache_read_tokens=usage.cached_tokens or 0,
    )
