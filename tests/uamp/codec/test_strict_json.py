"""The strict loader: every limit at its value and one past it, and nothing read differently."""

import json
import time
from sys import float_info
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uamp import ErrorCode, Limits, RemoteProtocolError, load_json


def _code(raw: str | bytes, **limits: int) -> ErrorCode:
    with pytest.raises(RemoteProtocolError) as caught:
        load_json(raw, Limits(**limits))
    assert caught.value.event_id is None
    return caught.value.code


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("", ErrorCode.INVALID_JSON),
        ("hello", ErrorCode.INVALID_JSON),
        ('{"a":', ErrorCode.INVALID_JSON),
        ('{"a":1}x', ErrorCode.INVALID_JSON),
        ("\ufeff{}", ErrorCode.INVALID_JSON),
        (b"\xef\xbb\xbf{}", ErrorCode.INVALID_JSON),
        (b"\xff", ErrorCode.INVALID_JSON),
        (b'"\xed\xa0\x80"', ErrorCode.INVALID_JSON),
        ('"\x00"', ErrorCode.INVALID_JSON),
        ('"\n"', ErrorCode.INVALID_JSON),
        ("{'a':1}", ErrorCode.INVALID_JSON),
        ("[1,]", ErrorCode.INVALID_JSON),
        ("01", ErrorCode.INVALID_JSON),
        ('{"a":1,"a":1}', ErrorCode.DUPLICATE_KEY),
        ('[{"b":{"a":1,"\\u0061":2}}]', ErrorCode.DUPLICATE_KEY),
        ("NaN", ErrorCode.INVALID_NUMBER),
        ("[Infinity]", ErrorCode.INVALID_NUMBER),
        ("-Infinity", ErrorCode.INVALID_NUMBER),
        ("1e309", ErrorCode.INVALID_NUMBER),
        ("-1e309", ErrorCode.INVALID_NUMBER),
        ("2" + "0" * 308, ErrorCode.INVALID_NUMBER),
        ("-2" + "0" * 308, ErrorCode.INVALID_NUMBER),
        ("1" + "0" * 309, ErrorCode.INVALID_NUMBER),
        ("1" * 4300, ErrorCode.INVALID_NUMBER),
        ("1" * 5000, ErrorCode.INVALID_NUMBER),
        ('"\\u0000"', ErrorCode.INVALID_TEXT),
        ('{"\\u0000":1}', ErrorCode.INVALID_TEXT),
        ('["\\ud800"]', ErrorCode.INVALID_TEXT),
        ('{"a":{"b":"\\uDFFF\\uD800"}}', ErrorCode.INVALID_TEXT),
        ('"\ud800"', ErrorCode.INVALID_TEXT),
    ],
)
def test_a_text_that_is_not_plain_json_is_refused(raw: str | bytes, code: ErrorCode) -> None:
    assert _code(raw) == code


@pytest.mark.parametrize(
    "raw",
    [
        "9007199254740991",
        "-9007199254740991",
        "9007199254740993",
        "18446744073709551616",
        "-" + "9" * 100,
        str(int(float_info.max)),
        "1.7976931348623157e308",
        '"\\ud83d\\ude00 \\u00e9"',
        '"\\\\u0000"',
        ' {"a": [1, 2.5, true, null, "x"], "b": {}} ',
    ],
)
def test_what_is_at_the_edge_is_read_as_json_reads_it(raw: str) -> None:
    assert load_json(raw) == json.loads(raw)
    assert load_json(raw.encode()) == json.loads(raw)


@pytest.mark.parametrize("sign", ["", "-"])
def test_what_is_signed_has_no_integer_that_readers_round(sign: str) -> None:
    assert load_json(f"{sign}9007199254740991", exact=True) == int(f"{sign}9007199254740991")
    for digits in ("9007199254740992", "1" * 300, "1" * 5000):
        with pytest.raises(RemoteProtocolError) as refused:
            load_json(f"[{sign}{digits}]", exact=True)
        assert refused.value.code == ErrorCode.INVALID_NUMBER


def test_a_frame_has_its_bytes_and_no_more() -> None:
    for text in ('"' + "x" * 98 + '"', '"' + "é" * 49 + '"'):
        assert load_json(text, Limits(frame_bytes=100)) == text[1:-1]
        assert load_json(text.encode(), Limits(frame_bytes=100)) == text[1:-1]
        assert _code(text, frame_bytes=99) == ErrorCode.FRAME_TOO_LARGE
        assert _code(text.encode(), frame_bytes=99) == ErrorCode.FRAME_TOO_LARGE


def test_a_frame_that_is_too_large_is_fatal() -> None:
    with pytest.raises(RemoteProtocolError) as caught:
        load_json("[]", Limits(frame_bytes=1))
    assert (caught.value.fatal, caught.value.close_code) == (True, 1009)


def test_depth_has_a_limit() -> None:
    limits = Limits(depth=4)
    assert load_json('[[[[1]]],{"a":[[]]},"[[[[[["]', limits) == [[[[1]]], {"a": [[]]}, "[[[[[["]
    assert _code("[[[[[1]]]]]", depth=4) == ErrorCode.TOO_DEEP
    assert _code('[{"a":[{"b":[]}]}]', depth=4) == ErrorCode.TOO_DEEP


def test_the_default_depth_is_32() -> None:
    assert load_json("[" * 32 + "]" * 32) is not None
    assert _code("[" * 33 + "]" * 33) == ErrorCode.TOO_DEEP


def test_values_have_a_limit() -> None:
    limits = Limits(nodes=10)
    nine = '[[],{},{"a":1,"b":"x,[{,"},[1,2]]'
    assert load_json(nine, limits) == json.loads(nine)
    assert load_json("[1,2,3,4,5,6,7,8,9]", limits) == list(range(1, 10))
    assert _code("[1,2,3,4,5,6,7,8,9,0]", nodes=10) == ErrorCode.TOO_MANY_VALUES
    assert _code("[" + "{}," * 9 + "{ }]", nodes=10) == ErrorCode.TOO_MANY_VALUES


def test_a_text_with_too_many_strings_is_not_read_to_its_end() -> None:
    limits = Limits(nodes=10)
    most = "{" + ",".join(f'"key{n}":"a,b"' for n in range(9)) + "}"
    assert load_json(most, limits) == json.loads(most)
    # It is no JSON, for which it would have to be read.
    assert _code('"a,b"' * 20, nodes=10) == ErrorCode.INVALID_JSON
    assert _code('"a,b"' * 21, nodes=10) == ErrorCode.TOO_MANY_VALUES


def test_members_have_a_limit() -> None:
    three = '{"a":1,"b":2,"c":3}'
    assert load_json(three, Limits(members=3)) == {"a": 1, "b": 2, "c": 3}
    assert _code(three, members=2) == ErrorCode.TOO_MANY_MEMBERS


def test_names_have_a_limit() -> None:
    assert load_json('{"abc":1,"":2}', Limits(key_chars=3)) == {"abc": 1, "": 2}
    assert _code('{"abcd":1}', key_chars=3) == ErrorCode.KEY_TOO_LONG


def test_strings_have_a_limit_in_bytes() -> None:
    assert load_json('["ééééé"]', Limits(string_bytes=10)) == ["ééééé"]
    assert _code('["éééééx"]', string_bytes=10) == ErrorCode.STRING_TOO_LONG
    assert _code('{"a":{"b":["xxxxxxxxxxx"]}}', string_bytes=10) == ErrorCode.STRING_TOO_LONG


@pytest.mark.parametrize("key", ["audio", "image", "video", "file", "thumbnail", "url"])
def test_media_have_their_own_limit(key: str) -> None:
    frame = json.dumps({key: "x" * 20})
    assert load_json(frame, Limits(string_bytes=10, media_bytes=20)) == {key: "x" * 20}
    assert _code(frame, string_bytes=10, media_bytes=19) == ErrorCode.STRING_TOO_LONG


_json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-int(float_info.max), int(float_info.max))
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_characters="\x00", exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text("abc\u00e9\u2028"), inner),
    max_leaves=20,
)


@given(_json, st.booleans())
def test_what_json_writes_is_read(value: Any, ascii_only: bool) -> None:  # noqa: FBT001 - hypothesis calls it
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert load_json(text) == value
    assert load_json(text.encode()) == value


_pieces = st.sampled_from(
    [*'{}[]",:\\ /\n', "\\u0000", "\\ud800", "\\udc00", "a", '"a"', "1", "-", "1e999", "NaN", "é"]
)


@given(st.lists(_pieces, max_size=30).map("".join) | st.text() | st.binary())
def test_a_text_is_read_as_json_reads_it_or_refused(raw: str | bytes) -> None:
    tight = Limits(depth=3, nodes=8, members=2, key_chars=3, string_bytes=6, media_bytes=6)
    for limits in (Limits(), tight):
        try:
            value = load_json(raw, limits)
        except RemoteProtocolError:
            continue
        assert value == json.loads(raw)


@pytest.mark.parametrize(
    "raw",
    [
        '"' + '\\"' * 500_000,
        "[" * 33 + '"' + '\\"' * 500_000,
        "[" * 1_000_000,
        "{}," * 300_000,
        '{"a":' * 200_000,
        '"a",' * 250_000,
        '"' * 1_000_000,
        "\\" * 1_000_000,
        "[" + "1" * 1_000_000 + "]",
        '["' + "\\u0000" * 160_000 + '"]',
    ],
    ids=range(10),
)
def test_hostile_megabytes_are_refused_in_no_time(raw: str) -> None:
    before = time.process_time()
    with pytest.raises(RemoteProtocolError):
        load_json(raw)
    assert time.process_time() - before < 1


@pytest.mark.parametrize(
    ("raw", "code"),
    [
        ("[]" * 4_000_000, ErrorCode.TOO_MANY_VALUES),
        ("{ }" * 2_500_000, ErrorCode.TOO_MANY_VALUES),
        ("]" * 8_000_000 + "[" * 33, ErrorCode.INVALID_JSON),
    ],
    ids=range(3),
)
def test_brackets_without_commas_are_refused_in_no_time(raw: str, code: ErrorCode) -> None:
    before = time.process_time()
    assert _code(raw) == code
    assert time.process_time() - before < 0.5
