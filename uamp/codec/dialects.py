"""Translates the spellings that clients really use into those of the specification.

Every rule works in place on a freshly parsed frame, changes only what it recognises, and leaves
errors for the decoder to report. Events are never sent in these spellings.
"""

import json
from collections.abc import Callable
from typing import Any

from uamp.types.content import CONTENT_TYPES, is_url
from uamp.types.inline_media import is_data_url

Frame = dict[str, Any]

_ITEM_LISTS = ("content_items", "output", "partial_output")
_ITEM_PARENTS = ("messages", "response", "message", "delta", "tool_result", *_ITEM_LISTS)


def _member(frame: Frame, name: str) -> Frame | None:
    value = frame.get(name)
    return value if isinstance(value, dict) else None


def _elements(frame: Frame, name: str) -> list[Any]:
    value = frame.get(name)
    return value if isinstance(value, list) else []


def _chat_id(frame: Frame) -> None:
    """Accept ``conversation_id``, the reference client's name for ``chat_id``."""
    if "chat_id" not in frame and "conversation_id" in frame:
        frame["chat_id"] = frame["conversation_id"]


def _capabilities(declared: Frame | None) -> None:
    """Accept ``model_id``, the reference server's name for ``id``."""
    if declared is not None and "id" not in declared and "model_id" in declared:
        declared["id"] = declared["model_id"]


def _tools(config: Frame) -> None:
    """Accept a function without its wrapper: ``{name, description, parameters}``."""
    for index, tool in enumerate(_elements(config, "tools")):
        if isinstance(tool, dict) and "name" in tool and "function" not in tool:
            function = {key: value for key, value in tool.items() if key != "type"}
            config["tools"][index] = {"type": "function", "function": function}


def _as_json_text(owner: Frame, name: str) -> None:
    """Convert a value to JSON text if the protocol expects JSON text."""
    if name in owner and not isinstance(owner[name], str):
        owner[name] = json.dumps(owner[name], ensure_ascii=False, separators=(",", ":"))


def _image_part(part: Frame) -> Frame:
    image = part.get("image_url")
    if isinstance(image, dict):
        return {"type": "image", "image": {"url": image.get("url")}, "detail": image.get("detail")}
    return {"type": "image", "image": {"url": image}}


def _parts(message: Frame) -> None:
    """Accept ``content`` as a list of parts, as OpenAI clients write it."""
    parts = message.get("content")
    if not isinstance(parts, list):
        return
    items = [
        _image_part(part) if isinstance(part, dict) and part.get("type") == "image_url" else part
        for part in parts
    ]
    texts = [item.get("text") for item in items if isinstance(item, dict) and "text" in item]
    message["content"] = "\n".join(text for text in texts if isinstance(text, str))
    message.setdefault("content_items", items)


def _medium(owner: Frame, name: str) -> None:
    """Convert a URL in a field that may hold base64 data to ``{"url": …}`` (UAMP §5.8, §8.4.1).

    A ``data:`` URL counts as data in either place.
    """
    medium = owner.get(name)
    if isinstance(medium, dict) and isinstance(url := medium.get("url"), str):
        medium = url
    if isinstance(medium, str) and is_url(medium):
        owner[name] = medium if is_data_url(medium) else {"url": medium}


def _media_items(owner: Frame, name: str) -> None:
    for item in _elements(owner, name):
        if not isinstance(item, dict):
            continue
        kind = item.get("type")
        if kind in _MEDIA_KINDS:
            _medium(item, kind)
        elif kind == "tool_result" and (result := _member(item, kind)) is not None:
            _media_items(result, "content_items")


_MEDIA_KINDS = ("image", "audio", "video", "file")


def _media_input(name: str) -> Callable[[Frame], None]:
    """Return the rule for an input event that carries its medium in the field ``name``."""

    def rule(frame: Frame) -> None:
        _medium(frame, name)

    return rule


def _tool_result(frame: Frame) -> None:
    _media_items(frame, "content_items")


def _messages(owner: Frame) -> None:
    """Accept OpenAI's message parts and nested ``tool_calls`` in a history."""
    for message in _elements(owner, "messages"):
        if not isinstance(message, dict):
            continue
        _parts(message)
        _media_items(message, "content_items")
        for index, call in enumerate(_elements(message, "tool_calls")):
            function = _member(call, "function") if isinstance(call, dict) else None
            if function is not None:
                message["tool_calls"][index] = {**function, "id": call.get("id")}


def _hoist(frame: Frame, name: str, owner: Frame, key: str) -> None:
    """Move ``owner[key]`` to ``frame[name]``, unless the frame already has a value there."""
    value = owner.pop(key, None)
    if value is not None and frame.get(name) is None:
        frame[name] = value


def _credentials(frame: Frame, config: Frame) -> None:
    """Move credentials out of the configuration, so that it can be stored and echoed."""
    _hoist(frame, "token", config, "token")
    _hoist(frame, "payment_token", config, "payment_token")
    extensions = _member(config, "extensions")
    if extensions is None:
        return
    _hoist(frame, "payment_token", extensions, "X-Payment-Token")
    authorization = extensions.pop("Authorization", None)
    if isinstance(authorization, str) and frame.get("token") is None:
        frame["token"] = authorization.removeprefix("Bearer ")


def _registers(frame: Frame, config: Frame) -> bool:
    """Return whether a daemon registers an agent, with name and token in ``session``."""
    inside = (config.get("agent"), config.get("token"))
    outside = (frame.get("agent"), frame.get("token"))
    return all(isinstance(value, str) for value in inside) and outside == (None, None)


def _session_create(frame: Frame) -> None:
    _capabilities(_member(frame, "client_capabilities"))
    config = _member(frame, "session")
    if config is None:
        return
    if _registers(frame, config):
        frame["registers"] = True
    _hoist(frame, "agent", config, "agent")
    _credentials(frame, config)
    extensions = _member(config, "extensions")
    if extensions is not None:
        _hoist(frame, "chat", extensions, "X-Chat-Id")
    _tools(config)


def _voice(description: str) -> Callable[[Frame], None]:
    """Return the rule for a call event: its ``sdp`` may be the bare text of a ``description``."""

    def rule(frame: Frame) -> None:
        _chat_id(frame)
        if isinstance(frame.get("sdp"), str):
            frame["sdp"] = {"type": description, "sdp": frame["sdp"]}

    return rule


def _session_created(frame: Frame) -> None:
    """Accept the short form printed in §10.4, which has only ``session_id``."""
    if "session" not in frame and "session_id" in frame:
        frame["session"] = {"id": frame["session_id"]}


def _session_update(frame: Frame) -> None:
    config = _member(frame, "session")
    if config is not None:
        _credentials(frame, config)
        _tools(config)


def _capabilities_event(frame: Frame) -> None:
    _capabilities(_member(frame, "capabilities"))


def _response_create(frame: Frame) -> None:
    config = _member(frame, "response")
    if config is not None:
        _tools(config)
        _messages(config)


def _response_delta(frame: Frame) -> None:
    """Accept the flat tool deltas of connected agents."""
    delta = _member(frame, "delta")
    if delta is None:
        return
    if delta.get("type") == "tool_call":
        call = _member(delta, "tool_call")
        if call is None and "call_id" in delta:
            call = {"id": delta["call_id"], **{k: delta[k] for k in _CALL_PARTS if k in delta}}
            delta["tool_call"] = call
        if call is not None:
            call.setdefault("name", "")
            call.setdefault("arguments", "")
            _as_json_text(call, "arguments")
    elif delta.get("type") == "tool_result":
        result = _member(delta, "tool_result")
        if result is None:
            result = {k: delta[k] for k in _RESULT_PARTS if k in delta}
            delta["tool_result"] = result
        if "call_id" not in result and "id" in delta:
            result["call_id"] = delta["id"]
        _as_json_text(result, "result")


_CALL_PARTS = ("name", "arguments")
_RESULT_PARTS = ("call_id", "result", "status", "is_error", "content_items")


def _response_done(frame: Frame) -> None:
    """Accept the bare ``text`` and ``error`` that some agents end a failed turn with."""
    if "response" not in frame and "text" in frame:
        frame["response"] = {
            "id": frame.get("response_id") or "",
            "status": "failed" if frame.get("error") else "completed",
            "output": [{"type": "text", "text": frame["text"]}],
        }


DIALECTS: dict[str, Callable[[Frame], None]] = {
    "session.create": _session_create,
    "session.created": _session_created,
    "session.update": _session_update,
    "client.capabilities": _capabilities_event,
    "capabilities": _capabilities_event,
    "input.text": _messages,
    "input.audio": _media_input("audio"),
    "input.image": _media_input("image"),
    "input.video": _media_input("video"),
    "input.file": _media_input("file"),
    "tool.result": _tool_result,
    "input.typing": _chat_id,
    "presence.typing": _chat_id,
    "message.read": _chat_id,
    "message.created": _chat_id,
    "voice.invite": _voice("offer"),
    "voice.accept": _voice("answer"),
    "voice.decline": _voice("rollback"),
    "voice.end": _voice("rollback"),
    "call.signal": _chat_id,
    "response.create": _response_create,
    "response.delta": _response_delta,
    "response.done": _response_done,
}


def _unknown_item(item: object) -> bool:
    return (
        isinstance(item, dict)
        and isinstance(item.get("type"), str)
        and item["type"] not in CONTENT_TYPES
    )


def relax(frame: Frame) -> None:
    """Drop content items of unknown types and null fields (UAMP §14.3).

    The decoder calls it only for a frame that does not decode as it is.
    """
    pending: list[Frame] = [frame]
    while pending:
        owner = pending.pop()
        for name in [name for name, value in owner.items() if value is None]:
            del owner[name]
        for name in _ITEM_PARENTS:
            value = owner.get(name)
            if isinstance(value, list):
                if name in _ITEM_LISTS:
                    value[:] = [item for item in value if not _unknown_item(item)]
                pending.extend(item for item in value if isinstance(item, dict))
            elif isinstance(value, dict):
                pending.append(value)
