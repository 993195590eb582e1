"""Deltas, windows, records and bodies, at their limits and one past them."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from federation_app.envelope import limits
from federation_app.envelope.errors import EnvelopeCode, EnvelopeError
from federation_app.envelope.members import body
from federation_app.envelope.members.reading import EnvelopeBody, envelope_of
from federation_app.envelope.streams import framing
from federation_app.envelope.streams.deltas import (
    DeltaType,
    StreamDelta,
    ack_of,
    delta_at,
    delta_of,
    is_delta,
    read_delta,
)
from federation_app.envelope.streams.windows import ReceiveWindow, SendWindow
from tests.federation_app.envelope.vectors import vector

pytestmark = pytest.mark.any_database
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MINIMAL = vector("01-ask-eddsa-minimal")["envelope"]


def chunk(seq: int, text: str = "a", **payload: Any) -> StreamDelta:
    return delta_at(seq, "str-1", NOW, DeltaType.CHUNK, {"text": text, **payload})


@pytest.mark.parametrize(
    ("window", "counts_as"),
    [
        (0, None),
        (-1, None),
        (1, 1),
        (64, 64),
        (1024, 1024),
        (1025, 1024),
        (2**31 - 1, 1024),
        (2**31, None),
        (2**63, None),
        (True, None),
        ("64", None),
        (1.5, None),
    ],
)
def test_a_delta_window_has_bounds(window: Any, counts_as: int | None) -> None:
    value = {**MINIMAL, "delta_window": window}
    if counts_as is not None:
        assert envelope_of(value).window == counts_as
        return
    with pytest.raises(EnvelopeError) as refused:
        envelope_of(value)
    assert refused.value.code is EnvelopeCode.MALFORMED


def test_a_producer_stops_at_the_window_until_an_acknowledgement() -> None:
    window = SendWindow(3)
    assert [window.take() for _ in range(3)] == [0, 1, 2]
    assert not window.has_room
    with pytest.raises(RuntimeError):
        window.take()
    window.acknowledge(0)
    assert window.take() == 3
    window.acknowledge(0)
    assert not window.has_room
    with pytest.raises(EnvelopeError) as refused:
        window.acknowledge(4)
    assert refused.value.code is EnvelopeCode.MALFORMED
    assert SendWindow(2, after=17).take() == 18


def test_a_consumer_names_the_delta_that_is_missing() -> None:
    window = ReceiveWindow(4)
    assert window.take(chunk(0))
    assert not window.take(chunk(0))
    with pytest.raises(EnvelopeError) as refused:
        window.take(chunk(2))
    assert (refused.value.code, refused.value.expected) == (EnvelopeCode.CONFLICT, 1)
    assert refused.value.payload()["expected"] == 1
    assert window.take(chunk(1, "b", offset=1))
    assert (window.text, window.ack, window.ack) == ("ab", 1, None)
    with pytest.raises(EnvelopeError):
        window.take(chunk(2, "x", offset=5))
    with pytest.raises(EnvelopeError):
        window.take(chunk(2, "x", offset=[]))
    assert window.take(delta_at(2, "str-1", NOW, DeltaType.PATCH, {"text": "whole"}))
    assert window.text == "whole"
    assert window.take(delta_at(3, "str-1", NOW, DeltaType.DONE, {}))
    assert window.has_ended
    assert not window.take(chunk(4))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 30), max_size=120), st.integers(1, 8))
def test_deltas_that_are_delayed_doubled_and_dropped_give_one_text(
    arrivals: list[int], size: int
) -> None:
    deltas = [chunk(seq, chr(97 + seq % 26), offset=seq) for seq in range(31)]
    window = ReceiveWindow(size)
    for seq in [*arrivals, *range(31)]:
        try:
            window.take(deltas[seq])
        except EnvelopeError as error:
            # The producer sends again from there.
            window.take(deltas[error.expected or 0])
    for seq in range(window.last + 1, 31):
        window.take(deltas[seq])

    assert window.text == "".join(delta.payload["text"] for delta in deltas)


def test_a_delta_is_read_and_refused() -> None:
    delta = chunk(17)
    assert read_delta(delta.encoded()) == delta
    assert is_delta(json.loads(delta.encoded()))
    assert not is_delta(MINIMAL)
    value = json.loads(delta.encoded())
    for name in value:
        rest = {key: field for key, field in value.items() if key != name}
        if name == "payload":
            assert delta_of(rest).payload == {}
            continue
        with pytest.raises(EnvelopeError) as refused:
            delta_of(rest)
        expected_code = EnvelopeCode.CONFLICT if name == "delta_seq" else EnvelopeCode.MALFORMED
        assert refused.value.code is expected_code
    wrongs: list[dict[str, Any]] = [
        {"delta_seq": -1},
        {"delta_seq": 2**53},
        {"type": "text"},
        {"more": 1},
        {"ts": "now"},
        {"payload": []},
        {"stream_id": "a/b"},
        {"stream_id": ""},
    ]
    for wrong in wrongs:
        with pytest.raises(EnvelopeError) as refused:
            delta_of({**value, **wrong})
        assert refused.value.code is EnvelopeCode.MALFORMED


def test_an_acknowledgement_is_a_number_of_a_delta() -> None:
    assert (ack_of({"ack": 17}), ack_of({}), ack_of([])) == (17, None, None)
    for wrong in (-1, True, "1", 1.5, None, 2**53):
        with pytest.raises(EnvelopeError):
            ack_of({"ack": wrong})


def test_records_have_their_length() -> None:
    assert framing.read_records(framing.framed(b"{}") + framing.framed(b"[1]")) == [b"{}", b"[1]"]
    assert framing.read_records("{}") == [b"{}"]
    for wrong in (
        b"",
        b"\0",
        b"\0\0\0\0",
        b"\0\0\0\5{}",
        framing.framed(b"{}") + b"\0",
        framing.framed(b"1") * 65,
    ):
        with pytest.raises(EnvelopeError) as refused:
            framing.read_records(wrong)
        assert refused.value.code is EnvelopeCode.MALFORMED
    with pytest.raises(EnvelopeError) as refused:
        framing.read_records(framing.PREFIX.pack(limits.ENVELOPE_BYTES + 1))
    assert refused.value.code is EnvelopeCode.TOO_LARGE


def text_body(content: str, **more: str) -> EnvelopeBody:
    return EnvelopeBody(type="text/plain", content=content, **more)


def test_a_body_is_decoded() -> None:
    text = "héllo " * 20
    packed = gzip.compress(text.encode())
    plain = base64.b64encode(packed).decode()
    assert body.text_of(text_body(text)) == text
    assert body.text_of(text_body(plain, encoding="base64", compression="gzip")) == text
    url = base64.urlsafe_b64encode(packed).decode()
    assert body.text_of(text_body(url, encoding="base64url", compression="gzip")) == text


@pytest.mark.parametrize(
    ("given_body", "code"),
    [
        (text_body("x", encoding="utf-16"), EnvelopeCode.UNSUPPORTED),
        (text_body("x", compression="br"), EnvelopeCode.UNSUPPORTED),
        (EnvelopeBody(type="image/png", content="x"), EnvelopeCode.UNSUPPORTED),
        (text_body("x", compression="gzip"), EnvelopeCode.MALFORMED),
        (text_body("!!!", encoding="base64"), EnvelopeCode.MALFORMED),
        (text_body("AAAA", encoding="base64", compression="gzip"), EnvelopeCode.MALFORMED),
        (text_body("/w==", encoding="base64"), EnvelopeCode.MALFORMED),
        (text_body("AA==", encoding="base64"), EnvelopeCode.MALFORMED),
        (
            text_body(
                base64.b64encode(gzip.compress(bytes(9_000_000))).decode(),
                encoding="base64",
                compression="gzip",
            ),
            EnvelopeCode.TOO_LARGE,
        ),
        (
            text_body(
                base64.b64encode(gzip.compress(b"x" * 100)[:-4]).decode(),
                encoding="base64",
                compression="gzip",
            ),
            EnvelopeCode.MALFORMED,
        ),
    ],
    ids=range(10),
)
def test_a_body_that_cannot_be_decoded_is_refused(
    given_body: EnvelopeBody, code: EnvelopeCode
) -> None:
    with pytest.raises(EnvelopeError) as refused:
        body.text_of(given_body)
    assert refused.value.code is code
