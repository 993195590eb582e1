"""Conversion of A2A client messages to UAMP events: a turn, or answers to a task."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final, NoReturn

import msgspec

import uamp
from gateway_app.a2a.tasks import payments
from gateway_app.types.client_turn import ClientTurn
from gateway_app.types.follow_up import ClientFollowUp, FollowUpPart, MediumReference
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev
from uamp.types.bounds import Count
from uamp.types.content import IMAGE_FORMATS
from uamp.types.inline_media import is_data_url, media_type_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import TypeAlias

    from gateway_app.a2a.tasks.task import TaskPart
    from gateway_app.types.webhook_receiver import WebhookReceiver
    from uamp.events import Event, InputEvent

    Asked: TypeAlias = Sequence[Event]

Id = Annotated[str, msgspec.Meta(min_length=1, max_length=256)]
HistoryLength = Count

CONTEXT_EXTENSION: Final = "a2a"
"""The session extension that stores the contextId chosen by the client."""
TOOLS: Final = "uamp_tools"
"""Message metadata: the tools that the client runs, declared in the format of OpenAI's API."""
REPLY: Final = "uamp_reply"
"""Message metadata: `message` requests a completed answer as a message, not as a task."""
_SHOWN: Final = IMAGE_FORMATS | {"jpg", "pjpeg", "x-png"}
_YES: Final = frozenset({"yes", "y", "ok", "allow", "approve", "approved"})
_NO: Final = frozenset({"no", "n", "deny", "refuse", "reject", "rejected"})


@dataclass(frozen=True, kw_only=True, slots=True)
class SentMessage:
    """A message of a client, with its options for the answer.

    Without `blocking`, the task is returned as it begins; see `task_of` for `history_length`.
    `receiver` is notified of the task's states. Without `accepts_data`, values are sent as text.
    """

    message_id: str
    parts: tuple[TaskPart, ...]
    context_id: str = ""
    task_id: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    blocking: bool = True
    history_length: int | None = None
    receiver: WebhookReceiver | None = None
    accepts_data: bool = True

    @property
    def wants_message(self) -> bool:
        """Whether the client wants a completed answer as a message."""
        return self.metadata.get(REPLY) == "message"


def turn_of(sent: SentMessage, *, agent: str) -> ClientTurn:
    """Return the turn that a message begins; raises RemoteProtocolError for an invalid part.

    The same message in the same context yields the same turn.
    """
    inputs = tuple(_input(part) for part in sent.parts)
    tools = _tools(sent.metadata.get(TOOLS))
    extensions = {CONTEXT_EXTENSION: {"contextId": sent.context_id}} if sent.context_id else {}
    digest = hashlib.sha256(msgspec.json.encode((sent.message_id, inputs))).hexdigest()
    config = uamp.ResponseConfig(tools=tools or None, client_tools="wait")
    return ClientTurn(
        session=uamp.SessionCreate(agent=agent, session=uamp.SessionConfig(extensions=extensions)),
        inputs=inputs,
        response=uamp.ResponseCreate(event_id=f"a2a-{digest}", response=config),
        thread=sent.context_id,
    )


def answers_of(sent: SentMessage, questions: Asked, *, task_id: str) -> list[Event]:
    """Return the events with which a message answers the pending questions of a task.

    A payment comes in the metadata. A data part names its call as `callId` and has `result` or
    `approved`; a plain text answers the only open call. Raises RemoteProtocolError for a message
    that answers nothing.
    """
    demands = [event for event in questions if isinstance(event, ev.PaymentRequired)]
    if demands:
        # Delegated work that waits for a payment is paid, or stopped, instead of the task.
        unpaid = demands[0].response_id or task_id
        if payments.is_rejected(sent.metadata):
            return [uamp.ResponseCancel(response_id=unpaid)]
        payment = payments.submitted(sent.metadata, demands[0])
        if payment is None:
            _refuse(f"The task needs a payment: send `{payments.PAYLOAD}` in the metadata.")
        return [uamp.PaymentSubmit(response_id=unpaid, payment=payment)]
    calls = {
        event.call_id: event
        for event in questions
        if isinstance(event, ev.ToolCall | ev.ToolApprovalRequired)
    }
    data = [part.data for part in sent.parts if isinstance(part.data, dict)]
    named = [member for member in data if "callId" in member or "call_id" in member]
    if named:
        return [_named_answer(member, calls) for member in named]
    if len(calls) != 1:
        _refuse("Several calls are open: send a data part with `callId` for each answer.")
    event = next(iter(calls.values()))
    if isinstance(event, ev.ToolCall):
        return [_result(event, sent.parts)]
    if data and "approved" in data[0]:
        return [_decision(event, data[0])]
    return [_spoken(event, sent.parts)]


def follow_up_of(sent: SentMessage, answers: Sequence[Event]) -> ClientFollowUp:
    """Convert a message that answered a task to its form in the task's history.

    A medium is identified by the tool call whose result contains it.
    """
    results = [answer for answer in answers if isinstance(answer, ev.ToolResult)]
    parts: list[FollowUpPart] = []
    media = 0
    for part in sent.parts:
        if part.text is not None:
            parts.append(FollowUpPart(text=part.text))
        elif part.url is None and part.raw is None:
            parts.append(FollowUpPart(data=part.data))
        elif results and results[0].content_items:
            parts.append(
                FollowUpPart(medium=MediumReference(call_id=results[0].call_id, number=media))
            )
            media += 1
    return ClientFollowUp(message_id=sent.message_id, parts=tuple(parts))


def _named_answer(
    data: Mapping[str, Any],
    calls: Mapping[str, ev.ToolCall | ev.ToolApprovalRequired],
) -> Event:
    event = calls.get(str(data.get("callId") or data.get("call_id")))
    if event is None:
        _refuse("`callId` does not match an open call of the task.")
    if isinstance(event, ev.ToolApprovalRequired):
        return _decision(event, data)
    if "result" not in data:
        _refuse("The answer to a tool call needs `result`.")
    result = data["result"]
    return uamp.ToolResult(
        call_id=event.call_id,
        result=result if isinstance(result, str) else data_text(result),
        is_error=data.get("isError") is True or data.get("is_error") is True,
    )


def _decision(event: ev.ToolApprovalRequired, data: Mapping[str, Any]) -> Event:
    approved, reason = data.get("approved"), data.get("reason")
    if not isinstance(approved, bool):
        _refuse("The answer to a request for approval needs `approved`, true or false.")
    return uamp.ToolApprove(
        call_id=event.call_id,
        response_id=event.response_id,
        approved=approved,
        reason=reason if isinstance(reason, str) else None,
    )


def _spoken(event: ev.ToolApprovalRequired, parts: Iterable[TaskPart]) -> Event:
    text = " ".join(part.text for part in parts if part.text).strip().lower().rstrip(".!")
    if text not in _YES | _NO:
        _refuse('Answer "yes" or "no", or send a data part with `approved`, true or false.')
    return uamp.ToolApprove(
        call_id=event.call_id, response_id=event.response_id, approved=text in _YES
    )


def _result(event: ev.ToolCall, parts: Iterable[TaskPart]) -> Event:
    texts: list[str] = []
    media: list[uamp.ContentItem] = []
    for part in parts:
        if part.text is not None:
            texts.append(part.text)
        elif part.url is None and part.raw is None:
            texts.append(data_text(part.data))
        else:
            media.append(_medium(part))
    return uamp.ToolResult(
        call_id=event.call_id, result="\n".join(texts), content_items=tuple(media) or None
    )


def _input(part: TaskPart) -> InputEvent:
    if part.text is not None:
        return uamp.InputText(text=part.text)
    if part.url is None and part.raw is None:
        return uamp.InputText(text=data_text(part.data))
    item = _medium(part)
    match item:
        case uamp.ImageContent():
            return uamp.InputImage(image=item.image, format=item.format)
        case uamp.AudioContent():
            return uamp.InputAudio(audio=item.audio, format=item.format or "wav", is_final=True)
        case uamp.VideoContent():
            return uamp.InputVideo(video=item.video, format=item.format)
    return uamp.InputFile(file=item.file, filename=item.filename, mime_type=item.mime_type)


def _medium(part: TaskPart) -> uamp.MediaContent:
    address = part.url if part.url is not None else part.raw or ""
    is_reference = part.url is not None and not is_data_url(address)
    medium = uamp.MediaUrl(url=address) if is_reference else address
    named = part.media_type or media_type_of(address)
    media_type = named.partition(";")[0].strip().lower()
    kind, _, form = media_type.partition("/")
    match kind:
        case "image" if form in _SHOWN or not part.filename:
            return uamp.ImageContent(image=medium, format=form or None)
        case "audio":
            return uamp.AudioContent(audio=medium, format=form or None)
        case "video":
            return uamp.VideoContent(video=medium, format=form or None)
        case _:
            return uamp.FileContent(
                file=medium,
                filename=part.filename or "file",
                mime_type=media_type or "application/octet-stream",
            )


def _tools(declared: Any) -> tuple[uamp.ToolDefinition, ...]:
    if declared is None:
        return ()
    try:
        return msgspec.convert(declared, tuple[uamp.ToolDefinition, ...])
    except msgspec.ValidationError as error:
        _refuse(f"message.metadata[{TOOLS!r}]: {error}.")


def data_text(data: Any) -> str:
    """Return a value as JSON text, for the agent to read."""
    return msgspec.json.encode(data).decode()


def invalid(message: str) -> RemoteProtocolError:
    """Return the refusal of an invalid parameter."""
    return RemoteProtocolError(ErrorCode.INVALID_EVENT, message)


def _refuse(message: str) -> NoReturn:
    raise invalid(message)
