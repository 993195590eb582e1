"""Immutable JSON values for messages.

A message is a value: the states and turns that hold it rely on it not changing. Objects and lists
in it are copied on the way in and reject every change. They are still a `dict` and a `list`, equal
to the originals, so that all code that reads JSON can read them.
"""

import copy
from collections.abc import Mapping
from typing import Any, NoReturn


def _refuse(self: Any, *_given: Any, **_named: Any) -> NoReturn:
    raise TypeError(
        f"This {type(self).__mro__[1].__name__} is part of a message and cannot be changed. "
        "Change a copy: copy.deepcopy(it)."
    )


class FrozenDict(dict[str, Any]):
    """An object in a message; a deep copy is a mutable `dict`."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (dict(self),)


class FrozenList(list[Any]):
    """A list in a message; a deep copy is a mutable `list`."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


EMPTY = FrozenDict()


def freeze(value: Any) -> Any:
    """Return an immutable version of a value, copied if it is mutable.

    Raises TypeError if it is nested too deeply.
    """
    try:
        return _frozen(value)
    except RecursionError as error:
        raise TypeError("A value of a message is nested too deeply.") from error


def _frozen(value: Any) -> Any:
    if isinstance(value, FrozenDict | FrozenList):
        return value
    if isinstance(value, Mapping):
        return FrozenDict({key: _frozen(inner) for key, inner in value.items()}) or EMPTY
    if isinstance(value, list):
        return FrozenList([_frozen(inner) for inner in value])
    if isinstance(value, tuple):
        return tuple([_frozen(inner) for inner in value])
    return value
