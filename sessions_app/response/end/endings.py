"""The end of a response, and who ended it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sessions_app.billing.usage import CAUSES, Cause

if TYPE_CHECKING:
    from collections.abc import Collection

    from sessions_app.access.standing import Loss
    from sessions_app.store.responses import Canceller
    from uamp import events as ev


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a response: its final state `status` and the `error` if it failed.

    `cause` names the party at fault if the error code does not imply it. `error_cause` is the
    original error message, for operators. `canceller` is the person who cancelled, if any, and
    `ended_by` the one who took the asker's right to the answer. `is_refused` is set if it needed a
    payment or an approval that it did not get before anything of it reached the asker.
    """

    status: str
    finish_reason: str | None = None
    error: ev.ErrorDetail | None = None
    cause: Cause | None = None
    canceller: Canceller | None = None
    ended_by: int | None = None
    is_refused: bool = False
    error_cause: str = ""

    @property
    def is_stopped(self) -> bool:
        """Whether the asker or the payer kept the response from completing."""
        if self.error is None:
            return self.status == "cancelled"
        return (self.cause or CAUSES.get(self.error.code)) is Cause.ASKER

    @property
    def is_unexplained(self) -> bool:
        """Whether it was cancelled, but not by a known person."""
        return self.status == "cancelled" and self.canceller is None

    def after(self, loss: Loss) -> Ending:
        """Return the ending of a response that lost the right to continue."""
        cause = Cause.OTHERS if loss.is_by_others else None
        return replace(self, cause=cause, ended_by=loss.by)

    @property
    def is_by_others(self) -> bool:
        """Whether someone other than the asker and the payer ended the response."""
        code = self.error.code if self.error else ""
        return (self.cause or CAUSES.get(code)) is Cause.OTHERS

    def judged(self, people: Collection[int | None]) -> Ending:
        """Return the ending with its cause, by whether one of these people ended the response."""
        by = self.ended_by if self.canceller is None else self.canceller.user_id
        if by is None:
            return self
        return replace(self, cause=None if by in people else Cause.OTHERS)
