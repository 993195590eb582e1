"""Requests in the form that Claude Code sends, taken from public documentation and recordings."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.gateway_app.anthropic.requests import frames_of, message_of
from tests.gateway_app.completions.requests import PIXEL
from tests.sessions_app.model_server import call_chunks, model_server, text_chunks

if TYPE_CHECKING:
    import httpx

    from tests.live_server import Person

pytestmark = pytest.mark.any_database

CACHED = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
BETAS = (
    "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27,"
    "prompt-caching-scope-2026-01-05,effort-2025-11-24"
)
HEADERS = {
    "anthropic-version": "2023-06-01",
    "anthropic-beta": BETAS,
    "anthropic-dangerous-direct-browser-access": "true",
    "x-app": "cli",
    "User-Agent": "claude-cli/2.1.77 (external, cli)",
    "x-stainless-lang": "js",
    "x-stainless-retry-count": "0",
    "x-stainless-timeout": "600",
    "X-Claude-Code-Session-Id": "8f0a3f0e-6a5c-4f68-9c0e-000000000001",
}
BASH: dict[str, Any] = {
    "name": "Bash",
    "description": "Executes a bash command.",
    "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "command": {"type": "string"},
            "timeout": {"type": "number", "description": "in milliseconds"},
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    "eager_input_streaming": True,
}
READ: dict[str, Any] = {
    "name": "Read",
    "description": "Reads a file.",
    "input_schema": {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {"file_path": {"type": "string"}},
        "required": ["file_path"],
        "additionalProperties": False,
    },
    "defer_loading": True,
}
QUESTION: list[dict[str, Any]] = [
    {"type": "text", "text": "<system-reminder>\nToday is a Sunday.\n</system-reminder>"},
    {"type": "text", "text": "Mend the test", **CACHED},
]


def request(*messages: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """Return a request of Claude Code; `messages` follow the question."""
    return {
        "model": "claude-opus-4-6",
        "max_tokens": 32000,
        "system": [
            {"type": "text", "text": "x-anthropic-billing-header: cc_version=2.1.77; cch=0;"},
            {"type": "text", "text": "You are Claude Code.", **CACHED},
            {
                "type": "text",
                "text": "Be concise.",
                "cache_control": {"type": "ephemeral", "scope": "global"},
            },
        ],
        "messages": [{"role": "user", "content": QUESTION}, *messages],
        "tools": [BASH, READ],
        "metadata": {"user_id": json.dumps({"device_id": "d", "session_id": "s"})},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "medium"},
        "context_management": {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]},
        "stream": True,
        **fields,
    }


def send(
    web: httpx.Client, body: dict[str, Any], who: Person, path: str = "messages"
) -> httpx.Response:
    """Send a request to an agent as Claude Code does: with a bearer token and `beta`."""
    return web.post(
        f"/agents/model/v1/{path}",
        params={"beta": "true"},
        json=body,
        headers={**HEADERS, **who.headers},
    )


def test_a_turn_of_claude_code_uses_its_tools(web: httpx.Client, alice: Person) -> None:
    calls = (("c1", "Bash", '{"command":"ls"}'), ("c2", "Read", '{"file_path":"a.png"}'))
    with model_server(call_chunks(*calls, text="I look."), text_chunks("It is mended.")) as model:
        model.agent()
        first = message_of(frames_of(send(web, request(), alice)))
        thought = {"type": "thinking", "thinking": "Look first", "signature": "c2ln"}
        text, bash_call, read_call = first["content"]
        picture = {"type": "base64", "media_type": "image/png", "data": PIXEL}
        results = [
            {
                "type": "tool_result",
                "tool_use_id": bash_call["id"],
                "content": "ls: no such file",
                "is_error": True,
            },
            {
                "type": "tool_result",
                "tool_use_id": read_call["id"],
                "content": [{"type": "image", "source": picture}],
                **CACHED,
            },
            {"type": "text", "text": "<system-reminder>\nThe file changed.\n</system-reminder>"},
        ]
        body = request(
            {"role": "assistant", "content": [thought, text, bash_call, read_call]},
            {"role": "user", "content": results},
        )
        second = message_of(frames_of(send(web, body, alice)))

    assert first["stop_reason"] == "tool_use"
    assert (bash_call["name"], bash_call["input"]) == ("Bash", {"command": "ls"})
    assert second["content"][-1] == {"type": "text", "text": "It is mended."}
    assert second["stop_reason"] == "end_turn"
    offered = [tool["function"]["name"] for tool in model.requests[0]["tools"]]
    assert offered == ["Bash", "Read"]
    system = model.requests[0]["messages"][0]
    assert system["role"] == "system"
    assert "You are Claude Code." in system["content"]
    roles = [message["role"] for message in model.last["messages"]]
    assert roles[-4:] == ["assistant", "tool", "tool", "user"]
    kinds = {part["type"] for part in model.last["messages"][-1]["content"]}
    assert kinds == {"image_url", "text"}


def test_the_small_requests_of_claude_code_are_answered(web: httpx.Client, alice: Person) -> None:
    with model_server(text_chunks('{"title": "Mend"}')) as model:
        model.agent()
        quota = {
            "model": "claude-haiku-4-5",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": "quota"}],
            "metadata": {"user_id": "user_1"},
        }
        schema = {"type": "object", "properties": {"title": {"type": "string"}}}
        title = request(
            tools=[],
            stream=True,
            temperature=1,
            thinking={"type": "disabled"},
            output_config={"format": {"type": "json_schema", "schema": schema}},
            system=[{"type": "text", "text": "Write a title."}],
        )
        count = {
            name: value
            for name, value in request().items()
            if name in {"model", "messages", "system", "tools", "thinking"}
        }

        assert send(web, quota, alice).json()["type"] == "message"
        assert message_of(frames_of(send(web, title, alice)))["content"][0]["text"]
        assert send(web, count, alice, "messages/count_tokens").json()["input_tokens"] > 5
    assert web.head("/").status_code < 500
