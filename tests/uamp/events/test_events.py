"""Events: the types of the specification, their members, and what is always sent."""

import json
from typing import Any

import msgspec
import pytest

import uamp
from tests.uamp.spec_frames import CLIENT_TYPES, EVENT_FRAMES, OBJECTS, SERVER_TYPES, SYSTEM_TYPES
from uamp import events
from uamp.codec.frames import Sender
from uamp.documents.examples import EXAMPLES

_OBJECT_TYPES: dict[str, type[msgspec.Struct]] = {
    "8.1 SessionConfig": uamp.SessionConfig,
    "8.5 Message": uamp.Message,
    "8.6 ToolDefinition": uamp.ToolDefinition,
    "8.7 UsageStats": uamp.UsageStats,
    "9 Capabilities": uamp.Capabilities,
}
_DEFAULTS_NOT_SENT = {"tools": [], "extensions": {}, "is_error": False, "redacted": False}


def _plain(value: msgspec.Struct) -> Any:
    return json.loads(msgspec.json.encode(value))


def _drop_defaults(value: object) -> object:
    """Return ``value`` without the members that mean the same when they are absent."""
    if isinstance(value, dict):
        return {
            name: _drop_defaults(member)
            for name, member in value.items()
            if name not in _DEFAULTS_NOT_SENT or member != _DEFAULTS_NOT_SENT[name]
        }
    if isinstance(value, list):
        return [_drop_defaults(item) for item in value]
    return value


def test_client_events_are_those_of_the_specification_and_additions() -> None:
    # §7.1 calls message.read bidirectional, though §15 lists it once; the others are additions.
    added = {"message.read", "tool.approve", "state.update", "message.edit", "message.delete"}
    added |= {"message.pin", "message.unpin", "reaction.add", "reaction.remove"}
    added |= {
        "chat.fork",
        "queue.remove",
        "queue.start",
        "chat.update",
        "participant.add",
        "participant.remove",
        "participant.update",
    }
    added |= {"call.signal", "call.agent_add", "call.agent_remove", "call.agent_state"}
    added |= {"chats.watch"}
    assert set(events.CLIENT_EVENTS) == {*CLIENT_TYPES, *added}


def test_server_events_are_those_of_the_specification_two_relayed_ones_and_additions() -> None:
    # §5.3 lets either side end a session; a call is relayed to the person who is called.
    relayed = {"session.end", "voice.invite"}
    added = {"tool.approval_required", "tool.approval_done", "state.updated"}
    added |= {"message.edited", "message.deleted", "message.pinned", "message.unpinned"}
    added |= {"reaction.added", "reaction.removed", "chat.updated", "agent.stopped"}
    added |= {"chat.forked", "queue.updated"}
    added |= {"participant.joined", "participant.left", "participant.updated"}
    added |= {"call.signal", "call.agent_state", "call.updated", "call.ended"}
    added |= {"link.created", "link.revoked"}
    added |= {"chats.watched", "chat.activity", "person.changed", "profile.changed"}
    assert set(events.SERVER_EVENTS) == {*SERVER_TYPES, *relayed, *added}


def test_system_events_are_those_of_the_specification() -> None:
    assert set(events.SYSTEM_EVENTS) == set(SYSTEM_TYPES)


@pytest.mark.parametrize("section", [name for name in EVENT_FRAMES if name != "4"])
def test_a_printed_frame_decodes_to_all_that_it_says(section: str) -> None:
    printed = json.loads(EVENT_FRAMES[section])
    event = uamp.decode(EVENT_FRAMES[section], sender="any")
    members = json.loads(uamp.encode(event))
    expected = _drop_defaults(printed)
    added = {"uamp_version", "session", "role"} | {"supports_thinking", "supports_caching"}
    assert uamp.type_of(event) == printed["type"]
    assert _only(_drop_defaults(members), expected, added) == expected


def _only(actual: object, expected: object, added: set[str]) -> object:
    """Return ``actual`` without members of ``added`` that ``expected`` does not have."""
    if isinstance(actual, dict) and isinstance(expected, dict):
        return {
            name: _only(member, expected.get(name), added)
            for name, member in actual.items()
            if name in expected or name not in added
        }
    if isinstance(actual, list) and isinstance(expected, list):
        return [_only(*pair, added) for pair in zip(actual, expected, strict=True)]
    return actual


def test_the_base_frame_of_section_4_is_an_unknown_event_with_its_ids() -> None:
    assert uamp.decode(EVENT_FRAMES["4"]) == uamp.UnknownEvent(
        type_name="event.type",
        event_id="550e8400-e29b-41d4-a716-446655440000",
        session_id="sess_abc123",
    )


@pytest.mark.parametrize("name", list(OBJECTS))
def test_a_printed_object_converts_to_all_that_it_says(name: str) -> None:
    printed = json.loads(OBJECTS[name])
    value = msgspec.convert(printed, _OBJECT_TYPES[name])
    assert _plain(value) == _drop_defaults(printed)


@pytest.mark.parametrize("name", list(EXAMPLES))
def test_an_event_survives_the_wire(name: str) -> None:
    event = EXAMPLES[name]
    again = msgspec.convert(json.loads(uamp.encode(event)), type(event))
    assert again == event


@pytest.mark.parametrize(
    ("sender", "table"), [("client", events.CLIENT_EVENTS), ("server", events.SERVER_EVENTS)]
)
def test_a_side_understands_exactly_the_events_of_its_peer(
    sender: Sender, table: dict[str, type[uamp.Event]]
) -> None:
    understood = {
        name
        for name, event in EXAMPLES.items()
        if not isinstance(uamp.decode(uamp.encode(event), sender=sender), uamp.UnknownEvent)
    }
    assert understood == set(table)


def test_the_type_is_the_first_member_of_a_frame() -> None:
    assert all(
        uamp.encode(event).startswith(f'{{"type":"{name}"') for name, event in EXAMPLES.items()
    )


def test_events_are_immutable() -> None:
    event = uamp.Ping(event_id="p")
    with pytest.raises(AttributeError):
        event.event_id = "q"  # type: ignore[misc]  # the assignment is the point


def test_required_members_are_sent_even_when_empty() -> None:
    assert json.loads(uamp.encode(uamp.SessionCreate())) == {
        "type": "session.create",
        "uamp_version": "1.0",
        "session": {"modalities": ["text"]},
    }
    done = uamp.ResponseDone(response=uamp.ResponseOutput(id="r", status="completed"))
    assert json.loads(uamp.encode(done))["response"] == {
        "id": "r",
        "status": "completed",
        "output": [],
    }
    assert json.loads(uamp.encode(uamp.ResponseCancelled())) == {
        "type": "response.cancelled",
        "partial_output": [],
    }
    progress = uamp.Delta(type="tool_progress", tool_progress=uamp.ToolProgress(call_id="c"))
    assert _plain(progress)["tool_progress"] == {"call_id": "c", "text": ""}
    message = uamp.ChatMessage(id="m", role="user", created_at=1)
    assert _plain(message)["content"] == ""
    assert _plain(uamp.Capabilities()) == {
        "id": "",
        "provider": "",
        "modalities": ["text"],
        "supports_streaming": False,
        "supports_thinking": False,
        "supports_caching": False,
    }


def test_a_text_delta_says_where_it_stands() -> None:
    assert json.loads(uamp.encode(uamp.text_delta("r", "hi", 0))) == {
        "type": "response.delta",
        "response_id": "r",
        "delta": {"type": "text", "text": "hi"},
        "offset": 0,
    }


def test_a_call_names_its_caller_as_from() -> None:
    frame = uamp.encode(uamp.VoiceInvite(call_id="c", from_="user_a"))
    assert json.loads(frame) == {"type": "voice.invite", "call_id": "c", "from": "user_a"}


def test_the_type_of_an_unknown_event_is_the_one_it_came_with() -> None:
    assert uamp.type_of(uamp.UnknownEvent(type_name="x.y")) == "x.y"
    assert uamp.type_of(uamp.Ping()) == "ping"


def test_a_tool_is_named_by_its_function_or_its_type() -> None:
    function = uamp.FunctionDefinition(name="search")
    assert uamp.ToolDefinition(function=function).name == "search"
    assert uamp.ToolDefinition(type="web_search").name == "web_search"


def test_a_patch_changes_only_what_it_names() -> None:
    config = uamp.SessionConfig(instructions="a", tools=(uamp.ToolDefinition(type="web_search"),))
    patch = uamp.SessionPatch(instructions="b", tools=())
    assert patch.apply_to(config) == uamp.SessionConfig(instructions="b")
    assert uamp.SessionPatch().apply_to(config) == config


def test_public_names_are_sorted_and_exist() -> None:
    assert uamp.__all__ == sorted(
        uamp.__all__, key=lambda n: (not n.isupper(), not n[0].isupper(), n)
    )
    assert len(set(uamp.__all__)) == len(uamp.__all__)
    assert all(hasattr(uamp, name) for name in uamp.__all__)
