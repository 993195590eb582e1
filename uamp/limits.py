"""Every limit on frames and events (UAMP specifies none; these are this server's).

One field per limit, with its unit in its name and its reason in its description: the reference
table is printed from here.
"""

from typing import Annotated

import msgspec

_KIB = 1024
_MIB = 1024 * 1024


def _about(description: str) -> msgspec.Meta:
    return msgspec.Meta(ge=1, description=description)


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits on what one side accepts from the other. All byte counts are UTF-8 bytes."""

    frame_bytes: Annotated[int, _about("One whole frame; a larger one closes the socket.")] = (
        8 * _MIB
    )
    unauthenticated_frame_bytes: Annotated[int, _about("One frame before authentication.")] = (
        16 * _KIB
    )
    event_bytes: Annotated[int, _about("One event without its media.")] = 256 * _KIB
    media_bytes: Annotated[int, _about("One base64 medium.")] = 8 * _MIB
    string_bytes: Annotated[int, _about("One string that is not media.")] = 256 * _KIB
    depth: Annotated[int, _about("Nested objects and arrays.")] = 32
    nodes: Annotated[int, _about("JSON values in one frame.")] = 10_000
    members: Annotated[int, _about("Members of one JSON object.")] = 1_000
    key_chars: Annotated[int, _about("Characters of one member name.")] = 256
    event_id_chars: Annotated[int, _about("Characters of an event_id.")] = 128
    messages: Annotated[int, _about("Messages of a history sent with a turn.")] = 500
    messages_bytes: Annotated[int, _about("An event that carries a history, without media.")] = _MIB
    tools: Annotated[int, _about("Tools declared in one event.")] = 128
    tool_name_chars: Annotated[int, _about("The name of one tool.")] = 128
    tool_schema_bytes: Annotated[int, _about("The JSON Schema of one tool.")] = 64 * _KIB
    tool_result_bytes: Annotated[int, _about("The result of one tool call.")] = 256 * _KIB
    state_bytes: Annotated[int, _about("The state of one chat, as JSON.")] = 64 * _KIB
    state_depth: Annotated[int, _about("Nested objects and arrays of a chat's state.")] = 16
    patch_operations: Annotated[int, _about("Operations in one patch of a chat's state.")] = 256
    sessions_per_connection: Annotated[int, _about("Sessions open on one connection.")] = 64
    sessions_per_chat: Annotated[
        int, _about("Sessions of one person in one chat on one connection.")
    ] = 8
    pending_inputs: Annotated[int, _about("Inputs that wait for response.create.")] = 64
    event_ids_remembered: Annotated[int, _about("Event ids remembered per session.")] = 1_024
    replies_per_event: Annotated[int, _about("Reply frames remembered per event id.")] = 8
    reply_chars_remembered: Annotated[
        int, _about("Characters of reply frames remembered per session.")
    ] = 256 * _KIB
    bad_frames_per_minute: Annotated[
        int, _about("Bad frames in a minute; one more closes the socket.")
    ] = 5
    typing_interval_seconds: Annotated[
        int, _about("Minimum seconds between two relayed typing events of one session.")
    ] = 3


DEFAULT_LIMITS = Limits()


def limit_table() -> list[tuple[str, int, str]]:
    """Return ``(name, default, description)`` of every limit, in order."""
    rows = msgspec.json.schema(Limits)["$defs"]["Limits"]["properties"]
    return [(name, row["default"], row["description"]) for name, row in rows.items()]
