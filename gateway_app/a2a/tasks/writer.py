"""The events of a response as updates of its task."""

from __future__ import annotations

from typing import TYPE_CHECKING

import uamp
from gateway_app.a2a.tasks.artifacts import (
    data_artifact,
    item_of,
    medium_artifact,
    medium_part,
    text_artifact,
    text_of,
)
from gateway_app.a2a.tasks.snapshot import history_of
from gateway_app.a2a.tasks.status import status_of, timestamp
from gateway_app.a2a.tasks.task import ArtifactUpdate, StatusUpdate, Task, TaskStatus
from gateway_app.shapes.appended_text import AppendedText, TextReplacedError
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gateway_app.a2a.tasks.artifacts import Link
    from gateway_app.a2a.tasks.task import TaskArtifact, TaskUpdate
    from gateway_app.shapes.stored_response import StoredResponse
    from uamp.events import Event


class TaskWriter:
    """Turns the events of one response into updates of its task.

    The task of the request calls it. `refusal` is the last payment that was not taken.
    """

    def __init__(self, task_id: str, context_id: str, *, link: Link) -> None:
        self.has_ended = False
        self.refusal: ev.PaymentError | None = None
        self.task_id, self._context_id = task_id, context_id
        self._link = link
        self._text = AppendedText()
        # Text that was not sent yet, and whether it continues what was.
        self._pieces: list[str] = []
        self._appends = True
        self._media = 0

    def begun(self, stored: StoredResponse, *, history_length: int | None = None) -> Task:
        """Return the task as the first event of a stream, with the text that was fed.

        What came after it is in the updates that follow, so that it has not ended yet.
        """
        status = status_of(stored)
        if stored.has_ended or stored.status == "waiting":
            status = TaskStatus(state="working", timestamp=timestamp(stored))
        text = self._text.text
        return Task(
            id=stored.id,
            context_id=stored.thread,
            status=status,
            artifacts=(text_artifact(stored.id, text),) if text else (),
            history=history_of(stored, self._link, history_length),
        )

    def feed(self, events: Sequence[Event]) -> Iterator[TaskUpdate]:
        """Yield the artifacts that events begin or continue; texts that came together are one."""
        for event in events:
            match event:
                case ev.ResponseDelta(delta=ev.Delta(type="text") as delta):
                    self._add(delta.text or "", event.offset)
                case ev.ResponseDelta(delta=ev.Delta() as delta):
                    if (item := item_of(delta)) is not None:
                        yield self._medium(item)
                case ev.ResponseDone(response=ev.ResponseOutput() as output):
                    yield from self._flush()
                    yield from self._whole(output.output)
                    self.has_ended = True
                case ev.ResponseError() | ev.ResponseCancelled():
                    self.has_ended = True
                case ev.PaymentError():
                    self.refusal = event
                case ev.PaymentAccepted():
                    self.refusal = None
        yield from self._flush()

    def _add(self, text: str, offset: int | None) -> None:
        """Keep a piece of text for the next update; one that differs replaces all before it."""
        if self._text.length == 0:
            self._appends = False
        try:
            self._pieces.append(self._text.append(text, offset))
        except TextReplacedError:
            self._text, self._appends = AppendedText(), False
            self._pieces = [self._text.append(text, 0)]

    def _flush(self) -> Iterator[TaskUpdate]:
        if text := "".join(self._pieces):
            yield self._piece(text, append=self._appends)
            self._appends = True
        self._pieces = []

    def status(self, stored: StoredResponse) -> StatusUpdate:
        """Return the status after the last event; nothing follows it on a stream."""
        return StatusUpdate(
            task_id=self.task_id,
            context_id=self._context_id,
            status=status_of(stored, refusal=self.refusal),
            final=True,
        )

    def _whole(self, output: Sequence[uamp.ContentItem]) -> Iterator[TaskUpdate]:
        """Yield what a finished answer has that was not sent."""
        text = text_of(output)
        if text != self._text.text:
            yield self._piece(text, append=False)
        for artifact in data_artifact(self.task_id, text):
            yield self._update(artifact)
        media = [item for item in output if uamp.media_of(item) is not None]
        for item in media[self._media :]:
            yield self._medium(item)

    def _piece(self, text: str, *, append: bool) -> ArtifactUpdate:
        return self._update(text_artifact(self.task_id, text), append=append)

    def _medium(self, item: uamp.ContentItem) -> ArtifactUpdate:
        number, self._media = self._media, self._media + 1
        part = medium_part(item, self._link)
        return self._update(medium_artifact(self.task_id, number, part))

    def _update(self, artifact: TaskArtifact, *, append: bool = False) -> ArtifactUpdate:
        return ArtifactUpdate(
            task_id=self.task_id,
            context_id=self._context_id,
            artifact=artifact,
            append=append,
            last_chunk=not artifact.artifact_id.endswith("-text"),
        )
