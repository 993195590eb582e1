"""The ids that every line of the log carries: of the request, the session and the response.

They are context variables, so each task and each request has its own; a thread has them where its
caller copies its context.
"""

from __future__ import annotations

import logging
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator


class LogFields(NamedTuple):
    """The ids of what is being done; an empty text where there is none.

    `request_id` names an HTTP request or a socket, `session_id` a UAMP session, `response_id` an
    answer.
    """

    request_id: str = ""
    session_id: str = ""
    response_id: str = ""


NONE: Final = LogFields()
_fields: ContextVar[LogFields] = ContextVar("log_fields", default=NONE)


def current() -> LogFields:
    """Return the ids of what this task or thread does."""
    return _fields.get()


def begin(
    *, request_id: str | None = None, session_id: str | None = None, response_id: str | None = None
) -> None:
    """Set ids for the rest of this task; those that are not given stay."""
    fields = _fields.get()
    _fields.set(
        LogFields(
            fields.request_id if request_id is None else request_id,
            fields.session_id if session_id is None else session_id,
            fields.response_id if response_id is None else response_id,
        )
    )


@contextmanager
def within(
    *, request_id: str | None = None, session_id: str | None = None, response_id: str | None = None
) -> Iterator[None]:
    """Set ids for what is done inside; the former ones come back."""
    former = _fields.get()
    begin(request_id=request_id, session_id=session_id, response_id=response_id)
    try:
        yield
    finally:
        _fields.set(former)


class AddFields(logging.Filter):
    """Adds the ids to each record, as attributes of their names and as `ids`, a text of them."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Add them; every record passes."""
        fields = _fields.get()
        for name, value in zip(fields._fields, fields, strict=True):
            setattr(record, name, value)
        shown = " ".join(
            f"{name.removesuffix('_id')}={value}"
            for name, value in zip(fields._fields, fields, strict=True)
            if value
        )
        record.ids = f" [{shown}]" if shown else ""
        return True
