"""The checkpoints of one run: saved between its steps, deleted with its end.

A turn of one step writes none. A process that takes the response over resumes from the last one.
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
    """The CheckpointSaver of one run; only its task calls it."""

    def __init__(self, port: RunPort) -> None:
        self._port = port
        self._any = port.context.was_taken_over

    async def save(self, state: AgentState, *, step: int) -> None:
        """Write a state with the answer so far; nothing once another process has the response."""
        context, answer = self._port.context, self._port.answer.snapshot()
        self._any = True
        await database.run(
            responses.save_checkpoint,
            context.response_id,
            fence=context.fence,
            text=answer.text,
            output=answer.output,
            usage=answer.usage,
            state=state,
            step=step,
        )

    async def forget(self) -> None:
        """Delete the checkpoints: the response has ended."""
        if not self._any:
            return
        try:
            await database.run(checkpoints.delete, [self._port.response_id])
        except Exception:
            # The response has ended all the same; the process looks for such rows now and then.
            logger.exception("the checkpoint of %s was not deleted", self._port.response_id)
