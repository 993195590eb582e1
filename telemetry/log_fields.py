"""The ids that every log line carries: of the request, session, response, tool call and payment.

They are context variables, so each task and each request has its own; a thread has them if its
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
    """The ids of the current work; an empty string if there is none.

    `request_id` names an HTTP request or a socket, `session_id` a UAMP session, `response_id` a
    response, `tool_call_id` one of its tool calls. `payment_id` names money: the first hold of the
    response that is running, or the transfer that the line is about.
    """

    request_id: str = ""
    session_id: str = ""
    response_id: str = ""
    tool_call_id: str = ""
    payment_id: str = ""


NONE: Final = LogFields()
_fields: ContextVar[LogFields] = ContextVar("log_fields", default=NONE)


def current() -> LogFields:
    """Return the ids of the current task or thread."""
    return _fields.get()


def begin(
    *,
    request_id: str | None = None,
    session_id: str | None = None,
    response_id: str | None = None,
    tool_call_id: str | None = None,
    payment_id: str | None = None,
) -> None:
    """Set ids for the rest of this task; omitted ones stay."""
    wanted = (request_id, session_id, response_id, tool_call_id, payment_id)
    former = _fields.get()
    pairs = zip(former, wanted, strict=True)
    _fields.set(LogFields(*(old if new is None else new for old, new in pairs)))


@contextmanager
def within(
    *,
    request_id: str | None = None,
    session_id: str | None = None,
    response_id: str | None = None,
    tool_call_id: str | None = None,
    payment_id: str | None = None,
) -> Iterator[None]:
    """Set ids within the block; the former ones are restored afterwards."""
    former = _fields.get()
    begin(
        request_id=request_id,
        session_id=session_id,
        response_id=response_id,
        tool_call_id=tool_call_id,
        payment_id=payment_id,
    )
    try:
        yield
    finally:
        _fields.set(former)


class AddFields(logging.Filter):
    """Adds the ids to each record, as attributes and combined into the text `ids`."""

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
