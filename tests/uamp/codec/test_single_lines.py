"""JSON on one line, for readers that split lines at more than line feeds."""

import json

import msgspec
import pytest

from uamp.codec.single_lines import single_lines

SEPARATORS = "\v\f\x1c\x1d\x1e\x85\u2028\u2029"


@pytest.mark.parametrize("char", SEPARATORS, ids=ascii)
def test_a_value_takes_one_line_and_stays_the_same(char: str) -> None:
    value = {"text": f"é{char}\\{char}“b”", char: "—"}
    line = single_lines(msgspec.json.encode(value))
    assert line.decode().splitlines() == [line.decode()]
    assert json.loads(line) == value


def test_ends_of_lines_and_all_other_text_are_kept() -> None:
    for text in (b"data: {}\n\n", "id: 1\ndata: {“é\u2026\u00a0”}\n\n".encode()):
        assert single_lines(text) == text
