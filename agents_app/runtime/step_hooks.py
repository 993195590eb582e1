"""Hooks between the steps of a run: checkpoints and limits.

A checkpoint records what has been shown. It is saved when the next step begins, once all events of
its own step have been received; the next step waits for it.
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
    """Saves the progress of a response."""

    async def save(self, state: AgentState, *, step: int) -> None:
        """Save a state with the output so far; all events of its steps have been received.

        `state` holds the messages of the response only; `step` is the number of its steps.
        """


def recent(spec: AgentSpec, history: Sequence[Message]) -> Sequence[Message]:
    """Return the last messages of a history that an agent may see, and all system messages."""
    limit = spec.history_messages
    if limit is None or len(history) <= limit:
        return history
    system, last = [m for m in history[:-limit] if m.role == "system"], history[-limit:]
    return [*system, *last]


class StepHooks:
    """Hooks between the steps of one run.

    `checkpoint` is where the run continues, `before` the number of messages in the
    conversation before the response, and `tokens` counts its output. `admit` allows each further
    step. The agent calls the hooks in the run's task.
    """

    def __init__(
        self,
        spec: AgentSpec,
        saver: CheckpointSaver | None,
        checkpoint: ResponseCheckpoint | None,
        *,
        before: int,
        tokens: Tokens,
        admit: Callable[[], Awaitable[None]],
    ) -> None:
        self._spec = spec
        self._admit = admit
        self._saver = saver
        # Across all runs of the response.
        self._steps = checkpoint.step if checkpoint else 0
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
        # Only plans have steps without a round of tools, and a model may keep making plans.
        if steps > 2 * self._spec.max_steps + 1:
            raise AgentError(
                f"{self._spec.name} took {steps} steps without coming to an answer.",
                code=ErrorCode.TOO_MANY_STEPS,
            )
        limit, written = self._tokens.limit, self._tokens.written
        if limit is not None and written >= limit:
            raise AgentError(
                f"{self._spec.name} wrote {written} tokens without coming to an answer; "
                f"{limit} are allowed.",
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
            # An answer without a checkpoint is better than no answer.
            logger.exception("Agent %s: a checkpoint was not saved", self._spec.name)
