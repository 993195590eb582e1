"""OpenAI's Python client on the Responses API: streams, tools, chains, parsing, background."""

import json
import sys
import time
from typing import Any

import openai  # type: ignore[import-not-found]  # in an environment of its own
from openai.types.conversations import ConversationItem  # type: ignore[import-not-found]  # as above
from openai.types.responses import (  # type: ignore[import-not-found]  # as above
    Response,
    ResponseStreamEvent,
)
from pydantic import BaseModel, TypeAdapter

ORIGIN, KEY, PAYMENT = sys.argv[1:4]
SEARCH = {
    "type": "function",
    "name": "search",
    "parameters": {"type": "object", "properties": {}},
    "strict": False,
}
CLIENT = openai.OpenAI(base_url=f"{ORIGIN}/v1", api_key=KEY, max_retries=0)
RESPONSES = CLIENT.responses


class Found(BaseModel):
    """The class that an answer is parsed into."""

    n: int


def valid(response: Any) -> Any:
    """Return a response that is what the package says, which the client does not check."""
    TypeAdapter(Response).validate_python(response.to_dict(), strict=False)
    return response


def streamed(**request: Any) -> list[Any]:
    """Return the events of a stream, each what the package says."""
    events = []
    with RESPONSES.create(stream=True, **request) as stream:
        for event in stream:
            TypeAdapter(ResponseStreamEvent).validate_python(event.to_dict())
            events.append(event)
    return events


def with_tool() -> dict[str, Any]:
    """Return the client's own accumulation of a call, and the answer to its result."""
    with RESPONSES.stream(model="tool-user", input="cats", tools=[SEARCH]) as stream:
        kinds = sorted({event.type for event in stream})
        response = stream.get_final_response()
    (call,) = response.output
    result = {"type": "function_call_output", "call_id": call.call_id, "output": "three cats"}
    chained = RESPONSES.create(
        model="tool-user", previous_response_id=response.id, input=[result], tools=[SEARCH]
    )
    history: list[Any] = [{"role": "user", "content": "cats"}, *response.output, result]
    unchained = RESPONSES.create(model="tool-user", input=history, tools=[SEARCH], store=False)
    return {
        "kinds": kinds,
        "name": call.name,
        "chained": valid(chained).output_text,
        "whole": valid(unchained).output_text,
        "given": [item.type for item in RESPONSES.input_items.list(chained.id, order="asc")],
    }


def in_background() -> dict[str, Any]:
    """Return the outcome of work in the background."""
    response = RESPONSES.create(model="echo", input="Hello there", background=True)
    while response.status in {"queued", "in_progress"}:
        time.sleep(0.1)
        response = RESPONSES.retrieve(response.id)
    slow = RESPONSES.create(model="slow", input="Count", background=True)
    return {
        "text": valid(response).output_text,
        "cancelled": RESPONSES.cancel(slow.id).status,
        "kept": valid(RESPONSES.retrieve(slow.id)).status,
    }


def again() -> bool:
    """Return whether a stream goes on where a client left it."""
    events = streamed(model="thinker", input="Hello there")
    response = events[-1].response
    at = len(events) // 2
    place = events[at].sequence_number
    rest = list(RESPONSES.retrieve(response.id, stream=True, starting_after=place))
    deltas = [e.delta for e in [*events[: at + 1], *rest] if e.type == "response.output_text.delta"]
    with RESPONSES.stream(response_id=response.id, starting_after=place) as stream:
        last = list(stream)[-1].response
    return bool("".join(deltas) == response.output_text == last.output_text)


def conversation() -> dict[str, Any]:
    """Return the outcome of a conversation, whose items are each of the package's types."""
    created = CLIENT.conversations.create(
        metadata={"topic": "cats"}, items=[{"role": "user", "content": "Before"}]
    )
    items = CLIENT.conversations.items
    added = items.create(created.id, items=[{"role": "user", "content": "And this"}])
    answer = RESPONSES.create(model="thinker", conversation=created.id, input="Hello there")
    listed = list(items.list(created.id, order="asc", limit=2))
    for item in listed:
        TypeAdapter(ConversationItem).validate_python(item.to_dict())
    updated = CLIENT.conversations.update(created.id, metadata={"topic": "dogs"})
    items.delete(added.data[0].id, conversation_id=created.id)
    left = [item.id for item in items.list(created.id)]
    return {
        "kinds": [item.type for item in listed],
        "same": listed[3:]
        == [items.retrieve(i.id, conversation_id=created.id) for i in listed[3:]],
        "answer": [item.id for item in listed[3:]] == [item.id for item in answer.output],
        "in": answer.conversation.id == created.id,
        "topics": [created.metadata, updated.metadata],
        "found": CLIENT.conversations.retrieve(created.id).created_at == created.created_at,
        "left": left == [item.id for item in reversed(listed) if item.id != added.data[0].id],
        "deleted": CLIENT.conversations.delete(created.id).deleted,
        "gone": refused(lambda: CLIENT.conversations.retrieve(created.id)),
    }


def refused(ask: Any) -> list[Any]:
    """Return the error of a request."""
    try:
        ask()
    except openai.APIStatusError as error:
        return [type(error).__name__, error.status_code, error.code, error.param]
    return []


def main() -> dict[str, Any]:
    """Use the client in each way that it has."""
    response = valid(RESPONSES.create(model="echo", input="Hello there"))
    agent = openai.OpenAI(base_url=f"{ORIGIN}/agents/echo", api_key=KEY)
    stream = streamed(model="thinker", input="Hello there")
    chained = RESPONSES.create(model="echo", input="Again", previous_response_id=response.id)
    other = openai.OpenAI(base_url=f"{ORIGIN}/v1", api_key=KEY, max_retries=0)
    paid = RESPONSES.create(
        model="paid-echo", input="Hello there", extra_headers={"X-PAYMENT": PAYMENT}
    )
    return {
        "whole": response.output_text,
        "same": RESPONSES.retrieve(response.id).to_dict() == response.to_dict(),
        "agent": agent.responses.create(model="gpt-5", input="Hello there").output_text,
        "stream": stream[-1].response.output_text,
        "kinds": sorted({event.type for event in stream}),
        "chained": chained.output_text,
        "tool": with_tool(),
        "counted": RESPONSES.input_tokens.count(model="echo", input="Hello there").input_tokens,
        "parsed": RESPONSES.parse(
            model="echo", input='{"n": 3}', text_format=Found
        ).output_parsed.n,
        "background": in_background(),
        "conversation": conversation(),
        "again": again(),
        "paid": paid.output_text,
        "unpaid": refused(lambda: RESPONSES.create(model="paid-echo", input="x"))[:2],
        "missing": refused(lambda: other.responses.retrieve("resp_" + "0" * 32)),
        "foreign": refused(
            lambda: RESPONSES.create(model="echo", input="x", previous_response_id="resp_0")
        ),
        "wrong": refused(
            lambda: RESPONSES.create(model="echo", input="x", tools=[{"type": "web_search"}])
        ),
        "failed": streamed(model="fail", input="x")[-1].response.error.code,
    }


print(json.dumps(main()))  # noqa: T201 its result
