"""The answer so far: its output, its usage, and whether its row is up to date."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec

import uamp
from agents_app.inferences import InferenceLog
from agents_app.providers.output_limits import enforced_limit
from agents_app.runtime.offered_tools import run_by_client
from sessions_app.billing.meter import Meter
from sessions_app.billing.weights import later_prompts
from sessions_app.store.responses import Flush
from uamp import events as ev

if TYPE_CHECKING:
    from sessions_app.response.context import RunContext


class AnswerSnapshot(msgspec.Struct, frozen=True):
    """The answer so far, in the form stored in rows."""

    text: str
    output: Sequence[uamp.ContentItem]
    usage: uamp.UsageStats | None
    inferences: list[dict[str, Any]] | None


class RunningAnswer:
    """The growing answer of one response.

    Only the run's task and its tools' tasks add to it. Any task of the event loop may read it. The
    task that flushes answers calls `flush` and `keep_for_next_flush`.
    """

    def __init__(self, context: RunContext) -> None:
        self._response_id, self._fence = context.response_id, context.fence
        self.builder = uamp.OutputBuilder()
        if context.request.resume:
            self.builder.add(_kept_output(context))
        about, is_free = (context.spec, context.request), context.spec.pricing.is_free
        self.meter = Meter(
            context.spec,
            client_tools=run_by_client(*about),
            prompts=0 if is_free else later_prompts(*about),
            limit=None if is_free else enforced_limit(context.spec, context.request.params),
        )
        self.meter.resume(context.usage_before, context.request.resume)
        self.inferences = InferenceLog(context.inferences_before)
        self._is_flushed = True

    @property
    def text(self) -> str:
        """The text so far."""
        return self.builder.text

    @property
    def thinking(self) -> str:
        """The thinking so far, joined."""
        items = self.builder.output
        return "\n\n".join(i.thinking for i in items if isinstance(i, uamp.ThinkingContent))

    @property
    def needs_flush(self) -> bool:
        """Whether the row may be out of date."""
        return not self._is_flushed

    def add(self, event: ev.Event) -> None:
        """Add an event to the output and count its usage."""
        # An answer that fails or is cancelled has still used its inferences so far.
        self.meter.add(event)
        self.builder.add(event)
        self._is_flushed = False

    def rename_call(self, call_id: str, new_id: str) -> None:
        """Give a client's call another id in the output."""
        self.builder.rename_call(call_id, new_id)
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
        """Count the milliseconds of sound that were sent."""
        self.meter.spoken_ms += ms
        # The sound is stored only at the end, but its cost must survive a crash of the process.
        self._is_flushed &= self.meter.spec.pricing.is_free

    def snapshot(self) -> AnswerSnapshot:
        """Return the answer so far."""
        return AnswerSnapshot(
            self.builder.text, self.builder.output, self.meter.usage, self.inferences.rows()
        )

    def flush(self) -> Flush:
        """Return the update for the row; no flush is needed again until something is added."""
        self._is_flushed = True
        return Flush(
            response_id=self._response_id,
            fence=self._fence,
            output=self.builder.output,
            usage=self.meter.usage,
            under_way=None if self.meter.spec.pricing.is_free else self.meter.uncounted_usage(),
            inferences=self.inferences.rows(),
        )

    def keep_for_next_flush(self) -> None:
        """Have the next flush rewrite the answer, since the row may hold an older one."""
        self._is_flushed = False


def _kept_output(context: RunContext) -> ev.ResponseDone:
    """Return the stored output of a continued response as an event for the builder."""
    output = ev.ResponseOutput(
        id=context.response_id, status="in_progress", output=tuple(context.request.resume)
    )
    return ev.ResponseDone(response_id=context.response_id, response=output)
