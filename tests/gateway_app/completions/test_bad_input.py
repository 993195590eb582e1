"""Requests that no client should send: each has its own 4xx in OpenAI's shape."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.gateway_app.completions.requests import HELLO, SEARCH, ask

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

USER = HELLO["messages"][0]


def message(**members: Any) -> dict[str, Any]:
    """Return a request with one more message."""
    return {"messages": [USER, members]}


def deep(depth: int) -> Any:
    """Return lists in lists."""
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


BODIES: dict[str, tuple[Any, str | None]] = {
    "no object": ([], None),
    "no messages": ({}, None),
    "an unknown role": (message(role="king", content="x"), "messages[1].role"),
    "no role": (message(content="x"), "messages[1]"),
    "content of a wrong type": (message(role="user", content=7), "messages[1].content"),
    "an unknown part": (
        message(role="user", content=[{"type": "smell"}]),
        "messages[1].content[0].type",
    ),
    "a part without its member": (
        message(role="user", content=[{"type": "image_url"}]),
        "messages[1].content[0]",
    ),
    "a file without data": (
        message(role="user", content=[{"type": "file", "file": {}}]),
        "messages[1].content[0].file.file_data",
    ),
    "a file of another server": (
        message(role="user", content=[{"type": "file", "file": {"file_id": "file-1"}}]),
        "messages[1].content[0].file.file_id",
    ),
    "a picture that is none": (
        message(role="user", content=[{"type": "image_url", "image_url": {"url": "data:,x"}}]),
        None,
    ),
    "a result without its call": (message(role="tool", content="x"), "messages[1].tool_call_id"),
    "a function without its call": (
        message(role="function", name="f", content="x"),
        "messages[1].name",
    ),
    "an audio answer": (message(role="assistant", audio={"id": "a"}), "messages[1].audio"),
    "thousands of messages": ({"messages": [USER] * 3000}, "messages"),
    "deep nesting": ({**HELLO, "metadata": deep(200)}, None),
    "a long name of a model": ({**HELLO, "model": "m" * 300}, "model"),
    "a temperature of 9": ({**HELLO, "temperature": 9}, "temperature"),
    "a wrong stop": ({**HELLO, "stop": [""]}, "stop[0]"),
    "tools of another kind": (
        {**HELLO, "tools": [{"type": "custom", "custom": {"name": "x"}}]},
        "tools[0].type",
    ),
    "a tool that is not there": (
        {**HELLO, "tools": [SEARCH], "tool_choice": {"type": "allowed_tools"}},
        "tool_choice.type",
    ),
    "a schema that is not there": (
        {**HELLO, "response_format": {"type": "json_schema"}},
        "response_format.json_schema",
    ),
    "a stream of a wrong type": ({**HELLO, "stream": "yes"}, "stream"),
    "client tools in a chat": ({**HELLO, "conversation": {"id": "c"}, "tools": [SEARCH]}, "tools"),
    "a chat without a user": (
        {"messages": [{"role": "system", "content": "x"}], "conversation": "c"},
        "messages",
    ),
}


def test_what_cannot_be_read_is_refused_with_its_place(web: httpx.Client, alice: Person) -> None:
    for name, (body, place) in BODIES.items():
        answer = ask(web, "echo", body, alice)

        assert (name, answer.status_code) == (name, 400)
        error = answer.json()["error"]
        assert (name, error["param"]) == (name, place)
        assert error["type"] == "invalid_request_error"
        assert error["code"]


def test_invalid_or_oversized_json_is_refused(web: httpx.Client, alice: Person) -> None:
    large = json.dumps({"messages": [{"role": "user", "content": "x" * 9_000_000}]})
    long = json.dumps({"messages": [{"role": "user", "content": "x" * 600_000}]})
    for content, status in (("{", 400), ("", 400), ("\udcff", 400), (large, 413), (long, 400)):
        answer = web.post(
            "/v1/chat/completions",
            content=content.encode("utf-8", "surrogateescape"),
            headers=alice.headers,
        )

        assert answer.status_code == status, answer.text[:200]
        assert answer.json()["error"]["type"] == "invalid_request_error"


def test_a_wrong_key_and_a_wrong_method_have_the_shape_too(web: httpx.Client) -> None:
    wrong = ask(web, "echo", HELLO, None, Authorization="Bearer nothing")
    not_allowed = web.get("/v1/chat/completions")

    assert (wrong.status_code, wrong.json()["error"]["type"]) == (401, "authentication_error")
    assert (not_allowed.status_code, not_allowed.headers["Allow"]) == (405, "POST")
    assert not_allowed.json()["error"]["message"]
