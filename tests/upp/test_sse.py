"""Server-sent events out of bytes."""

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from upp.providers.http import sse
from upp.providers.http.sse import EventReader, EventTooLongError, TextReader

STREAM = (
    b"\xef\xbb\xbfdata: zero\n\n"
    b": a comment\nevent: x\ndata: one\n\ndata:two\r\n\r\ndata: three\rdata: lines\r\r"
    b"id: 1\n\ndata\n\ndata: \xe2\x80\xa8 four\n\n"
)
EVENTS = [b"zero", b"one", b"two", b"three\nlines", b"\xe2\x80\xa8 four"]


@given(st.lists(st.integers(min_value=0, max_value=len(STREAM)), max_size=12))
def test_bytes_in_any_pieces_give_the_same_events(cuts: list[int]) -> None:
    reader = EventReader()
    edges = [0, *sorted(cuts), len(STREAM)]
    pieces = [STREAM[start:end] for start, end in pairwise(edges)]
    assert [event for piece in pieces for event in reader.feed(piece)] == EVENTS


def test_an_event_without_its_empty_line_waits() -> None:
    reader = EventReader()
    assert reader.feed(b"data: one\n") == []
    assert reader.feed(b"\n") == [b"one"]


@pytest.mark.parametrize("piece", [b"x" * 11, b"data: 1234567890\n", b"data:\n" * 11])
def test_an_event_without_an_end_is_refused(monkeypatch: pytest.MonkeyPatch, piece: bytes) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 33)
    reader = EventReader()
    for _ in range(3):
        reader.feed(piece)
    with pytest.raises(EventTooLongError):
        reader.feed(piece)


def test_an_oversized_event_is_refused_even_in_one_piece(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 33)
    with pytest.raises(EventTooLongError):
        EventReader().feed(b"data: " + b"x" * 33 + b"\n\n")


def test_an_event_in_small_pieces_takes_the_time_of_its_bytes() -> None:
    data = b"data: " + b"x" * (sse.MAX_EVENT_BYTES - 6) + b"\n\n"
    reader = EventReader()
    began = time.process_time()
    events = [event for at in range(0, len(data), 64) for event in reader.feed(data[at : at + 64])]
    # Reading all of an event anew for each piece took minutes.
    assert (len(events), time.process_time() - began < 10) == (1, True)


def test_an_answer_that_is_one_text_is_one_event_with_a_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reader = TextReader()
    assert reader.end() == []
    assert [reader.feed(b'{"a"'), reader.feed(b": 1}")] == [[], []]
    assert reader.end() == [b'{"a": 1}']
    monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 9)
    with pytest.raises(EventTooLongError):
        reader.feed(b"xx")
