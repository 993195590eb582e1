"""Values of an unfinished JSON text."""

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from upp.json_values.partial import parse_partial


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("   ", None),
        ("I would rather talk", None),
        ("{", {}),
        ("[", []),
        ('{"a', {}),
        ('{"a"', {}),
        ('{"a":', {}),
        ('{"a": ', {}),
        ('{"a": "', {"a": ""}),
        ('{"a": "b', {"a": "b"}),
        ('{"a": "b\\', {"a": "b"}),
        ('{"a": "b\\\\', {"a": "b\\"}),
        ('{"a": "b\\u00e', {"a": "b"}),
        ('{"a": "b\\u00e9', {"a": "bé"}),
        ('{"a": "b\\ud83d', {"a": "b"}),
        ('{"a": "b\\ud83d\\', {"a": "b"}),
        ('{"a": "b\\ud83d\\ude0', {"a": "b"}),
        ('{"a": "b\\ud83d\\ude00', {"a": "b\N{GRINNING FACE}"}),
        ('{"a": "b\\\\ud83d', {"a": "b\\ud83d"}),
        ('{"a": "\\"', {"a": '"'}),
        ('{"a": "b", ', {"a": "b"}),
        ('{"a": "b", "c', {"a": "b"}),
        ('{"a": "b", "c": [', {"a": "b", "c": []}),
        ('{"a": 1', {"a": 1}),
        ('{"a": -1.', {"a": -1}),
        ('{"a": 1.5e', {"a": 1.5}),
        ('{"a": -', {}),
        ('{"a": 1, "b": tru', {"a": 1}),
        ('{"a": true', {"a": True}),
        ('{"a": [1, 2', {"a": [1, 2]}),
        ('{"a": [1, ', {"a": [1]}),
        ('[true, {"a": null}', [True, {"a": None}]),
        ('{"a": {"b": [{}, {"c"', {"a": {"b": [{}, {}]}}),
        ('{"a": 1} and more', None),
        ("]", None),
        ('"a', "a"),
        ("12", 12),
        ("[" * 5000, None),
    ],
)
def test_a_text_is_reported_as_far_as_it_goes(text: str, value: Any) -> None:
    assert parse_partial(text) == value


values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@given(values)
def test_a_whole_text_is_its_value(value: Any) -> None:
    assert parse_partial(msgspec.json.encode(value).decode()) == value


@given(st.dictionaries(st.text(), values, min_size=1), st.data())
def test_a_beginning_has_names_of_the_whole_only(
    value: dict[str, Any], data: st.DataObject
) -> None:
    text = msgspec.json.encode(value).decode()
    cut = text[: data.draw(st.integers(1, len(text) - 1))]
    partial = parse_partial(cut)
    assert partial is None or list(partial) == list(value)[: len(partial)]
