"""The events of a response as deltas: appended, replaced, sent again, collected and cut."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import uamp
from federation_app.envelope.streams.deltas import DeltaType
from federation_app.exchange.answers import CHUNK_CHARS, AnswerDeltas, envelope_error
from uamp import ErrorCode, RemoteProtocolError
from uamp import events as ev

pytestmark = pytest.mark.any_database


def text(piece: str, offset: int | None = None) -> ev.ResponseDelta:
    """Return a delta of text."""
    return ev.ResponseDelta(response_id="r", delta=ev.Delta(type="text", text=piece), offset=offset)


def read(answer: AnswerDeltas, before: str = "") -> str:
    """Return the text of a reader after what is pending."""
    while answer.has_pending:
        type_, payload = answer.take()
        if type_ is DeltaType.PATCH:
            before = payload["text"]
        elif type_ is DeltaType.CHUNK:
            assert payload["offset"] == len(before)
            before += payload["text"]
    return before


@settings(max_examples=200, deadline=None)
@given(
    st.lists(st.tuples(st.text("ab\u00e9\U0001f600", max_size=5), st.integers(0, 9), st.booleans()))
)
def test_a_reader_has_the_text_of_the_answer_at_any_time(
    pieces: list[tuple[str, int, bool]],
) -> None:
    answer, full_text, seen = AnswerDeltas(replaces=False), "", ""
    for piece, back, is_read in pieces:
        at = max(0, len(full_text) - back)
        if not full_text.startswith(full_text[:at] + piece):
            full_text = full_text[:at] + piece
        answer.feed(text(piece, at))
        assert answer.text == full_text
        if is_read:
            seen = read(answer, seen)
            assert seen == full_text
    assert read(answer, seen) == full_text


def test_a_long_text_is_cut_and_the_end_comes_last() -> None:
    answer = AnswerDeltas(replaces=True)
    answer.feed(text("a" * (2 * CHUNK_CHARS + 1), 0))
    answer.feed(ev.ResponseDone(response_id="r"))
    types = []
    while answer.has_pending:
        types.append(answer.take()[0])
    assert types == [DeltaType.PATCH, DeltaType.CHUNK, DeltaType.CHUNK, DeltaType.DONE]
    assert answer.has_ended


def test_the_progress_of_a_tool_is_the_last_one() -> None:
    answer = AnswerDeltas(replaces=False)
    for percent in (10, 90):
        answer.feed(ev.Progress(target="tool", percent=percent, message="reads", response_id="r"))
    assert answer.take() == (DeltaType.PROGRESS, {"pct": 90, "message": "reads"})
    assert not answer.has_pending


@pytest.mark.parametrize(
    ("code", "becomes"),
    [
        (ErrorCode.PAYMENT_REQUIRED, "4.02"),
        (ErrorCode.AGENT_NOT_FOUND, "4.04"),
        (ErrorCode.RATE_LIMITED, "4.29"),
        (ErrorCode.INVALID_EVENT, "4.00"),
        (ErrorCode.PROVIDER_ERROR, "5.00"),
        (ErrorCode.TIMEOUT, "5.00"),
        (ErrorCode.BUSY, "5.04"),
        (ErrorCode.AGENT_OFFLINE, "5.04"),
        (ErrorCode.INTERNAL_ERROR, "5.00"),
    ],
)
def test_an_error_has_a_code_of_envelopes(code: ErrorCode, becomes: str) -> None:
    error = RemoteProtocolError(code, "No.", details={"retry_after": 2})
    assert envelope_error(error).payload() == {
        "code": becomes,
        "message": "No.",
        "detail": str(code),
        "retry_after": 2,
    }
    answer = AnswerDeltas(replaces=False)
    answer.feed(
        ev.ResponseError(response_id="r", error=uamp.events.ErrorDetail(code=code, message="No."))
    )
    type_, payload = answer.take()
    assert (type_, payload["code"]) == (DeltaType.ERROR, becomes)
    # A busy server says when to try again, even if its error does not.
    assert ("retry_after" in payload) is (becomes == "5.04")
