"""The place of a remote agent's answer to a response, while the response runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_app.remote import tasks
from sessions_app import database
from sessions_app.store import responses

if TYPE_CHECKING:
    from agents_app.remote.tasks import TaskHandle
    from sessions_app.response.context import RunContext


class ResponseTasks:
    """The TaskRecorder of a run, which sets `is_left` when it stops without ending."""

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self.is_left = False

    async def keep(self, handle: TaskHandle) -> None:
        """See TaskRecorder; writes nothing if another process took over."""
        context = self._context
        await database.run(
            responses.save_remote_task, context.response_id, handle, fence=context.fence
        )

    async def forget(self) -> None:
        """See TaskRecorder."""
        await database.run(tasks.delete, self._context.response_id, fence=self._context.fence)
