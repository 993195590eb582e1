"""OpenAI's Python client: models, answers, streams, tools, errors, payment."""

import json
import sys
from typing import Any

import openai  # type: ignore[import-not-found]  # in an environment of its own

ORIGIN, KEY = sys.argv[1:3]
PAYMENT = sys.argv[3] if len(sys.argv) > 3 else ""
HELLO = [{"role": "user", "content": "Hello there"}]
SEARCH = {
    "type": "function",
    "function": {"name": "search", "parameters": {"type": "object", "properties": {}}},
}


def client_at(path: str) -> Any:
    """Return a client whose requests go below a path."""
    return openai.OpenAI(base_url=ORIGIN + path, api_key=KEY, max_retries=0)


def streamed(client: Any) -> dict[str, Any]:
    """Return the pieces of a stream and its usage."""
    pieces, usage = [], None
    with client.chat.completions.create(
        model="echo", messages=HELLO, stream=True, stream_options={"include_usage": True}
    ) as stream:
        for chunk in stream:
            pieces += [choice.delta.content or "" for choice in chunk.choices]
            usage = chunk.usage or usage
    return {"text": "".join(pieces), "tokens": usage.total_tokens if usage else None}


def helped(client: Any) -> dict[str, Any]:
    """Return the result of the client's own accumulator for a stream with a call."""
    with client.chat.completions.stream(
        model="tool-user", messages=HELLO, tools=[SEARCH]
    ) as stream:
        kinds = sorted({event.type for event in stream})
        completion = stream.get_final_completion()
    choice = completion.choices[0]
    call = choice.message.tool_calls[0]
    history = [
        *HELLO,
        choice.message.to_dict(),
        {"role": "tool", "tool_call_id": call.id, "content": "three cats"},
    ]
    again = client.chat.completions.create(model="tool-user", messages=history, tools=[SEARCH])
    return {
        "kinds": kinds,
        "reason": choice.finish_reason,
        "name": call.function.name,
        "answer": again.choices[0].message.content,
    }


def refused(client: Any, **request: Any) -> dict[str, Any]:
    """Return the error of a request."""
    try:
        client.chat.completions.create(**request)
    except openai.APIStatusError as error:
        return {
            "kind": type(error).__name__,
            "status": error.status_code,
            "code": error.code,
            "param": error.param,
            "body": error.response.json(),
        }
    return {}


def broken(client: Any) -> str:
    """Return the error in the middle of a stream."""
    try:
        for _ in client.chat.completions.create(model="fail", messages=HELLO, stream=True):
            pass
    except openai.APIError as error:
        return str(error.code)
    return ""


def main() -> dict[str, Any]:
    """Use the client in each way that it has."""
    client, agent = client_at("/v1"), client_at("/agents/echo")
    completion = client.chat.completions.create(model="echo", messages=HELLO)
    paying = {"X-PAYMENT": PAYMENT}
    paid = client.chat.completions.with_raw_response.create(
        model="paid-echo", messages=HELLO, extra_headers=paying
    )
    return {
        "models": [model.id for model in client.models.list()],
        "model": client.models.retrieve("echo").object,
        "agent's models": [model.id for model in agent.models.list()],
        "whole": completion.to_dict(),
        "agent": agent.chat.completions.create(model="gpt-4o", messages=HELLO)
        .choices[0]
        .message.content,
        "stream": streamed(client),
        "helper": helped(client),
        "missing": refused(client, model="missing", messages=HELLO),
        "wrong": refused(client, model="echo", messages=HELLO, n=2),
        "unpaid": refused(client, model="paid-echo", messages=HELLO),
        "paid": paid.parse().choices[0].message.content,
        "receipt": bool(paid.headers.get("PAYMENT-RESPONSE")),
        "broken": broken(client),
    }


print(json.dumps(main()))  # noqa: T201 its result
