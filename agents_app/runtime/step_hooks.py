"""Hooks between two steps of a run: checkpoints and limits.

A checkpoint states what has been shown. It is saved when the next step begins, after the events of
its own step were received; the next step waits for it.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

from agents_app.checkpoints import ResponseCheckpoint, of_response
from agents_app.runtime.failures import AgentError
from agents_app.runtime.model_calls import Tokens
from agents_app.selectors import AgentSpec
from uamp.errors import ErrorCode
from uamp.types.content import Message
from uap import AgentState, AgentStrategy, GenerateResult

logger = logging.getLogger(__name__)


class CheckpointSaver(Protocol):
    """Saves the progress of the response."""

    async def save(self, state: AgentState, *, step: int) -> None:
        """Save a state with the output so far; all events of its steps were received.

        The messages of the state are those of the response, `step` is the number of its steps.
        """


def recent(spec: AgentSpec, history: Sequence[Message]) -> Sequence[Message]:
    """Return what the agent is shown of a history: its last messages, and what is no message."""
    most = spec.history_messages
    if most is None or len(history) <= most:
        return history
    kept, last = [m for m in history[:-most] if m.role == "system"], history[-most:]
    return [*kept, *last]


class StepHooks:
    """Hooks between the steps of one run.

    `kept` is the checkpoint that the run goes on from, `before` the number of messages that the
    conversation had before the response, `tokens` what it writes, and `admit` lets each further
    step begin. The agent calls the hooks in the task of the run.
    """

    def __init__(
        self,
        spec: AgentSpec,
        saver: CheckpointSaver | None,
        kept: ResponseCheckpoint | None,
        *,
        before: int,
        tokens: Tokens,
        admit: Callable[[], Awaitable[None]],
    ) -> None:
        self._spec = spec
        self._admit = admit
        self._saver = saver
        # Of the response, in all of its runs.
        self._steps = kept.step if kept else 0
        self._messages_before = before
        self._tokens = tokens
        self._ended: AgentState | None = None

    def strategy(self) -> AgentStrategy:
        """Return the hooks that the agent calls before and after each step."""
        return AgentStrategy(on_step_start=self._begin, on_step_end=self._end)

    def _end(self, _number: int, result: GenerateResult) -> None:
        self._ended = result.state

    async def _begin(self, _number: int, _state: AgentState) -> None:
        steps, self._steps = self._steps, self._steps + 1
        # Only plans have steps without a round of tools, and a model may make plans without end.
        if steps > 2 * self._spec.max_steps + 1:
            raise AgentError(
                f"{self._spec.name} took {steps} steps without coming to an answer.",
                code=ErrorCode.TOO_MANY_STEPS,
            )
        most, written = self._tokens.most, self._tokens.written
        if most is not None and written >= most:
            raise AgentError(
                f"{self._spec.name} wrote {written} tokens without coming to an answer; "
                f"{most} are allowed.",
                code=ErrorCode.TOO_MANY_STEPS,
            )
        ended, self._ended = self._ended, None
        if ended is None:
            return
        await self._admit()
        if self._saver is None:
            return
        try:
            await self._saver.save(of_response(ended, after=self._messages_before), step=steps)
        except Exception:
            # An answer without a checkpoint is better than none.
            logger.exception("Agent %s: a checkpoint was not saved", self._spec.name)
