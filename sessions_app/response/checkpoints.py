"""The checkpoints of a run: saved between steps and deleted when it ends.

A single-step turn saves none. A process that takes the response over resumes from the last one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agents_app import checkpoints
from sessions_app import database
from sessions_app.store import responses

if TYPE_CHECKING:
    from sessions_app.response.port import RunPort
    from uap import AgentState

logger = logging.getLogger(__name__)


class Checkpoints:
    """The CheckpointSaver of a run, called only by the run's task."""

    def __init__(self, port: RunPort) -> None:
        self._port = port
        self._any = port.context.was_taken_over

    async def save(self, state: AgentState, *, step: int) -> None:
        """Save the state and the answer so far; writes nothing if another process took over."""
        context, answer = self._port.context, self._port.answer.snapshot()
        self._any = True
        await database.run(
            responses.save_checkpoint,
            context.response_id,
            fence=context.fence,
            text=answer.text,
            output=answer.output,
            usage=answer.usage,
            inferences=answer.inferences,
            state=state,
            step=step,
        )

    async def forget(self) -> None:
        """Delete the checkpoints of a response that has ended."""
        if not self._any:
            return
        try:
            await database.run(checkpoints.delete, [self._port.response_id])
        except Exception:
            # The response has ended regardless, and the process deletes such rows periodically.
            logger.exception("the checkpoint of %s was not deleted", self._port.response_id)
