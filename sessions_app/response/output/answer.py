"""One answer so far: its output, what it used, and whether its row has all of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

import uamp
from agents_app.runtime.offered_tools import run_by_client
from sessions_app.billing.usage import Meter
from sessions_app.store.responses import Flush
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.response.context import RunContext


class AnswerSnapshot(msgspec.Struct, frozen=True):
    """The answer so far, as rows keep it."""

    text: str
    output: Sequence[uamp.ContentItem]
    usage: uamp.UsageStats | None


class RunningAnswer:
    """The answer of one response, as it grows.

    Only the run's task and the tasks of its tools add to it. Any task of the event loop may read
    it; the task that flushes answers calls `flush` and `keep_for_next_flush`.
    """

    def __init__(self, context: RunContext) -> None:
        self._response_id, self._fence = context.response_id, context.fence
        self.builder = uamp.OutputBuilder()
        if context.request.resume:
            self.builder.add(_kept_output(context))
        self.meter = Meter(context.spec, client_tools=run_by_client(context.spec, context.request))
        self.meter.resume(context.usage_before, context.request.resume)
        self._is_flushed = True

    @property
    def text(self) -> str:
        """The text so far."""
        return self.builder.text

    @property
    def thinking(self) -> str:
        """The thoughts so far, joined."""
        items = self.builder.output
        return "\n\n".join(i.thinking for i in items if isinstance(i, uamp.ThinkingContent))

    @property
    def needs_flush(self) -> bool:
        """Whether the row may lack something of the answer."""
        return not self._is_flushed

    def add(self, event: ev.Event) -> None:
        """Add an event to the output, and count what it used."""
        # An answer that fails or is cancelled has used what its inferences used so far.
        self.meter.add(event)
        self.builder.add(event)
        self._is_flushed = False

    def add_text(self, text: str) -> int:
        """Add text to the output; return its offset in code points."""
        builder = self.builder
        offset = builder.offset
        self.meter.wrote(text)
        builder.add_text(text)
        self._is_flushed = False
        return offset

    def spoke(self, ms: int) -> None:
        """Count milliseconds of sound that are sent."""
        self.meter.spoken_ms += ms
        # The sound itself is stored at the end; what it costs is not lost with its process.
        self._is_flushed &= self.meter.spec.pricing.is_free

    def snapshot(self) -> AnswerSnapshot:
        """Return the answer so far."""
        return AnswerSnapshot(self.builder.text, self.builder.output, self.meter.usage)

    def flush(self) -> Flush:
        """Return what the row is to keep; until the next addition nothing needs a flush."""
        self._is_flushed = True
        return Flush(
            response_id=self._response_id,
            fence=self._fence,
            output=self.builder.output,
            usage=self.meter.usage,
            under_way=None if self.meter.spec.pricing.is_free else self.meter.under_way(),
        )

    def keep_for_next_flush(self) -> None:
        """Have the next flush write the answer again: its row may have an older one."""
        self._is_flushed = False


def _kept_output(context: RunContext) -> ev.ResponseDone:
    """Return the kept output of a continued response, as the builder takes it in."""
    output = ev.ResponseOutput(
        id=context.response_id, status="in_progress", output=tuple(context.request.resume)
    )
    return ev.ResponseDone(response_id=context.response_id, response=output)
