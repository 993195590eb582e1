"""Anthropic's Python client: models, messages, streams, tools, thoughts, errors, payment."""

import json
import sys
from typing import Any

import anthropic  # type: ignore[import-not-found]  # in an environment of its own

ORIGIN, KEY = sys.argv[1:3]
PAYMENT = sys.argv[3] if len(sys.argv) > 3 else ""
HELLO = [{"role": "user", "content": "Hello there"}]
SEARCH = {"name": "search", "input_schema": {"type": "object", "properties": {}}}
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ"
    "DwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)


def client_at(path: str, **options: Any) -> Any:
    """Return a client whose requests go below a path."""
    return anthropic.Anthropic(base_url=ORIGIN + path, max_retries=0, **{"api_key": KEY, **options})


def text_of(message: Any) -> str:
    """Return the text of a message."""
    return "".join(block.text for block in message.content if block.type == "text")


def ask(client: Any, model: str, **request: Any) -> Any:
    """Return the message that answers a request."""
    return client.messages.create(model=model, **{"max_tokens": 1024, "messages": HELLO} | request)


def streamed(client: Any) -> dict[str, Any]:
    """Return the result of the client's own accumulator for a stream with thoughts."""
    kinds: set[str] = set()
    with client.messages.stream(
        model="thinker",
        max_tokens=4096,
        messages=HELLO,
        thinking={"type": "enabled", "budget_tokens": 2048},
    ) as stream:
        kinds |= {event.type for event in stream}
        message = stream.get_final_message()
    return {
        "kinds": sorted(kinds),
        "text": text_of(message),
        "blocks": [block.type for block in message.content],
        "reason": message.stop_reason,
        "tokens": message.usage.output_tokens,
    }


def tools(client: Any) -> dict[str, Any]:
    """Return the answer after the client has run a tool."""
    with client.messages.stream(
        model="tool-user", max_tokens=1024, messages=HELLO, tools=[SEARCH]
    ) as stream:
        message = stream.get_final_message()
    (call,) = [block for block in message.content if block.type == "tool_use"]
    result = {"type": "tool_result", "tool_use_id": call.id, "content": "three cats"}
    history = [
        *HELLO,
        {"role": "assistant", "content": [block.model_dump() for block in message.content]},
        {"role": "user", "content": [result]},
    ]
    return {
        "reason": message.stop_reason,
        "input": call.input,
        "answer": text_of(ask(client, "tool-user", messages=history, tools=[SEARCH])),
    }


def refused(client: Any, model: str, **request: Any) -> dict[str, Any]:
    """Return the error of a request."""
    try:
        ask(client, model, **request)
    except anthropic.APIStatusError as error:
        body: Any = error.body
        return {
            "kind": type(error).__name__,
            "status": error.status_code,
            "type": body["error"]["type"],
            "message": body["error"]["message"],
        }
    raise AssertionError("the request was not refused")


def main() -> None:
    """Print what the client saw."""
    client = client_at("")
    agent = client_at("/agents/echo")
    picture = {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": PIXEL},
    }
    raw = client.messages.with_raw_response.create(model="echo", max_tokens=9, messages=HELLO)
    paid = client_at("", default_headers={"X-PAYMENT": PAYMENT})
    seen = {
        "models": [model.id for model in client.models.list()],
        "model": client.models.retrieve("echo").display_name,
        "whole": text_of(ask(client, "echo")),
        "agent": text_of(ask(agent, "claude-opus-4-5")),
        "bearer": text_of(ask(client_at("", api_key=None, auth_token=KEY), "echo")),
        "header": "x-session-id" in raw.headers,
        "stream": streamed(client),
        "tools": tools(client),
        "count": client.messages.count_tokens(model="echo", messages=HELLO).input_tokens,
        "picture": text_of(
            ask(
                client,
                "echo",
                messages=[{"role": "user", "content": [picture, {"type": "text", "text": "Look"}]}],
            )
        ),
        "wrong": refused(client, "echo", extra_body={"top_k": 5}),
        "missing": refused(client, "missing"),
        "unpaid": refused(client, "paid-echo"),
        "key": refused(client_at("", api_key="uak_00000000_wrong"), "echo"),
        "failed": refused(client, "fail"),
        "paid": text_of(ask(paid, "paid-echo")),
    }
    print(json.dumps(seen))  # noqa: T201 what it is for


main()
