"""JSON Patch: the operations of RFC 6902, and patches that make one value of another."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from uamp.json_patch import PatchError, apply_patch, make_patch, same_json

BYTES = 10_000
values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(-2, 2) | st.text("a/~0", max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text("a/~01", max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


@given(values, values)
def test_a_patch_makes_one_value_of_another(before: Any, after: Any) -> None:
    json_before = json.dumps(before)

    patched_value = apply_patch(before, make_patch(before, after), max_bytes=BYTES)

    assert same_json(patched_value, after)
    assert json.dumps(before) == json_before
    assert make_patch(after, after) == []


# The examples of RFC 6902, appendix A, whose number is the first member.
EXAMPLES: list[tuple[str, Any, list[dict[str, Any]], Any]] = [
    (
        "A.1",
        {"foo": "bar"},
        [{"op": "add", "path": "/baz", "value": "qux"}],
        {"foo": "bar", "baz": "qux"},
    ),
    ("A.2", {"foo": [1, 2]}, [{"op": "add", "path": "/foo/1", "value": 3}], {"foo": [1, 3, 2]}),
    ("A.3", {"baz": 1, "foo": 2}, [{"op": "remove", "path": "/baz"}], {"foo": 2}),
    ("A.4", {"foo": [1, 2, 3]}, [{"op": "remove", "path": "/foo/1"}], {"foo": [1, 3]}),
    ("A.5", {"baz": 1}, [{"op": "replace", "path": "/baz", "value": 2}], {"baz": 2}),
    (
        "A.6",
        {"foo": {"bar": 1, "waldo": 2}, "qux": {"corge": 3}},
        [{"op": "move", "from": "/foo/waldo", "path": "/qux/thud"}],
        {"foo": {"bar": 1}, "qux": {"corge": 3, "thud": 2}},
    ),
    (
        "A.7",
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    ("A.8", {"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "qux"}], {"baz": "qux"}),
    (
        "A.10",
        {"foo": 1},
        [{"op": "add", "path": "/child", "value": {"a": {}}}],
        {"foo": 1, "child": {"a": {}}},
    ),
    (
        "A.11",
        {"foo": 1},
        [{"op": "add", "path": "/baz", "value": 2, "xyz": 3}],
        {"foo": 1, "baz": 2},
    ),
    ("A.14", {"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    (
        "A.16",
        {"foo": ["bar"]},
        [{"op": "add", "path": "/foo/-", "value": ["abc"]}],
        {"foo": ["bar", ["abc"]]},
    ),
    ("whole", {"foo": 1}, [{"op": "replace", "path": "", "value": {}}], {}),
    ("copy", {"a": [1]}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": [1], "b": [1]}),
    ("null", {"a": 1}, [{"op": "add", "path": "/a", "value": None}], {"a": None}),
]


@pytest.mark.parametrize(
    ("name", "before", "patch", "after"), EXAMPLES, ids=[e[0] for e in EXAMPLES]
)
def test_operations_do_what_the_specification_prints(
    name: str, before: Any, patch: list[dict[str, Any]], after: Any
) -> None:
    assert same_json(apply_patch(before, patch, max_bytes=BYTES), after), name


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/a", "value": 2},
        {"op": "test", "path": "/a", "value": True},
        {"op": "add", "path": "/b/c", "value": 1},
        {"op": "add", "path": "/list/5", "value": 1},
        {"op": "add", "path": "/list/01", "value": 1},
        {"op": "add", "path": "/list/\u0661", "value": 1},
        {"op": "add", "path": "/list/x", "value": 1},
        {"op": "add", "path": "/a/b", "value": 1},
        {"op": "add", "path": "/b"},
        {"op": "replace", "path": "/b", "value": 1},
        {"op": "remove", "path": "/list/-"},
        {"op": "remove", "path": "/list/9"},
        {"op": "move", "from": "/list", "path": "/list/0"},
        {"op": "copy", "path": "/b"},
        {"op": "copy", "from": "/b", "path": "/c"},
        {"op": "add", "path": "b", "value": 1},
        {"op": "add", "path": "/~2", "value": 1},
        {"op": "add", "value": 1},
        {"op": "grow", "path": "/a"},
        {"path": "/a"},
        {"op": 1, "path": "/a"},
        {"op": ["add"], "path": "/a", "value": 1},
    ],
    ids=str,
)
def test_an_operation_that_cannot_be_made_changes_nothing(operation: dict[str, Any]) -> None:
    before = {"a": 1, "list": [1, 2]}
    first = {"op": "replace", "path": "/a", "value": 1}

    with pytest.raises(PatchError, match=r"^Operation 1: "):
        apply_patch(before, [first, operation], max_bytes=BYTES)

    assert before == {"a": 1, "list": [1, 2]}


def test_copies_do_not_grow_a_document_beyond_its_bound() -> None:
    copies = [{"op": "copy", "from": "", "path": f"/{number}"} for number in range(64)]

    with pytest.raises(PatchError, match="exceed 10000 bytes"):
        apply_patch({"a": "x" * 100}, copies, max_bytes=BYTES)


def test_an_array_that_has_grown_is_appended_to() -> None:
    patch = make_patch({"items": [1]}, {"items": [1, 2, 3]})

    assert patch == [
        {"op": "add", "path": "/items/-", "value": 2},
        {"op": "add", "path": "/items/-", "value": 3},
    ]
    assert apply_patch({"items": [1]}, patch, max_bytes=BYTES) == {"items": [1, 2, 3]}


@pytest.mark.parametrize(
    ("before", "operation", "after"),
    [
        ([1, {"a": 1}], {"op": "replace", "path": "/1/a", "value": 2}, [1, {"a": 2}]),
        ([1, {"a": 1}], {"op": "remove", "path": "/1/a"}, [1, {}]),
        ({"a": 1}, {"op": "remove", "path": ""}, None),
        ({"a": 1}, {"op": "add", "path": "", "value": [2]}, [2]),
        ([[1, 2], 3], {"op": "add", "path": "/0/1", "value": 4}, [[1, 4, 2], 3]),
    ],
)
def test_a_place_within_an_array_is_changed(
    before: Any, operation: dict[str, Any], after: Any
) -> None:
    assert apply_patch(before, [operation], max_bytes=BYTES) == after


@pytest.mark.parametrize("path", ["/a/b", "/items/2", "/items/01", "/items/x", "/items/0/b"])
def test_an_addition_needs_an_existing_place(path: str) -> None:
    operation = {"op": "add", "path": path, "value": 1}

    with pytest.raises(PatchError, match="nothing can be added"):
        apply_patch({"a": 1, "items": [1]}, [operation], max_bytes=BYTES)


def test_an_array_that_has_changed_otherwise_is_replaced() -> None:
    assert make_patch({"items": [1, 2]}, {"items": [2]}) == [
        {"op": "replace", "path": "/items", "value": [2]}
    ]
