"""The state that the clients and agents of a chat share, and changes to it (an addition).

A state is a JSON object with a version, which counts its changes. If two changes name the same
version, the later one is refused; a change without a version always applies.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from uamp.errors import ErrorCode, RemoteProtocolError
from uamp.json_patch import PatchError, PatchOperation, apply_patch, make_patch, same_json
from uamp.limits import DEFAULT_LIMITS, Limits


class VersionedState(msgspec.Struct, frozen=True, kw_only=True):
    """A state and the number of its changes; version 0 is the empty state of a new chat."""

    value: dict[str, Any] = msgspec.field(default_factory=dict)
    version: int = 0


class StateChange(msgspec.Struct, frozen=True, kw_only=True):
    """A request to change a state: all of it by ``state``, or parts by ``patch`` (RFC 6902).

    ``version`` is the version it changes; None stands for the current one.
    """

    state: Mapping[str, Any] | None = None
    patch: Sequence[PatchOperation] | None = None
    version: int | None = None


class ChangedState(msgspec.Struct, frozen=True, kw_only=True):
    """The state after a change, and the patch that leads to it."""

    now: VersionedState
    patch: tuple[dict[str, Any], ...]


def change_state(
    before: VersionedState, change: StateChange, *, limits: Limits = DEFAULT_LIMITS
) -> ChangedState | None:
    """Return the state after a change, or None if the change leaves it as it is.

    Raises RemoteProtocolError: state_conflict for a version other than the state's, invalid_event
    for a patch that cannot be applied, too_deep and event_too_large for a state out of bounds.
    """
    if (change.state is None) == (change.patch is None):
        raise _invalid("A change of the state needs either `state` or `patch`, not both.")
    if change.state is not None and same_json(before.value, dict(change.state)):
        return None
    if change.version is not None and change.version != before.version:
        raise RemoteProtocolError(
            ErrorCode.STATE_CONFLICT,
            f"The state is now at version {before.version}, not {change.version}.",
            details={"version": before.version},
        )
    after = dict(change.state) if change.state is not None else _patched(before, change, limits)
    if same_json(before.value, after):
        return None
    _check_bounds(after, limits)
    return ChangedState(
        now=VersionedState(value=after, version=before.version + 1),
        patch=tuple(make_patch(before.value, after)),
    )


def _patched(before: VersionedState, change: StateChange, limits: Limits) -> dict[str, Any]:
    patch = change.patch or ()
    if len(patch) > limits.patch_operations:
        raise RemoteProtocolError(
            ErrorCode.TOO_MANY_ITEMS,
            f"a patch may have at most {limits.patch_operations} operations",
        )
    try:
        after = apply_patch(before.value, patch, max_bytes=limits.state_bytes)
    except PatchError as error:
        raise _invalid(str(error)) from None
    if not isinstance(after, dict):
        raise _invalid("The state must be a JSON object.")
    return after


def _check_bounds(state: dict[str, Any], limits: Limits) -> None:
    level: list[Any] = [state]
    for _ in range(limits.state_depth):
        level = [child for value in level for child in _children(value)]
    if any(isinstance(value, dict | list) for value in level):
        raise RemoteProtocolError(
            ErrorCode.TOO_DEEP, f"a state may have at most {limits.state_depth} levels"
        )
    if len(msgspec.json.encode(state)) > limits.state_bytes:
        raise RemoteProtocolError(
            ErrorCode.EVENT_TOO_LARGE, f"a state may have at most {limits.state_bytes} bytes"
        )


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _invalid(message: str) -> RemoteProtocolError:
    return RemoteProtocolError(ErrorCode.INVALID_EVENT, message)
