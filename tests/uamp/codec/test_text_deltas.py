"""Frames of text deltas that are made without an event."""

import json
import uuid

import pytest

import uamp

FIRST = "00112233-4455-4677-8899-aabbccddeeff"


@pytest.mark.parametrize("text", ["hi", "", '","session_id":"', "Grüße \U0001f600\n\x01"])
@pytest.mark.parametrize("offset", [0, 7])
def test_a_frame_is_that_of_its_event(text: str, offset: int) -> None:
    deltas = uamp.TextDeltas('r"1', event_id=FIRST)
    head, tail = deltas.frame(text, offset=offset, timestamp=12)
    event_id = json.loads(head + tail)["event_id"]
    event = uamp.ResponseDelta(
        event_id=event_id,
        timestamp=12,
        response_id='r"1',
        delta=uamp.Delta(type="text", text=text),
        offset=offset,
    )
    assert head + tail == uamp.encode(event)
    stamp = uamp.session_stamp('s"1')
    assert head + stamp + tail == uamp.encode(event, session_id='s"1')


def test_each_frame_has_a_uuid_of_its_own() -> None:
    deltas = uamp.TextDeltas("r1", event_id=FIRST)
    frames = ["".join(deltas.frame("x", offset=n, timestamp=1)) for n in range(300)]
    ids = [json.loads(frame)["event_id"] for frame in frames]
    assert len(set(ids)) == 300
    assert {
        (uuid.UUID(frame_id).version, str(uuid.UUID(frame_id)) == frame_id) for frame_id in ids
    } == {(4, True)}


def test_text_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(uamp.LocalProtocolError):
        uamp.TextDeltas("r1", event_id=FIRST).frame("\ud800", offset=0, timestamp=1)
