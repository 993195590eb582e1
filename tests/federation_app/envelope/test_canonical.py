"""The canonical form of an envelope: that of RFC 8785, and cheap for any text."""

from __future__ import annotations

from typing import Any

import pytest
import rfc8785
from hypothesis import given, settings
from hypothesis import strategies as st

from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.signatures.canonical import canonical, without_signature
from tests.federation_app.envelope.vectors import SIGNED, vector

pytestmark = pytest.mark.any_database

texts = st.text(st.characters(exclude_categories=["Cs"]))
# Names that sort differently by code points and by UTF-16, in one object.
names = texts | st.sampled_from(["\ufb33", "\U0001f600", "\u20ac", "\r", "1", "\x7f", "\u2028"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner, max_size=6),
    max_leaves=16,
)


@settings(max_examples=500, deadline=None)
@given(values)
def test_the_canonical_form_of_any_value_is_that_of_rfc_8785(value: Any) -> None:
    assert canonical(value) == rfc8785.dumps(value)


@pytest.mark.parametrize("char", [chr(n) for n in (*range(0x20), 0x22, 0x5C, 0x7F, 0x2028)])
def test_every_character_is_escaped_as_in_rfc_8785(char: str) -> None:
    assert canonical({char: [char, 0.5]}) == rfc8785.dumps({char: [char, 0.5]})
    assert canonical([char]) == rfc8785.dumps([char])


@pytest.mark.parametrize("value", ["\ud800", {"\ud800": 1}, 2**53, [float("nan")], {"x": {1, 2}}])
def test_a_value_without_a_canonical_form_is_malformed(value: Any) -> None:
    with pytest.raises(EnvelopeError) as refused:
        canonical(value)
    assert refused.value.code is EnvelopeCode.MALFORMED


@pytest.mark.parametrize("extra", [{}, {"x": 0.5}, {"\u20ac": 1}])
def test_text_is_not_escaped_in_python(
    extra: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"type": "text/plain", "content": "\n" * 5000, **extra}
    value = {**without_signature(vector(SIGNED[0])["envelope"]), "body": body, "ext": {"y": 1.5}}
    expected = rfc8785.dumps(value)
    serialised: list[Any] = []
    dumps = rfc8785.dumps

    def counted(value: Any) -> bytes:
        serialised.append(value)
        return dumps(value)

    monkeypatch.setattr(rfc8785, "dumps", counted)
    assert canonical(value) == expected
    assert all(isinstance(number, float) for number in serialised)
