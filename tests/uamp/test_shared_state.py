"""A change of the state that a chat shares: versions, bounds, and what is no change."""

from typing import Any

import pytest

from uamp import ErrorCode, RemoteProtocolError
from uamp.limits import Limits
from uamp.shared_state import StateChange, VersionedState, change_state

LIMITS = Limits(state_bytes=20, state_depth=2, patch_operations=2)
BEFORE = VersionedState(value={"a": 1}, version=3)


def refused(change: StateChange) -> tuple[ErrorCode, dict[str, Any] | None]:
    """Return the code and details with which a change is refused."""
    with pytest.raises(RemoteProtocolError) as caught:
        change_state(BEFORE, change, limits=LIMITS)
    return ErrorCode(caught.value.code), caught.value.details


def test_a_change_has_the_patch_that_leads_there() -> None:
    changed = change_state(BEFORE, StateChange(state={"a": 1, "b": 2}, version=3))

    assert changed is not None
    assert changed.now == VersionedState(value={"a": 1, "b": 2}, version=4)
    assert changed.patch == ({"op": "add", "path": "/b", "value": 2},)


@pytest.mark.parametrize(
    "change",
    [
        StateChange(state={"a": 1}),
        # A repeated change finds its own effect, whatever its version.
        StateChange(state={"a": 1.0}, version=2),
        StateChange(patch=[]),
        StateChange(patch=[{"op": "replace", "path": "/a", "value": 1}], version=3),
    ],
)
def test_a_change_without_an_effect_is_not_a_change(change: StateChange) -> None:
    assert change_state(BEFORE, change) is None


def test_a_change_of_another_version_is_a_conflict() -> None:
    for version in (2, 4):
        change = StateChange(state={}, version=version)
        assert refused(change) == (ErrorCode.STATE_CONFLICT, {"version": 3})
    assert change_state(BEFORE, StateChange(state={})) is not None


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (StateChange(), ErrorCode.INVALID_EVENT),
        (StateChange(state={}, patch=[]), ErrorCode.INVALID_EVENT),
        (StateChange(patch=[{"op": "replace", "path": "", "value": []}]), ErrorCode.INVALID_EVENT),
        (StateChange(patch=[{"op": "remove", "path": "/b"}]), ErrorCode.INVALID_EVENT),
        (
            StateChange(patch=[{"op": "test", "path": "/a", "value": 1}] * 3),
            ErrorCode.TOO_MANY_ITEMS,
        ),
        (StateChange(state={"a": "x" * 13}), ErrorCode.EVENT_TOO_LARGE),
        (StateChange(state={"a": [[]]}), ErrorCode.TOO_DEEP),
    ],
)
def test_what_is_out_of_bounds_is_refused(change: StateChange, code: ErrorCode) -> None:
    assert refused(change)[0] == code


def test_the_largest_state_is_taken() -> None:
    for state in ({"a": "x" * 12}, {"a": [1]}, {"a": {"b": 1}}):
        assert change_state(BEFORE, StateChange(state=state), limits=LIMITS) is not None
