"""Frames that the server cannot parse, one per error code."""

from tests.client import Frame, new_event
from tests.sessions_app.transports.errors.frames import image_frame_of, nested, text_event
from tests.sessions_app.transports.errors.scenes import LIMITS, Scene, row
from uamp import ErrorCode


@row(ErrorCode.FRAME_TOO_LARGE)
def _frame_too_large(scene: Scene) -> str:
    return image_frame_of(LIMITS.frame_bytes + 1)


@row(ErrorCode.BINARY_FRAME)
def _binary_frame(scene: Scene) -> bytes:
    return b'{"type": "ping"}'


@row(ErrorCode.INVALID_JSON)
def _invalid_json(scene: Scene) -> str:
    return '{"type": "ping"'


@row(ErrorCode.DUPLICATE_KEY)
def _duplicate_key(scene: Scene) -> str:
    return '{"type": "ping", "event_id": "a", "event_id": "b"}'


@row(ErrorCode.INVALID_NUMBER)
def _invalid_number(scene: Scene) -> str:
    return '{"type": "ping", "timestamp": NaN}'


@row(ErrorCode.INVALID_TEXT)
def _invalid_text(scene: Scene) -> str:
    return text_event(text="a\x00b")


@row(ErrorCode.TOO_DEEP)
def _too_deep(scene: Scene) -> str:
    return text_event(context=nested(LIMITS.depth))


@row(ErrorCode.TOO_MANY_VALUES)
def _too_many_values(scene: Scene) -> str:
    return text_event(context={"a": [0] * LIMITS.nodes})


@row(ErrorCode.TOO_MANY_MEMBERS)
def _too_many_members(scene: Scene) -> str:
    return text_event(context={str(i): i for i in range(LIMITS.members + 1)})


@row(ErrorCode.KEY_TOO_LONG)
def _key_too_long(scene: Scene) -> str:
    return text_event(context={"k" * (LIMITS.key_chars + 1): 1})


@row(ErrorCode.STRING_TOO_LONG)
def _string_too_long(scene: Scene) -> str:
    return text_event(text="x" * (LIMITS.string_bytes + 1))


@row(ErrorCode.EVENT_TOO_LARGE)
def _event_too_large(scene: Scene) -> str:
    half = "x" * (LIMITS.event_bytes // 2)
    return text_event(text=half, context={"a": half})


@row(ErrorCode.INVALID_EVENT)
def _invalid_event(scene: Scene) -> Frame:
    return new_event("input.text")


@row(ErrorCode.TOO_MANY_ITEMS)
def _too_many_items(scene: Scene) -> str:
    return text_event(messages=[{"role": "user", "content": "x"}] * (LIMITS.messages + 1))


@row(ErrorCode.TOO_MANY_BAD_FRAMES)
def _too_many_bad_frames(scene: Scene) -> str:
    for _ in range(LIMITS.bad_frames_per_minute):
        scene.client.send_raw("{")
        assert scene.client.expect("session.error")["error"]["code"] == "invalid_json"
    return "{"
