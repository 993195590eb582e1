"""Every number and every choice that a client can send, found in the types, and odd values for it.

A `Place` is one such field of one client event or REST body; `Place.with_value` is a body that is
valid but for that field. Fields are found by walking the types, so that a new field is in.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from hypothesis import strategies as st
from msgspec import inspect as mi

from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DEPTH: Final = 7
# Texts whose values the specification lists, or that hold a decimal number.
CHOICES: Final = frozenset(
    {"amount", "currency", "detail", "format", "network", "role", "scheme", "status", "type"}
)
TEXTS: Final = {
    "amount": "0.01",
    "call_id": "call_1",
    "content_type": "text/plain",
    "filename": "a.txt",
    "format": "png",
    "mime_type": "text/plain",
    "role": "user",
    "scheme": "token",
    "uamp_version": "1.0",
}


Make: TypeAlias = "Callable[[Any], Any]"


@dataclass(frozen=True)
class Place:
    """One field: its name for people, its event's type, and what makes a body with a value."""

    name: str
    type: str
    make: Make

    def __repr__(self) -> str:
        return self.name

    def with_value(self, value: Any) -> dict[str, Any]:
        """Return a body whose only odd field is this one."""
        body: dict[str, Any] = self.make(value)
        return body


def client_places() -> list[Place]:
    """Return the fields of all events that a client sends, in a steady order."""
    places: dict[str, Place] = {}
    for cls in ev.CLIENT_EVENTS.values():
        kind = mi.type_info(cls)
        assert isinstance(kind, mi.StructType)
        for name, make in _places(kind, str(kind.tag), 0):
            places.setdefault(name, Place(name, str(kind.tag), make))
    for option in ("max_tokens", "temperature", "top_p", "seed", "n", "presence_penalty"):
        places[f"session.create.session.extensions.openai.{option}"] = Place(
            f"session.create.session.extensions.openai.{option}",
            "session.create",
            partial(_with_option, option),
        )
    return [places[name] for name in sorted(places)]


def _with_option(option: str, value: Any) -> dict[str, Any]:
    extensions = {"openai": {option: value}}
    return {"type": "session.create", "session": {"extensions": extensions}}


def _places(kind: mi.Type, name: str, depth: int) -> Iterator[tuple[str, Make]]:  # noqa: C901 one case for each kind of type
    if depth > DEPTH:
        return
    match kind:
        case mi.IntType() | mi.FloatType() | mi.EnumType() | mi.LiteralType():
            yield name, _itself
        case mi.StrType() if name.rpartition(".")[2] in CHOICES:
            yield name, _itself
        case mi.UnionType(types=types):
            for branch in types:
                yield from _places(branch, name, depth)
        case mi.ListType(item_type=item) | mi.VarTupleType(item_type=item):
            for place, make in _places(item, f"{name}[]", depth + 1):
                yield place, _in_list(make)
        case mi.StructType(fields=fields):
            least = minimal(kind)
            if kind.tag is not None and depth:
                name = f"{name}<{kind.tag}>"
            for field in fields:
                if field.encode_name in {"event_id", "session_id"} and depth == 0:
                    continue
                inner = f"{name}.{field.encode_name}"
                for place, make in _places(field.type, inner, depth + 1):
                    yield place, _in_struct(least, field.encode_name, make)


def _itself(value: Any) -> Any:
    return value


def _in_list(make: Make) -> Make:
    def in_list(value: Any) -> list[Any]:
        return [make(value)]

    return in_list


def _in_struct(least: dict[str, Any], name: str, make: Make) -> Make:
    def in_struct(value: Any) -> dict[str, Any]:
        return {**least, name: make(value)}

    return in_struct


def minimal(kind: mi.StructType) -> dict[str, Any]:
    """Return a body with what is required and nothing else."""
    body = {} if kind.tag_field is None else {kind.tag_field: kind.tag}
    for field in kind.fields:
        if field.required:
            body[field.encode_name] = _value(field.type, field.encode_name)
    return body


def _value(kind: mi.Type, name: str) -> Any:
    value: Any = {}
    match kind:
        case mi.StrType():
            value = TEXTS.get(name, "x")
        case mi.BoolType():
            value = True
        case mi.IntType() | mi.FloatType():
            value = 1
        case mi.EnumType(cls=cls):
            value = next(iter(cls)).value
        case mi.LiteralType(values=values):
            value = values[0]
        case mi.StructType():
            value = minimal(kind)
        case mi.UnionType(types=types):
            value = _value(types[0], name)
        case mi.ListType() | mi.VarTupleType():
            value = []
    return value


# --- Values ---

_EDGES: Final[tuple[Any, ...]] = (
    -1,
    0,
    -0.0,
    1,
    1.5,
    -0.001,
    10**6,
    -(10**6),
    10**12,
    -(10**12),
    2**31,
    2**53 + 1,
    2**63 - 1,
    2**63,
    2**64,
    -(2**63) - 1,
    10**40,
    1e308,
    5e-324,
    float("nan"),
    float("inf"),
    float("-inf"),
    "",
    "0",
    "-1",
    "-0.01",
    "0.0000000000000000001",
    "1e9",
    "NaN",
    "Infinity",
    "9" * 300,
    "wizard",
    "\x00",
    "٣",
    None,
    True,
    [],
    [[]],
    {},
    {"x": 1},
)


def odd_values() -> st.SearchStrategy[Any]:
    """Return values of every kind, most of them wrong for any one field."""
    return st.one_of(
        st.sampled_from(_EDGES),
        st.integers(),
        st.integers(min_value=-1000, max_value=1000),
        st.floats(),
        st.decimals(allow_nan=False, allow_infinity=False).map(str),
        st.text(max_size=8),
    )


def odd_numbers() -> st.SearchStrategy[Any]:
    """Return whole numbers on both sides of every bound."""
    edges = [edge for edge in _EDGES if type(edge) is int]
    return st.one_of(st.sampled_from(edges), st.integers(min_value=-1000, max_value=1000))


def encode(body: Any) -> str:
    """Return JSON, with NaN and Infinity as the words that lenient parsers take."""
    return json.dumps(body, ensure_ascii=True)
