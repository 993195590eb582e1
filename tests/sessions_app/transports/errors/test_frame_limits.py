"""Frames at a limit, and malformed frames."""

from tests.live_server import Dial
from tests.sessions_app.transports.errors.frames import image_frame_of, nested, text_event
from tests.sessions_app.transports.errors.scenes import LIMITS, Scene

AT_THE_LIMIT = [
    text_event(context=nested(LIMITS.depth - 1)),
    text_event(context={str(i): i for i in range(LIMITS.members)}),
    text_event(context={"k" * LIMITS.key_chars: 1}),
    text_event(messages=[{"role": "user", "content": "x"}] * LIMITS.messages),
    text_event(event_id="e" * LIMITS.event_id_chars),
    image_frame_of(LIMITS.frame_bytes),
]


def test_what_is_at_the_limit_is_taken(scene: Scene) -> None:
    for frame in AT_THE_LIMIT:
        client = scene.dial(scene.alice)
        client.create_session(agent="echo")
        client.send_raw(frame)
        assert client.settle() == [], frame[:200]


WRONG_FRAMES = [
    ("", "invalid_json"),
    ("null", "invalid_event"),
    ("[]", "invalid_event"),
    ('"ping"', "invalid_event"),
    ("{}", "invalid_event"),
    ('{"type": 1}', "invalid_event"),
    ('{"type": ""}', "invalid_event"),
    ('{"type": "ping"} x', "invalid_json"),
    ('\ufeff{"type": "ping"}', "invalid_json"),
    ('{"type": "ping", "timestamp": Infinity}', "invalid_number"),
    ('{"type": "ping", "timestamp": 1e999}', "invalid_number"),
    ('{"type": "ping", "timestamp": 9007199254740992}', "invalid_event"),
    ('{"type": "input.text", "text": "\\ud800"}', "invalid_text"),
    ('{"type": "input.text", "text": "\\u0000"}', "invalid_text"),
    ('{"type": "input.text", "text": 5}', "invalid_event"),
    ('{"type": "input.text", "text": null}', "invalid_event"),
    ('{"type": "input.text", "text": "x", "messages": "y"}', "invalid_event"),
    ('{"type": "input.audio", "audio": "AAAA"}', "invalid_event"),
    ('{"type": "input.file", "file": "AAAA", "filename": "a"}', "invalid_event"),
    ('{"type": "tool.result", "result": "1"}', "invalid_event"),
    ('{"type": "payment.submit"}', "invalid_event"),
    ('{"type": "voice.invite", "sdp": 5}', "invalid_event"),
    ('{"type": "client.capabilities"}', "invalid_event"),
    (text_event(event_id="e" * (LIMITS.event_id_chars + 1)), "invalid_event"),
]


def test_a_frame_that_is_wrong_is_named_for_what_is_wrong(dial: Dial) -> None:
    for frame, code in WRONG_FRAMES:
        client = dial()
        client.send_raw(frame)
        assert client.expect("session.error")["error"]["code"] == code, frame[:200]
        assert client.settle() == []
        client.close()
