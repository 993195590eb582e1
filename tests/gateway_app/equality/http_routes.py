"""Routes of one request and its answer: batches, event streams, Completions, AG-UI, `/tasks`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.client import (
    TERMINAL,
    Frame,
    new_event,
    open_stream,
    output_text,
    text_of,
)
from tests.gateway_app.equality.questions import (
    FUNCTION,
    PARAMETERS,
    RESULT,
    TOOL,
    Question,
    Shown,
    data_of,
    left,
    open_request,
    post,
    wait_for_text,
)
from tests.threads import thread_pool

if TYPE_CHECKING:
    import httpx

    from tests.gateway_app.equality.questions import Place

END = "response.done"


def of_frames(frames: list[Frame]) -> Shown:
    """Return the end of an answer as UAMP has it."""
    (end,) = [frame for frame in frames if frame["type"] in TERMINAL]
    used = end["response"]["usage"] if end["type"] == END else end["usage"]
    tokens = (used["input_tokens"], used["output_tokens"], used["total_tokens"])
    assert text_of(frames) in {"", output_text(end)}
    return Shown(text=output_text(end), tokens=tokens)


def opening(question: Question) -> Frame:
    """Return the `session.create` of a question."""
    tools = {"tools": [FUNCTION]} if question.has_tool else {}
    return new_event("session.create", uamp_version="1.0", session=tools, agent=question.agent)


def turn(question: Question, **fields: Any) -> list[Frame]:
    """Return the events that ask a question."""
    input_text = new_event("input.text", text=question.text, **fields)
    return [input_text, new_event("response.create", **fields)]


# --- UAMP over HTTP ---


def batch(place: Place, question: Question, path: str = "/uamp") -> Shown:
    """Ask in a batch, whose answer is an array; a result of a tool is a batch of its own."""
    events, headers = [opening(question), *turn(question)], question.paying
    if question.stop_after:
        with thread_pool(1) as pool:
            posting = pool.submit(post, place, path, events, headers)
            response = wait_for_text(question.stop_after)
            cancel = new_event("response.cancel", session_id=response.session_id)
            post(place, path, [cancel], question.headers)
            return of_frames(frames_of(posting.result(60)))
    frames = frames_of(post(place, path, events, headers))
    for call in [frame for frame in frames if frame["type"] == "tool.call"]:
        result = new_event(
            "tool.result",
            call_id=call["call_id"],
            result=RESULT,
            session_id=call["session_id"],
        )
        frames += frames_of(post(place, path, [result], headers))
    return of_frames(frames)


def streamed_batch(place: Place, question: Question) -> Shown:
    """Ask in a batch whose answer is a stream."""
    return batch(place, question, "/uamp/stream")


def frames_of(answer: httpx.Response) -> list[Frame]:
    """Return the events of an array or of a stream."""
    if answer.headers["Content-Type"].startswith("application/json"):
        frames: list[Frame] = answer.json()
        return frames
    return data_of(answer)


def events_and_stream(place: Place, question: Question) -> Shown:
    """Ask with an event a request, and read the stream of the session."""
    headers = dict(question.headers)

    def send(event: Frame) -> httpx.Response:
        return post(place, "/events", event, headers)

    headers["X-Session-ID"] = send(opening(question)).headers["X-Session-ID"]
    frames: list[Frame] = []
    with open_stream(place.web, "GET", "/events/stream", headers=headers) as stream:
        for event in turn(question):
            send(event)
        for received in stream:
            frames.append(received.data)
            kind = received.data["type"]
            if kind == "tool.call":
                call_id = received.data["call_id"]
                send(new_event("tool.result", call_id=call_id, result=RESULT))
            elif kind == "payment.required":
                paid = {"scheme": "token", "token": question.token}
                send(new_event("payment.submit", payment=paid))
            elif kind in TERMINAL:
                break
            elif question.stop_after and text_of(frames) == question.stop_after:
                send(new_event("response.cancel"))
    return of_frames(frames)


# --- Chat Completions ---


def completions(place: Place, question: Question, *, stream: bool = False) -> Shown:
    """Ask with the whole conversation; a result of a tool comes in the next request."""
    path = f"/agents/{question.agent}/chat/completions"
    history: list[Any] = [{"role": "user", "content": question.text}]
    body: dict[str, Any] = {"messages": history, "stream": stream}
    if stream:
        body["stream_options"] = {"include_usage": True}
    if question.has_tool:
        body["tools"] = [FUNCTION]
    headers = question.paying
    if question.stop_after:
        return left(place, path, body, question, headers)
    message_of = _chunks if stream else _whole
    message, tokens = message_of(post(place, path, body, headers))
    while calls := message.get("tool_calls"):
        results = [{"role": "tool", "tool_call_id": c["id"], "content": RESULT} for c in calls]
        history += [message, *results]
        message, more = message_of(post(place, path, body, headers))
        tokens = added(tokens, more)
    return Shown(text=message["content"], tokens=tokens)


def streamed_completions(place: Place, question: Question) -> Shown:
    """Ask for a stream of chunks."""
    return completions(place, question, stream=True)


def _whole(answer: httpx.Response) -> tuple[dict[str, Any], tuple[int, int, int]]:
    body = answer.json()
    return body["choices"][0]["message"], _completion_tokens(body["usage"])


def _chunks(answer: httpx.Response) -> tuple[dict[str, Any], tuple[int, int, int]]:
    chunks = [frame for frame in data_of(answer) if "signature" not in frame]
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    calls = [call for delta in deltas for call in delta.get("tool_calls", ())]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": "".join(delta.get("content") or "" for delta in deltas),
    }
    if calls:
        message["tool_calls"] = calls
    return message, _completion_tokens(chunks[-1]["usage"])


def _completion_tokens(used: dict[str, int]) -> tuple[int, int, int]:
    return used["prompt_tokens"], used["completion_tokens"], used["total_tokens"]


def added(tokens: tuple[int, int, int], more: tuple[int, int, int]) -> tuple[int, int, int]:
    """Return the tokens of two answers."""
    return tokens[0] + more[0], tokens[1] + more[1], tokens[2] + more[2]


# --- AG-UI ---


def ag_ui(place: Place, question: Question) -> Shown:
    """Run an agent; a result of a tool and a payment come in the next run."""
    path = f"/agents/{question.agent}/agui"
    messages: list[Any] = [{"id": "m1", "role": "user", "content": question.text}]
    body: dict[str, Any] = {"threadId": "t1", "runId": "r1", "messages": messages}
    if question.has_tool:
        body["tools"] = [{"name": TOOL, "description": "Find", "parameters": PARAMETERS}]
    if question.stop_after:
        return left(place, path, body, question, question.headers)

    def run() -> list[Any]:
        return data_of(post(place, path, body, question.headers))

    events = run()
    tokens = _run_tokens(events)
    outcome = events[-1].get("outcome", {})
    for call_id in outcome.get("pendingToolCallIds", ()):
        arguments = "".join(e["delta"] for e in events if e["type"] == "TOOL_CALL_ARGS")
        function = {"name": TOOL, "arguments": arguments}
        call = {"id": call_id, "type": "function", "function": function}
        messages += [
            {"id": "m2", "role": "assistant", "toolCalls": [call]},
            {"id": "m3", "role": "tool", "toolCallId": call_id, "content": RESULT},
        ]
        events = run()
        tokens = added(tokens, _run_tokens(events))
    for interrupt in outcome.get("interrupts", ()):
        paid = {"status": "resolved", "payload": {"token": question.token}}
        body["resume"] = [{"interruptId": interrupt["id"], **paid}]
        events = run()
        tokens = _run_tokens(events)
    texts = [event["delta"] for event in events if event["type"] == "TEXT_MESSAGE_CONTENT"]
    return Shown(text="".join(texts), tokens=tokens)


def _run_tokens(events: list[Any]) -> tuple[int, int, int]:
    (used,) = events[-1].get("usage") or [
        {"inputTokens": 0, "outputTokens": 0, "totalTokens": 0},
    ]
    return used["inputTokens"], used["outputTokens"], used["totalTokens"]


# --- Tasks of the transports' specification ---


def spec_tasks(place: Place, question: Question) -> Shown:
    """Begin a task at `/tasks`, and read its events."""
    path = f"/agents/{question.agent}/tasks"
    parts = [{"type": "text", "text": question.text}]
    body = {"message": {"role": "user", "parts": parts}}
    if question.stop_after:
        with open_request(place, path, body, question.paying):
            response = wait_for_text(question.stop_after)
            ended = place.web.delete(f"{path}/{response.pk}", headers=dict(question.headers))
            assert ended.json()["status"] == "canceled"
        return Shown(text=question.stop_after)
    pieces = [e for e in data_of(post(place, path, body, question.paying)) if "parts" in e]
    return Shown(text="".join(piece["parts"][0]["text"] for piece in pieces))


__all__: list[str] = [
    "added",
    "ag_ui",
    "batch",
    "completions",
    "events_and_stream",
    "of_frames",
    "opening",
    "spec_tasks",
    "streamed_batch",
    "streamed_completions",
]
