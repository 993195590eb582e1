"""Conversion of a response's events to updates of its task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gateway_app.a2a.tasks.artifacts import (
    artifact_of,
    item_of,
    pieces_of,
    value_artifact,
    value_of,
)
from gateway_app.a2a.tasks.snapshot import history_of
from gateway_app.a2a.tasks.status import status_of, timestamp
from gateway_app.a2a.tasks.task import ArtifactUpdate, StatusUpdate, Task, TaskStatus
from gateway_app.types.appended_text import AppendedText, TextReplacedError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import uamp
    from gateway_app.a2a.tasks.artifacts import Link, Piece
    from gateway_app.a2a.tasks.task import TaskArtifact, TaskUpdate
    from gateway_app.types.stored_response import StoredResponse
    from uamp.events import Event


class TaskWriter:
    """Converts the events of one response to updates of its task.

    Used by the request's task only. `refusal` is the last payment error. If the client
    `accepts_data`, a text that is a value is sent as that value instead.
    """

    def __init__(
        self, task_id: str, context_id: str, *, link: Link, accepts_data: bool = True
    ) -> None:
        self.has_ended = False
        self.refusal: ev.PaymentError | None = None
        self.task_id, self._context_id = task_id, context_id
        self._link, self._accepts_data = link, accepts_data
        self._text = AppendedText()
        # The pieces that the client has, each text in the parts it was sent in, and the unsent
        # text.
        self._pieces: list[list[str] | uamp.MediaContent] = []
        self._unsent: list[str] = []
        # Whether the client has artifacts, also ones that were replaced since.
        self._has_sent = False

    def initial_task(self, stored: StoredResponse, *, history_length: int | None = None) -> Task:
        """Return the task as the first event of a stream, with the text fed so far.

        The updates that follow bring the rest, so the task has not ended yet.
        """
        status = status_of(stored)
        if stored.has_ended or stored.status == "waiting":
            status = TaskStatus(state="working", timestamp=timestamp(stored))
        pieces = enumerate(map(_whole, self._pieces))
        return Task(
            id=stored.id,
            context_id=stored.thread,
            status=status,
            artifacts=tuple(artifact_of(stored.id, n, piece, self._link) for n, piece in pieces),
            history=history_of(stored, self._link, history_length),
            signature=stored.signature if status.state == "completed" else None,
        )

    def feed(self, events: Sequence[Event]) -> Iterator[TaskUpdate]:
        """Yield the artifacts that events begin or continue; consecutive texts are joined."""
        for event in events:
            match event:
                case ev.ResponseDelta(delta=ev.Delta(type="text") as delta):
                    self._add(delta.text or "", event.offset)
                case ev.ResponseDelta(delta=ev.Delta() as delta):
                    if (item := item_of(delta)) is not None:
                        yield from self._flush()
                        yield self._begin(item)
                case ev.ResponseDone(response=ev.ResponseOutput() as output):
                    yield from self._flush()
                    yield from self._finish(output.output)
                    self.has_ended = True
                case ev.ResponseError() | ev.ResponseCancelled():
                    self.has_ended = True
                case ev.PaymentError():
                    self.refusal = event
                case ev.PaymentAccepted():
                    self.refusal = None
        yield from self._flush()

    def _add(self, text: str, offset: int | None) -> None:
        """Queue text for the next update; text that differs replaces all text before it."""
        try:
            self._unsent.append(self._text.append(text, offset))
        except TextReplacedError:
            self._text, self._pieces = AppendedText(), []
            self._unsent = [self._text.append(text, 0)]

    def _flush(self) -> Iterator[TaskUpdate]:
        text, self._unsent = "".join(self._unsent), []
        if not text:
            return
        last = self._pieces[-1] if self._pieces else None
        if isinstance(last, list):
            last.append(text)
            yield self._update(len(self._pieces) - 1, text, append=True)
        else:
            yield self._begin(text)

    def _begin(self, piece: Piece) -> ArtifactUpdate:
        self._pieces.append([piece] if isinstance(piece, str) else piece)
        return self._update(len(self._pieces) - 1, piece)

    def status(self, stored: StoredResponse) -> StatusUpdate:
        """Return the status after the last event, which ends the stream."""
        return StatusUpdate(
            task_id=self.task_id,
            context_id=self._context_id,
            status=status_of(stored, refusal=self.refusal),
            final=True,
            signature=stored.signature,
            is_ai_made=self._has_sent,
        )

    def _finish(self, output: Sequence[uamp.ContentItem]) -> Iterator[TaskUpdate]:
        """Yield the parts of a finished answer that were not sent, or were sent differently.

        A client that joined midway has received all the text as one piece.
        """
        for number, piece in enumerate(pieces_of(output)):
            value = value_of(piece) if self._accepts_data else None
            sent_piece = _whole(self._pieces[number]) if number < len(self._pieces) else ""
            if value is not None:
                yield self._updated(value_artifact(self.task_id, number, value))
            elif sent_piece != piece and (isinstance(sent_piece, str) or isinstance(piece, str)):
                yield self._update(number, piece)

    def _update(self, number: int, piece: Piece, *, append: bool = False) -> ArtifactUpdate:
        artifact = artifact_of(self.task_id, number, piece, self._link)
        return self._updated(artifact, append=append, last_chunk=not isinstance(piece, str))

    def _updated(
        self, artifact: TaskArtifact, *, append: bool = False, last_chunk: bool = True
    ) -> ArtifactUpdate:
        self._has_sent = True
        return ArtifactUpdate(
            task_id=self.task_id,
            context_id=self._context_id,
            artifact=artifact,
            append=append,
            last_chunk=last_chunk,
        )


def _whole(sent_piece: list[str] | uamp.MediaContent) -> Piece:
    return "".join(sent_piece) if isinstance(sent_piece, list) else sent_piece
