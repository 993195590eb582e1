"""Remote agents over UAMP by HTTP: a batch of events out, server-sent events in.

The address is that of the agent, as https://host/agents/echo; batches go to /uamp/stream below it.
An answer continues on the other side when its client disconnects, so one stopped here is cancelled
there, also by the process that takes it over from one that died.
"""

from typing import Any

import uamp
from agents_app.remote.protocols.server import RemoteServer
from agents_app.remote.protocols.uamp_events import UampAnswer
from agents_app.remote.protocols.uamp_requests import response_create
from agents_app.remote.tasks import Ids
from uamp.events import Event, ResponseCancel, ResponseCreated, SessionCreate
from uamp.types.session import SessionConfig
from upp import LLMRequest, StreamEvent
from upp.providers.http.failures import Failures


class UampStreamServer(RemoteServer):
    """Sends a batch for each inference, in a new session."""

    _reading: UampAnswer | None = None

    @property
    def path(self) -> str:
        """See RemoteServer."""
        return f"{self.called.url}/uamp/stream"

    def body(self, name: str, request: LLMRequest) -> Any:
        """See RemoteServer."""
        opening = SessionCreate(event_id="session", session=SessionConfig(), agent=name or None)
        return [uamp.to_dict(opening), uamp.to_dict(response_create(request))]

    def read(self, request: LLMRequest, failures: Failures) -> UampAnswer:
        """See RemoteServer."""
        self._reading = _RecordedAnswer(self, request, failures)
        return self._reading

    async def cancel(self) -> None:
        """See RemoteServer."""
        reading = self._reading
        if reading is None or reading.complete or reading.response_id is None:
            return
        await self._cancel(reading.session_id, reading.response_id)

    async def stop(self, ids: Ids) -> None:
        """See RemoteServer."""
        await self._cancel(str(ids["session"]), str(ids["response"]))

    async def _cancel(self, session_id: str | None, response_id: str) -> None:
        stop = ResponseCancel(event_id="cancel", session_id=session_id, response_id=response_id)
        await self.tell(f"{self.called.url}/uamp", [uamp.to_dict(stop)])


class _RecordedAnswer(UampAnswer):
    """An answer whose ids are recorded when it begins."""

    def take(self, event: Event) -> list[StreamEvent]:
        """See UampAnswer."""
        events = super().take(event)
        if isinstance(event, ResponseCreated) and self.session_id and self.response_id:
            self.server.called.task.record_ids(session=self.session_id, response=self.response_id)
        return events
