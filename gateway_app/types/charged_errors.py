"""Errors of answers in the format of any dialect, with what the answer has cost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from uamp import RemoteProtocolError
    from uamp.events.server import ErrorDetail

CHARGED: Final = ("response_id", "charged", "partial_text", "partial_calls", "demand")


def with_charges(body: Any, error: RemoteProtocolError | ErrorDetail) -> Any:
    """Return the body of an error with what its answer has cost and delivered, and demands.

    In every dialect these are members beside the error; an error that is of no answer has none.
    """
    if members := charges_of(error):
        return {**msgspec.to_builtins(body), **members}
    return body


def charges_of(error: RemoteProtocolError | ErrorDetail) -> dict[str, Any]:
    """Return the members of an error's details that are about its answer."""
    details = error.details or {}
    return {name: details[name] for name in CHARGED if name in details}
