"""JSON values that belong to a message and cannot be changed.

A message is a value: a state or a turn that holds it may rely on what it says. Objects and
lists inside it are copied on the way in and refuse every change; they are still a `dict` and a
`list`, equal to those that they were made of, so that whatever reads JSON reads them.
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
    """An object inside a message; a deep copy is a `dict` that can be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> dict[str, Any]:
        return {key: copy.deepcopy(value, memo) for key, value in self.items()}

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (dict(self),)


class FrozenList(list[Any]):
    """A list inside a message; a deep copy is a `list` that can be changed."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        return [copy.deepcopy(value, memo) for value in self]

    def __reduce__(self) -> tuple[Any, ...]:
        return freeze, (list(self),)


EMPTY = FrozenDict()


def freeze(value: Any) -> Any:
    """Return a value that cannot be changed: a copy, where it could be.

    Raises TypeError for what is nested too deeply.
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
