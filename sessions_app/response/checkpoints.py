"""The checkpoints of one run: saved between its steps, forgotten with its end.

A turn of one step writes none. Whoever takes the response over goes on from the last one.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from agents_app import checkpoints
from sessions_app import database
from sessions_app.store import responses

if TYPE_CHECKING:
    from sessions_app.response.run import Run
    from uap import AgentState

logger = logging.getLogger(__name__)


class Checkpoints:
    """The CheckpointKeeper of one run."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._any = run.context.was_taken_over

    async def save(self, state: AgentState, *, step: int) -> None:
        """Keep a state with what the response has shown; nothing once another process has it."""
        run = self._run
        self._any = True
        await database.run(
            responses.save_checkpoint,
            run.response_id,
            fence=run.context.fence,
            text=run.builder.text,
            output=run.builder.output,
            usage=run.meter.usage,
            state=state,
            step=step,
        )

    async def forget(self) -> None:
        """Delete what was kept: the response has ended."""
        if not self._any:
            return
        try:
            await database.run(checkpoints.delete, [self._run.response_id])
        except Exception:
            # The response has ended all the same; the process looks for such rows now and then.
            logger.exception("the checkpoint of %s was not deleted", self._run.response_id)
