"""Answers in progress on other servers, recorded so that another process can find them again.

A2A and UAMP continue an answer when its client disconnects. Its ids are kept in a row from its
first event to its end, so that a process that takes the response over follows the same answer
instead of asking twice, or stops it there. UAMP over HTTP cannot follow an answer, only stop it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Collection, Mapping
from datetime import datetime
from typing import Final, Protocol

import msgspec
from django.db import DatabaseError, InterfaceError

from agents_app.models import RemoteTask
from upp import AssistantMessage, LLMRequest, UserMessage

logger = logging.getLogger(__name__)

Ids = Mapping[str, str | int]
FOLLOWED: Final = frozenset({"a2a", "a2a_03", "uamp"})
"""The protocols over which another process can follow an answer in progress."""


class TaskHandle(msgspec.Struct, frozen=True, kw_only=True):
    """How to find an answer on its own server; see RemoteTask."""

    protocol: str
    address: str
    ids: Ids
    rounds: int

    @property
    def can_be_followed(self) -> bool:
        """Whether another process can follow the answer; if not, it can only stop it."""
        return self.protocol in FOLLOWED


class TaskRecorder(Protocol):
    """Stores the handle of one response."""

    @property
    def is_left(self) -> bool:
        """Whether the run stops without ending, because another process continues it."""

    async def keep(self, handle: TaskHandle) -> None:
        """Write the handle, replacing the previous one."""

    async def forget(self) -> None:
        """Delete the handle."""


class TrackedTask:
    """The answers of one run on the other side, one at a time; used by the run's task."""

    def __init__(
        self,
        protocol: str,
        address: str,
        *,
        recorder: TaskRecorder | None,
        handle: TaskHandle | None,
    ) -> None:
        self._protocol, self._address = protocol, address
        self._recorder, self._handle = recorder, handle
        self.ids: Ids | None = None
        """The ids of the answer to follow in this inference; None for a new answer."""
        self.left_ids: Ids | None = None
        """The ids of an answer to stop before this inference, since it cannot be followed."""
        self._rounds = 0
        self._keeping: asyncio.Task[None] | None = None

    @property
    def is_left(self) -> bool:
        """Whether the answer continues on its server for another process to find."""
        if self._keeping is None or self._recorder is None:
            return False
        return self._protocol in FOLLOWED and self._recorder.is_left

    def begin(self, request: LLMRequest) -> bool:
        """Begin an inference; return whether its answer is already in progress."""
        self._rounds, self.ids, self.left_ids = rounds_of(request), None, None
        handle, self._handle = self._handle, None
        expected = (self._protocol, self._address, self._rounds)
        if handle is not None and (handle.protocol, handle.address, handle.rounds) == expected:
            if handle.can_be_followed:
                self.ids = handle.ids
                self.record_ids(**handle.ids)
            else:
                self.left_ids = handle.ids
        return self.ids is not None

    def record_ids(self, **ids: str | int) -> None:
        """Record the ids of the answer; later ones of the same answer are ignored."""
        if self._recorder is None or self._keeping is not None:
            return
        handle = TaskHandle(
            protocol=self._protocol, address=self._address, ids=ids, rounds=self._rounds
        )
        self._keeping = asyncio.create_task(_logged(self._recorder.keep(handle)))

    async def end(self) -> None:
        """Forget an answer that has ended or was stopped."""
        keeping, self._keeping = self._keeping, None
        if keeping is not None and self._recorder is not None:
            await keeping
            await _logged(self._recorder.forget())


async def _logged(writing: Awaitable[None]) -> None:
    """Await a write; the answer continues if it fails."""
    try:
        await writing
    except (DatabaseError, InterfaceError):
        logger.exception("the ids of a remote answer were not written")


def rounds_of(request: LLMRequest) -> int:
    """Return the number of the agent's own messages since the last message of a user."""
    rounds = 0
    for message in reversed(request.messages):
        if isinstance(message, UserMessage):
            break
        rounds += isinstance(message, AssistantMessage)
    return rounds


# --- Rows; synchronous ---


def load(response_id: str) -> TaskHandle | None:
    """Return the handle of a response, or None."""
    row = RemoteTask.objects.filter(pk=response_id).first()
    if row is None:
        return None
    return TaskHandle(protocol=row.protocol, address=row.address, ids=row.ids, rounds=row.rounds)


def save(response_id: str, handle: TaskHandle, *, fence: int, at: datetime) -> None:
    """Write the handle of a response."""
    RemoteTask.objects.update_or_create(
        response_id=response_id,
        defaults={**msgspec.to_builtins(handle), "fence": fence, "updated_at": at},
    )


def delete(response_id: str, *, fence: int) -> None:
    """Delete the handle of a response, unless a later takeover wrote it."""
    RemoteTask.objects.filter(pk=response_id, fence__lte=fence).delete()


def delete_all(response_ids: Collection[str]) -> None:
    """Delete the handles of responses that have ended. Missing handles are ignored."""
    RemoteTask.objects.filter(pk__in=response_ids).delete()


def written_before(at: datetime) -> list[str]:
    """Return the responses whose handles were written before `at`."""
    return list(RemoteTask.objects.filter(updated_at__lt=at).values_list("pk", flat=True))
