"""Numbers of the wire: each has both bounds in its type, and is refused outside of them."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

import uamp
from uamp import events
from uamp.types.bounds import LARGEST

_EVENTS = {**events.CLIENT_EVENTS, **events.SERVER_EVENTS, **events.SYSTEM_EVENTS}


def numbers_of(type_: msgspec.inspect.Type, at: str, seen: set[type]) -> Iterator[tuple[str, Any]]:
    """Yield every number below a type, with its place."""
    match type_:
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            yield at, type_
        case msgspec.inspect.StructType(cls=cls, fields=fields):
            if cls in seen:
                return
            for field in fields:
                yield from numbers_of(field.type, f"{at}.{field.encode_name}", seen | {cls})
        case msgspec.inspect.UnionType(types=types):
            for member_type in types:
                yield from numbers_of(member_type, at, seen)
        case msgspec.inspect.Metadata(type=inner):
            yield from numbers_of(inner, at, seen)
        case msgspec.inspect.VarTupleType(item_type=item):
            yield from numbers_of(item, f"{at}[]", seen)
        case msgspec.inspect.DictType(value_type=value):
            yield from numbers_of(value, f"{at}{{}}", seen)


def _allnumbers_of() -> list[tuple[str, Any]]:
    roots = {**_EVENTS, "extensions": uamp.ModelOptions}
    return [
        number
        for name, cls in roots.items()
        for number in numbers_of(msgspec.inspect.type_info(cls), name, set())
    ]


def test_every_number_of_every_event_has_both_bounds() -> None:
    numbers = _allnumbers_of()
    assert len(numbers) > 100
    assert {"response.create.response.max_tokens", "session.create.resume.after"} <= dict(
        numbers
    ).keys()
    unbounded = [
        at
        for at, number in numbers
        if (number.ge is None and number.gt is None) or (number.le is None and number.lt is None)
    ]
    assert unbounded == []


def test_the_walk_finds_a_number_without_bounds() -> None:
    class Inner(msgspec.Struct):
        bare: tuple[int, ...] = ()

    class Outer(msgspec.Struct):
        inner: Inner | None = None

    numbers = dict(numbers_of(msgspec.inspect.type_info(Outer), "outer", set()))
    assert numbers["outer.inner.bare[]"].ge is None


_TOKENS = [-1, 0, -10_000_000, uamp.MAX_TOKENS + 1, 10**12, 1.5, "100", True, LARGEST]


@pytest.mark.parametrize("value", _TOKENS)
@pytest.mark.parametrize(
    "place",
    [
        ("response.create", "response", "max_tokens"),
        ("session.create", "session", "extensions", "max_tokens"),
        ("session.create", "session", "extensions", "openai", "max_completion_tokens"),
        ("session.update", "session", "extensions", "google", "max_output_tokens"),
    ],
)
def test_tokens_outside_of_their_bounds_are_refused(place: tuple[str, ...], value: object) -> None:
    type_, *members = place
    _refused(_nested(type_, members, value))


@pytest.mark.parametrize(
    ("type_", "members", "value"),
    [
        ("response.create", ("response", "temperature"), -0.1),
        ("response.create", ("response", "temperature"), 2.1),
        ("session.update", ("session", "extensions", "temperature"), 1e300),
        ("response.create", ("response", "top_p"), 1.1),
        ("response.create", ("response", "seed"), 2**63),
        ("response.create", ("response", "seed"), -(2**63) - 1),
        ("response.create", ("response", "frequency_penalty"), -2.1),
        ("response.create", ("response", "presence_penalty"), 2.1),
        ("response.create", ("response", "logit_bias"), {"50256": 101}),
        ("response.create", ("response", "logit_bias"), {"the": 1}),
        ("response.create", ("response", "logit_bias"), {str(n): 1 for n in range(301)}),
        ("response.create", ("response", "stop"), ["x"] * 17),
        ("response.create", ("response", "stop"), [""]),
        ("response.create", ("response", "stop"), "x" * 201),
        ("response.create", ("response", "reasoning_effort"), "much"),
        ("response.create", ("response", "tool_choice"), "any"),
        ("response.create", ("response", "tool_choice"), {"function": {"name": "n" * 129}}),
        ("session.update", ("session", "extensions", "top_p"), -0.1),
        ("session.create", ("session", "voice", "speed"), -1),
        ("session.create", ("session", "turn_detection", "threshold"), 2),
        ("session.create", ("resume", "after"), -1),
        ("session.create", ("resume", "after"), 0.5),
        ("session.create", ("client_capabilities", "image", "max_size_bytes"), -1),
        ("message.read", ("read_at",), -1),
        ("voice.end", ("duration_ms",), -0.5),
        ("ping", ("timestamp",), -1),
        ("ping", ("seq",), -1),
    ],
)
def test_other_numbers_outside_of_their_bounds_are_refused(
    type_: str, members: tuple[str, ...], value: object
) -> None:
    _refused(_nested(type_, members, value))


@pytest.mark.parametrize("value", [1, uamp.MAX_TOKENS])
def test_the_bounds_themselves_are_taken(value: int) -> None:
    frame = _nested("response.create", ["response", "max_tokens"], value)
    event = uamp.decode(json.dumps(frame))
    assert isinstance(event, events.ResponseCreate)
    assert event.response is not None
    assert event.response.max_tokens == value


def test_extensions_of_others_are_left_alone() -> None:
    extensions = {"platform": {"max_tokens": -1}, "openai": {"user": "x"}, "temperature": None}
    frame = _nested("session.create", ["session", "extensions"], extensions)
    event = uamp.decode(json.dumps(frame))
    assert isinstance(event, events.SessionCreate)
    assert event.session.extensions == extensions
    assert uamp.decode(json.dumps({"type": "session.update"})) == events.SessionUpdate()


def _nested(type_: str, members: Any, value: object) -> dict[str, Any]:
    required = {"message.read": {"message_id": "m"}, "voice.end": {"call_id": "c"}}
    inside: Any = value
    for name in reversed(members[1:]):
        inside = {name: inside}
        if name == "threshold":
            inside["type"] = "server_vad"
    return {"type": type_, **required.get(type_, {}), members[0]: inside}


def _refused(frame: dict[str, Any]) -> None:
    with pytest.raises(uamp.RemoteProtocolError) as refused:
        uamp.decode(json.dumps(frame))
    assert refused.value.code in {uamp.ErrorCode.INVALID_EVENT, uamp.ErrorCode.INVALID_NUMBER}


@pytest.mark.parametrize(
    ("member", "good", "bad"),
    [
        ("call_id", "c" * 128, "c" * 129),
        ("to", "1" * 128, "1" * 129),
        ("media", ["audio"] * 8, ["audio"] * 9),
        ("media", ["m" * 32], ["m" * 33]),
        ("reason", "r" * 500, "r" * 501),
        ("sdp", {"type": "offer", "sdp": "v" * 65_536}, {"type": "offer", "sdp": "v" * 65_537}),
        ("sdp", {"type": "t" * 16, "sdp": "v"}, {"type": "t" * 17, "sdp": "v"}),
    ],
)
def test_what_a_call_event_carries_has_bounds(member: str, good: Any, bad: Any) -> None:
    for name in ("voice.invite", "voice.accept", "voice.decline", "voice.end"):
        uamp.decode(json.dumps({"type": name, member: good}))
        with pytest.raises(uamp.RemoteProtocolError) as refused:
            uamp.decode(json.dumps({"type": name, member: bad}))
        assert refused.value.code == uamp.ErrorCode.INVALID_EVENT
