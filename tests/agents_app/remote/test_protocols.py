"""Events that remote agents of each protocol may send out of order, twice, or never."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from websockets.asyncio.server import serve as serve_socket

from agents_app.models import Agent
from agents_app.remote.protocols.a2a import ARTIFACTS
from agents_app.remote.tasks import TaskHandle
from agents_app.runtime.agent_run import AgentError
from agents_app.tools.registry import ToolOutcome
from tests import factories
from tests.agents_app.remote.remote_agents import failure, remote_spec, request_of, run, text_of
from tests.agents_app.run_context import Broker, Media
from tests.upp.wire_server import STREAM_HEAD, Exchange, serve
from uamp.events import Progress
from uamp.types.content import ImageContent, MediaUrl, Message, TextContent
from uamp.types.session import FunctionDefinition, ToolDefinition

if TYPE_CHECKING:
    from pytest_django import Settings
    from websockets.asyncio.server import ServerConnection

pytestmark = pytest.mark.usefixtures("database_threads")

PNG = factories.png()
ENCODED = base64.b64encode(PNG).decode()
PICTURE = Message(
    role="user",
    content_items=(
        TextContent(text="What is this?"),
        ImageContent(image=MediaUrl(url="/api/content/c1"), content_id="c1"),
    ),
)
Events = list[dict[str, Any]]
AG_UI_BEGIN: Events = [{"type": "RUN_STARTED", "threadId": "t", "runId": "r"}]
AG_UI_END: Events = [{"type": "RUN_FINISHED", "threadId": "t", "runId": "r"}]
UAMP_BEGIN: Events = [{"type": "response.created", "response_id": "r9"}]


def ag_ui_text(text: str, message_id: str = "m") -> dict[str, Any]:
    return {"type": "TEXT_MESSAGE_CONTENT", "messageId": message_id, "delta": text}


def uamp_text(text: str, **members: Any) -> dict[str, Any]:
    delta = {"type": "text", "text": text}
    return {"type": "response.delta", "response_id": "r9", "delta": delta, **members}


def uamp_done(**members: Any) -> dict[str, Any]:
    done = {"id": "r9", "status": "completed", "output": [], **members}
    return {"type": "response.done", "response_id": "r9", "response": done}


def task(**result: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "result": result}


def artifact(text: str, artifact_id: str = "a", **members: Any) -> dict[str, Any]:
    data = {"artifactId": artifact_id, "parts": [{"text": text}]}
    return task(artifactUpdate={"taskId": "t", "contextId": "c", "artifact": data, **members})


def status(state: str, text: str = "") -> dict[str, Any]:
    message = {"role": "ROLE_AGENT", "messageId": "m", "parts": [{"text": text}]} if text else None
    status_data = {"state": state, **({"message": message} if message else {})}
    return task(statusUpdate={"taskId": "t", "contextId": "c", "status": status_data})


async def outcome_of(protocol: str, events: Events, **spec: Any) -> tuple[str, Any, list[Any]]:
    """Return the text that a stream of these events shows, its error, and what else is shown."""

    async def stream(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        for event in events:
            await exchange.chunk(**event)

    async with serve(stream) as wire:
        agent = await remote_spec(wire.url, protocol=protocol, **spec)
        try:
            shown_events, _ = await run(agent, request_of())
        except AgentError as error:
            return "", error, []
    return (
        text_of(shown_events),
        None,
        [piece for piece in shown_events if not isinstance(piece, str)],
    )


@pytest.mark.parametrize(
    ("protocol", "events", "text"),
    [
        ("ag_ui", [*AG_UI_BEGIN, ag_ui_text("Hi"), ag_ui_text(" you"), *AG_UI_END], "Hi you"),
        ("ag_ui", [*AG_UI_BEGIN, ag_ui_text("a"), ag_ui_text("b", "n"), *AG_UI_END], "a\n\nb"),
        ("uamp_http", [*UAMP_BEGIN, uamp_text("Hi"), uamp_done()], "Hi"),
        ("uamp_http", [*UAMP_BEGIN, uamp_text("Hi"), uamp_text("Hi you", offset=0), uamp_done()],
         "Hi you"),
        ("uamp_http", [*UAMP_BEGIN, uamp_done(output=[{"type": "text", "text": "All"}])], "All"),
        ("uamp_http", [*UAMP_BEGIN, uamp_text("Hi"), uamp_done(), uamp_text(" again")], "Hi"),
        ("a2a", [artifact("Hi"), artifact(" you", append=True), status("TASK_STATE_COMPLETED")],
         "Hi you"),
        ("a2a", [artifact("Hi"), artifact("Hi you"), status("TASK_STATE_COMPLETED")], "Hi you"),
        ("a2a", [artifact("a"), artifact("b", "z"), status("TASK_STATE_COMPLETED")], "a\n\nb"),
        ("a2a", [task(message={"messageId": "m", "parts": [{"text": "Hi"}]})], "Hi"),
        ("a2a", [status("TASK_STATE_INPUT_REQUIRED", "Which one?")], "Which one?"),
        ("a2a_03", [task(kind="message", messageId="m", parts=[{"kind": "text", "text": "Hi"}])],
         "Hi"),
        ("responses", [{"type": "response.output_text.delta", "delta": "Hi"},
                       {"type": "response.completed", "response": {}}], "Hi"),
    ],
)  # fmt: skip
async def test_an_answer_is_read(protocol: str, events: Events, text: str) -> None:
    answer_text, error, _ = await outcome_of(protocol, events)
    assert error is None
    assert answer_text == text


@pytest.mark.parametrize(
    ("protocol", "events", "code"),
    [
        ("ag_ui", [ag_ui_text("Hi"), *AG_UI_END], "provider_error"),
        ("ag_ui", [*AG_UI_BEGIN, *AG_UI_BEGIN, *AG_UI_END], "provider_error"),
        ("ag_ui", [*AG_UI_END], "provider_error"),
        ("ag_ui", [*AG_UI_BEGIN, ag_ui_text("Hi")], "agent_offline"),
        ("ag_ui", [*AG_UI_BEGIN, {"type": "RUN_ERROR", "message": "no"}], "provider_error"),
        ("uamp_http", [uamp_text("Hi"), uamp_done()], "provider_error"),
        ("uamp_http", [uamp_done()], "provider_error"),
        ("uamp_http", [*UAMP_BEGIN, uamp_text("Hi")], "agent_offline"),
        ("uamp_http", [*UAMP_BEGIN, uamp_text("Hi"), uamp_text("x", offset=9)], "provider_error"),
        ("uamp_http", [*UAMP_BEGIN, uamp_text("Hi"), uamp_text("No", offset=0)], "provider_error"),
        ("uamp_http", [{"type": "payment.required", "requirements": {}}], "provider_error"),
        ("a2a", [artifact("Hi")], "agent_offline"),
        ("a2a", [status("TASK_STATE_FAILED", "no")], "provider_error"),
        ("a2a", [{"jsonrpc": "2.0", "id": 1, "error": {"code": -32603}}], "provider_error"),
        ("a2a", [{"jsonrpc": "2.0", "id": 1, "error": {"code": []}}], "provider_error"),
        ("a2a", [{"jsonrpc": "2.0", "id": 1}], "provider_error"),
        ("a2a", [artifact("Hi"), artifact("b", "z"), artifact("No")], "provider_error"),
        ("responses", [{"type": "response.failed", "response": {}}], "provider_error"),
        ("responses", [{"type": "response.output_text.delta", "delta": "Hi"}], "agent_offline"),
    ],
)
async def test_what_breaks_its_protocol_is_a_typed_error(
    protocol: str, events: Events, code: str
) -> None:
    _, error, _ = await outcome_of(protocol, events)
    assert getattr(error, "code", error) == code


@pytest.mark.parametrize("count", [1_000, 1_001])
async def test_a_frame_has_so_many_artifacts(count: int) -> None:
    artifacts = [{"artifactId": str(n), "parts": [{"text": "a"}]} for n in range(count)]
    done = {"id": "t", "status": {"state": "TASK_STATE_COMPLETED"}, "artifacts": artifacts}
    answer_text, error, _ = await outcome_of("a2a", [task(task=done)])
    if count > ARTIFACTS:
        assert getattr(error, "code", error) == "provider_error"
    else:
        assert answer_text == "\n\n".join("a" * count)


@pytest.mark.parametrize(
    "repeats", [[("a", "b"), ("b", "z")] * 2, [("a", "b"), ("b", "z"), ("a", "b"), ("b", "y")]]
)
async def test_an_artifact_that_is_over_may_be_said_again(repeats: list[tuple[str, str]]) -> None:
    events = [artifact(text, artifact_id) for artifact_id, text in repeats]
    answer_text, error, _ = await outcome_of("a2a", [*events, status("TASK_STATE_COMPLETED")])
    is_same = repeats[1] == repeats[3]
    assert (answer_text, error is None) == (("b\n\nz", True) if is_same else ("", False))


async def test_arguments_of_a_call_may_come_in_chunks() -> None:
    chunk = {"type": "TOOL_CALL_CHUNK", "toolCallId": "c"}
    chunks = [{**chunk, "toolCallName": "look"}, *({**chunk, "delta": part} for part in '{"a":1}')]
    tool = ToolDefinition(function=FunctionDefinition(name="look", parameters={"type": "object"}))
    broker = Broker(lambda _: ToolOutcome(result="found"))

    async def stream(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        is_first = len(wire.exchanges) == 1
        for event in [*AG_UI_BEGIN, *(chunks if is_first else [ag_ui_text("Hi")]), *AG_UI_END]:
            await exchange.chunk(**event)

    async with serve(stream) as wire:
        spec = await remote_spec(wire.url, protocol="ag_ui")
        events, _ = await run(spec, request_of(tools=[tool]), broker=broker)
    assert text_of(events) == "Hi"
    assert [(call.name, call.arguments) for call in broker.calls] == [("look", '{"a":1}')]


@pytest.mark.parametrize(
    ("code", "failures"),
    [
        ("answer_too_long", 0),
        ("invalid_output", 0),
        ("invalid_tool_result", 0),
        ("step_refused", 0),
        ("too_many_steps", 0),
        ("too_many_hops", 0),
        ("provider_error", 1),
    ],
)
async def test_errors_that_the_asker_causes_are_not_failures_of_the_agent(
    code: str, failures: int
) -> None:
    failed = {"type": "response.error", "response_id": "r9", "error": {"code": code, "message": ""}}
    _, error, _ = await outcome_of("uamp_http", [*UAMP_BEGIN, failed])
    assert error is not None
    assert (await Agent.objects.aget(name="far")).failures == failures


def media_in(body: Any) -> list[str]:
    """Return the members of a request's body that could be the picture."""
    if isinstance(body, dict):
        return [medium for value in body.values() for medium in media_in(value)]
    if isinstance(body, list):
        return [medium for value in body for medium in media_in(value)]
    return [body] if isinstance(body, str) and ENCODED in body else []


@pytest.mark.parametrize(
    "protocol", ["a2a", "a2a_03", "ag_ui", "completions", "responses", "uamp_http"]
)
async def test_a_picture_is_sent_with_its_data(protocol: str) -> None:
    async def refuse(exchange: Exchange) -> None:
        await exchange.refuse("400 Bad Request", b"{}")

    async with serve(refuse) as wire:
        spec = await remote_spec(wire.url, protocol=protocol)
        await failure(spec, request_of(history=[PICTURE]), media=Media({"c1": (PNG, "image/png")}))
        (exchange,) = wire.exchanges
    assert len(media_in(exchange.body)) == 1
    assert "What is this?" in json.dumps(exchange.body)
    assert "/api/content/" not in json.dumps(exchange.body), "the other side cannot read it"


async def test_progress_over_there_is_progress_here() -> None:
    progress_event = {"type": "progress", "target": "response", "message": "half", "percent": 50}
    events = [*UAMP_BEGIN, progress_event, uamp_text("Hi"), uamp_done()]
    _, _, others = await outcome_of("uamp_http", events)
    (progress,) = [event for event in others if isinstance(event, Progress)]
    assert (progress.message, progress.percent, progress.response_id) == ("half", 50, "r1")


async def test_an_answer_that_a_dead_process_left_is_stopped_before_it_is_asked_for_again() -> None:
    async def stream(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        for event in [*UAMP_BEGIN, uamp_text("Hi"), uamp_done()]:
            await exchange.chunk(**event)

    async with serve(stream) as wire:
        spec = await remote_spec(wire.url, protocol="uamp_http")
        ids = {"session": "s1", "response": "r8"}
        left = TaskHandle(protocol="uamp_http", address=spec.url, ids=ids, rounds=0)
        events, _ = await run(
            spec, request_of(remote_task=left), until=lambda: len(wire.exchanges) > 1
        )
        assert text_of(events) == "Hi"
        batches: list[Any] = [exchange.body for exchange in wire.exchanges]
    stops = [batch[0] for batch in batches if batch[0]["type"] == "response.cancel"]
    assert [(stop["session_id"], stop["response_id"]) for stop in stops] == [("s1", "r8")]


@pytest.mark.parametrize(
    ("state", "methods"),
    [
        ("TASK_STATE_INPUT_REQUIRED", ["SendStreamingMessage", "CancelTask"]),
        ("TASK_STATE_AUTH_REQUIRED", ["SendStreamingMessage", "CancelTask"]),
        ("TASK_STATE_COMPLETED", ["SendStreamingMessage"]),
    ],
)
async def test_a_task_that_waits_for_an_answer_is_not_left_open(
    state: str, methods: list[str]
) -> None:
    async def stream(exchange: Exchange) -> None:
        await exchange.send(STREAM_HEAD)
        await exchange.chunk(**status(state, "Which one?"))

    async with serve(stream) as wire:
        spec = await remote_spec(wire.url, protocol="a2a")
        events, _ = await run(spec, request_of(), until=lambda: len(wire.exchanges) == len(methods))
        assert text_of(events) == "Which one?"
        assert [exchange.body["method"] for exchange in wire.exchanges] == methods


async def test_an_agent_of_a2a_may_answer_at_once() -> None:
    done = task(task={"id": "t", "status": {"state": "TASK_STATE_COMPLETED"},
                      "artifacts": [{"artifactId": "a", "parts": [{"text": "All"}]}]})  # fmt: skip

    async def answer_at_once(exchange: Exchange) -> None:
        body = json.dumps(done).encode()
        await exchange.refuse("200 OK", body, "Content-Type: application/json")

    async with serve(answer_at_once) as wire:
        spec = await remote_spec(wire.url, protocol="a2a", options={"streams": False})
        events, _ = await run(spec, request_of())
    assert text_of(events) == "All"
    assert wire.exchanges[0].body["method"] == "SendMessage"


@pytest.mark.parametrize("protocol", ["acp", "uamp"])
@pytest.mark.parametrize("how", ["garbage", "bytes", "much", "silent", "gone"])
async def test_a_socket_that_misbehaves_is_a_typed_error(
    settings: Settings, protocol: str, how: str
) -> None:
    settings.UAMP_REMOTE_ANSWER_BYTES = 1024 * 1024

    async def misbehave(socket: ServerConnection) -> None:
        await socket.recv()
        match how:
            case "garbage":
                await socket.send("{]")
            case "bytes":
                await socket.send(b"\x00")
            case "much":
                for _ in range(40):
                    await socket.send(
                        json.dumps({"type": "pong", "x": "y" * 50_000, "method": "n"})
                    )
            case "silent":
                await socket.wait_closed()
        if how != "gone":
            await asyncio.sleep(0.5)

    async with serve_socket(misbehave, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        spec = await remote_spec(
            f"http://127.0.0.1:{port}", protocol=protocol, options={"timeout": 1}
        )
        _, error = await failure(spec, request_of())
    expected = {"silent": "timeout", "gone": "agent_offline"}
    assert error.code == expected.get(how, "provider_error")
