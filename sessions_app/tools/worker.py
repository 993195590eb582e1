"""A worker's execution of one long tool call, under the fence of its row.

A claim is one conditional UPDATE that increments `attempts`, the fence for all later writes. Losing
the claim is not an error: another worker now holds it.
"""

from __future__ import annotations

import hashlib
import logging
import math
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final, Self

import msgspec
from django.conf import settings
from django.db import OperationalError, connections
from django.db.models import Exists, OuterRef, Q
from django.utils import timezone

import uamp
from agents_app.tools.registry import (
    FoundMessage,
    ReadContent,
    ToolCancelled,
    ToolError,
    ToolOutcome,
)
from chat_app.contents import media_types, quota, reading_rights, references, storage
from chat_app.log import fanout
from sessions_app import database
from sessions_app.frames import frame
from sessions_app.models import Response, ToolCall
from sessions_app.states import CAUSE_CHARS, REPORTED, ToolCallState, ToolCallTrigger
from sessions_app.tools.contents import asker_of, chat_owner, readable
from sessions_app.tools.delegated_calls import CallAbove, calls_above, progress_of_call
from sessions_app.tools.fair_claims import may_start
from sessions_app.tools.visible_search import search_visible
from sessions_app.transitions import end_call as end
from sessions_app.transitions import move
from uamp import events as ev
from uamp.storable_text import storable

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from types import TracebackType

    from django.db.models import QuerySet

logger = logging.getLogger(__name__)

# The pause between progress events; those in between are sent by the lease thread.
PROGRESS_SECONDS: Final = 0.1
# The most characters sent of a stage or message.
PROGRESS_CHARS: Final = 500
# How long a tool without progress takes to notice that its response was cancelled.
LOOK_SECONDS: Final = 2.0
# The lease thread may be executing a statement when its tool ends.
LEASE_END_SECONDS: Final = 30.0


@dataclass(frozen=True, kw_only=True, slots=True)
class CallClaim:
    """A running call, with this worker's fence (`attempt`)."""

    pk: int
    attempt: int
    call_id: str
    name: str
    arguments: str
    response_id: str
    chat_id: str
    asker: quota.ContentOwner
    deadline: datetime
    percent: int
    agent: str
    above: Sequence[CallAbove] = ()


# --- The row ---


def lease_end() -> datetime:
    """Return the end of a lease that starts now."""
    return timezone.now() + timedelta(seconds=settings.UAMP_LEASE_SECONDS)


def claim_call(pk: int) -> CallClaim | None:
    """Claim a call that is queued or whose lease has expired; None if it cannot be claimed.

    It cannot while its asker has a full share of the workers and others wait (`fair_claims`).
    The time limit counts from the first start, so that a call that kills its workers ends too.
    """
    row = (
        ToolCall.objects.select_related("response__session", "response__agent")
        .filter(pk=pk)
        .first()
    )
    if row is None:
        return None
    now = timezone.now()
    if not may_start(row, now):
        return None
    deadline = row.deadline if row.attempts else now + timedelta(seconds=_tool_seconds())
    free = Q(status=ToolCallState.QUEUED) | Q(status=ToolCallState.RUNNING, lease_until__lt=now)
    # The number of attempts in the condition ensures that exactly one worker wins.
    won = move(
        ToolCall.objects.filter(free, pk=pk, attempts=row.attempts),
        ToolCallTrigger.CLAIM,
        attempts=row.attempts + 1,
        started_at=row.started_at or now,
        lease_until=lease_end(),
        deadline=deadline,
    )
    if not won:
        return None
    return CallClaim(
        pk=pk,
        attempt=row.attempts + 1,
        call_id=row.call_id,
        name=row.name,
        arguments=row.arguments,
        response_id=row.response_id,
        chat_id=row.response.chat_id,
        asker=asker_of(row.response),
        deadline=deadline,
        percent=(row.progress or {}).get("percent") or 0,
        agent=row.response.agent.name,
        above=calls_above(row.response_id),
    )


def _tool_seconds() -> float:
    return float(settings.UAMP_TOOL_SECONDS)


def _held(claim: CallClaim) -> QuerySet[ToolCall]:
    return ToolCall.objects.filter(
        pk=claim.pk, status=ToolCallState.RUNNING, attempts=claim.attempt
    )


def renew_claim(claim: CallClaim, progress: dict[str, Any] | None) -> bool:
    """Extend the lease and store progress; return False if the claim or response has ended."""
    responses = Response.objects.filter(
        pk=OuterRef("response_id"), status__in=Response.LIVE, cancel_requested_at__isnull=True
    )
    fields: dict[str, Any] = {"lease_until": lease_end()}
    if progress is not None:
        fields["progress"] = progress
    return bool(_held(claim).filter(Exists(responses)).update(**fields))


def cause_of(outcome: ToolOutcome) -> str:
    """Return the kind of a failure as a row has it; "" for a success."""
    if not outcome.is_error:
        return ""
    return (outcome.cause or REPORTED)[:CAUSE_CHARS]


def end_call(claim: CallClaim, status: str, outcome: ToolOutcome) -> bool:
    """Write the end of a call; return False if this worker has lost the claim."""
    return bool(
        end(
            _held(claim),
            status,
            result=outcome.result,
            is_error=outcome.is_error,
            cause=cause_of(outcome),
            content_items=msgspec.to_builtins(outcome.content_items),
            lease_until=None,
            finished_at=timezone.now(),
        )
    )


# --- The context of a running tool ---


class Work:
    """The ToolContext of a claimed call; as a context manager, it renews the lease in a thread.

    The tool's thread calls the public methods; the lease thread calls `_renew` under `_lock`.
    """

    def __init__(self, claim: CallClaim) -> None:
        self.call_id = claim.call_id
        # The reason that the tool has to stop, if it does.
        self.is_lost = False
        self.is_late = False
        self._claim = claim
        self._percent = claim.percent
        self._latest: ev.Progress | None = None
        self._is_unsent = False
        self._tried_at = self._renewed_at = time.monotonic()
        # Renewals are serialised, so that progress is sent in order.
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._lease_thread = threading.Thread(
            target=self._renew_until_end, name=f"lease-{claim.pk}", daemon=True
        )

    def __enter__(self) -> Self:
        self._lease_thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        self._lease_thread.join(LEASE_END_SECONDS)
        if self._lease_thread.is_alive():
            logger.error(
                "the lease thread of call %s did not end within %g s",
                self.call_id,
                LEASE_END_SECONDS,
            )

    def progress(
        self,
        *,
        percent: float | None = None,
        step: int | None = None,
        total_steps: int | None = None,
        stage: str | None = None,
        message: str | None = None,
    ) -> None:
        """See ToolContext. The percentage is rounded and never falls, even in a new attempt.

        Long texts are cut, since each is stored and sent to all members of the chat.
        """
        self.check()
        with self._lock:
            if percent is not None and not math.isfinite(percent):
                # Infinite and NaN percentages are ignored.
                percent = None
            if percent is not None:
                self._percent = max(self._percent, min(100, round(percent)))
            event = ev.Progress(
                target="tool",
                target_id=self.call_id,
                stage=stage and storable(stage)[:PROGRESS_CHARS],
                message=message and storable(message)[:PROGRESS_CHARS],
                percent=None if percent is None else self._percent,
                step=step,
                total_steps=total_steps,
                response_id=self._claim.response_id,
            )
            is_new_stage = self._latest is None or event.stage != self._latest.stage
            if is_new_stage and self._is_unsent:
                self._renew()
            self._latest, self._is_unsent = event, True
            if is_new_stage or time.monotonic() - self._tried_at >= PROGRESS_SECONDS:
                self._renew()
        self.check()

    def read_content(self, content_id: str) -> ReadContent:
        """See ToolContext. Covers contents of the chat, and of the person behind the session."""
        self.check()
        return database.scoped(_read_content, self._claim, content_id)

    def write_content(self, data: bytes, *, mime_type: str, filename: str) -> uamp.ContentItem:
        """See ToolContext. Repeating the same bytes in a later attempt yields the same content."""
        self.renew()
        self.check()
        return database.scoped(
            _write_content, self._claim, data, mime_type=mime_type, filename=filename
        )

    def search_messages(self, words: Sequence[str], *, limit: int) -> Sequence[FoundMessage]:
        """See ToolContext. Searches what the agent may see of the response's chat."""
        self.check()
        return database.scoped(search_visible, self._claim.response_id, words, limit=limit)

    def check(self) -> None:
        """Raise ToolCancelled if the tool has to stop, as far as this process knows."""
        if self.must_stop():
            raise ToolCancelled

    def must_stop(self) -> bool:
        """Return whether the tool has to stop, as far as this process knows."""
        self.is_late = self.is_late or timezone.now() >= self._claim.deadline
        return self.is_lost or self.is_late

    def renew(self) -> None:
        """Renew the lease now, and send any unsent progress."""
        with self._lock:
            self._renew()

    def finish(self) -> None:
        """Send the last progress before the end of the call."""
        with self._lock:
            if self._is_unsent and not self.is_lost:
                self._renew()

    def _renew(self) -> None:
        self._tried_at = time.monotonic()
        progress = self._latest if self._is_unsent else None
        payload = None if progress is None else uamp.to_dict(progress)
        try:
            held = database.scoped(renew_claim, self._claim, payload)
        except OperationalError:
            # The database may be down briefly; the lease remains valid until it expires.
            logger.warning("the lease of call %s was not renewed", self.call_id, exc_info=True)
            self.is_lost = time.monotonic() - self._renewed_at >= settings.UAMP_LEASE_SECONDS
            return
        if not held:
            self.is_lost = True
            return
        self._renewed_at = self._tried_at
        if progress is not None:
            self._is_unsent = False
            _publish(self._claim, progress)

    def _renew_until_end(self) -> None:
        """Renew for tools without progress or with unsent progress (on the lease thread)."""
        try:
            while not self._ended.wait(PROGRESS_SECONDS) and not self._is_over():
                with self._lock:
                    longest = min(settings.UAMP_LEASE_SECONDS / 3, LOOK_SECONDS)
                    pause = PROGRESS_SECONDS if self._is_unsent else longest
                    if time.monotonic() - self._tried_at >= pause:
                        self._renew()
        except Exception:
            # Without this thread the lease expires and another worker takes over, so log the cause.
            logger.exception("the lease of call %s is no longer renewed", self.call_id)
        finally:
            connections.close_all()

    def _is_over(self) -> bool:
        # Past its deadline a call gives up its lease, even if its tool is stuck.
        return self.is_lost or timezone.now() >= self._claim.deadline


def _publish(claim: CallClaim, event: ev.Progress) -> None:
    """Send progress to the chat, and to the chats that delegated this work."""
    _send(claim.chat_id, event, claim.response_id)
    outgoing = event
    for call in claim.above:
        outgoing = progress_of_call(outgoing, call, claim.agent)
        _send(call.chat_id, outgoing, call.response_id)


def _send(chat_id: str, event: ev.Event, response_id: str) -> None:
    message = fanout.signal_message(chat_id=chat_id, frame=frame(event), response_id=response_id)
    fanout.send_from_thread(fanout.chat_group(chat_id), message)


def _read_content(claim: CallClaim, content_id: str) -> ReadContent:
    content = readable(content_id, chat_id=claim.chat_id, asker=claim.asker)
    return ReadContent(
        data=storage.read(content), mime_type=content.mime_type, filename=content.filename
    )


def _write_content(
    claim: CallClaim, data: bytes, *, mime_type: str, filename: str
) -> uamp.ContentItem:
    name = f"tool call {claim.pk} {filename} {hashlib.sha256(data).hexdigest()}"
    content_id = uuid.uuid5(uuid.NAMESPACE_OID, name)
    try:
        content = storage.store(
            data,
            mime_type=mime_type,
            filename=filename,
            owner=chat_owner(claim.chat_id),
            content_id=str(content_id),
        )
    except media_types.InvalidMedia as error:
        raise ToolError(str(error)) from error
    reading_rights.use(claim.chat_id, [str(content.pk)])
    return references.item_of(content)
