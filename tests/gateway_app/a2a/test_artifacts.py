"""The artifacts of a task keep the order of the output, however their client comes by them."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import pytest

import uamp
from agents_app.providers import scripts
from agents_app.tools.registry import server_tools
from gateway_app.a2a import methods
from gateway_app.a2a.tasks.task import ArtifactUpdate
from gateway_app.a2a.tasks.writer import TaskWriter
from tests.gateway_app.a2a.calls import call, events_of, text_message
from tests.interop.a2a_kit import agent as kit
from uamp import events as ev

if TYPE_CHECKING:
    from collections.abc import Sequence

    import httpx
    from pytest_django.fixtures import Settings

    from tests.live_server import Person

FILE = uamp.FileContent(
    file=uamp.MediaUrl(url="https://example.com/a"), filename="a", mime_type="text/plain"
)
OUTPUT = (uamp.TextContent(text="First."), FILE, uamp.TextContent(text='["then"]'))


def text(piece: str, offset: int | None = None) -> ev.ResponseDelta:
    return ev.ResponseDelta(response_id="r", delta=ev.Delta(type="text", text=piece), offset=offset)


def done(output: Sequence[uamp.ContentItem] = OUTPUT) -> ev.ResponseDone:
    response = ev.ResponseOutput(id="r", status="completed", output=tuple(output))
    return ev.ResponseDone(response_id="r", response=response)


SHOWN = ev.ResponseDelta(
    response_id="r",
    delta=ev.Delta(type="file", file=FILE.file, filename="a", mime_type="text/plain"),
)


def built(*batches: list[ev.Event], accepts_data: bool = True) -> list[Any]:
    """Return the contents of the artifacts that a client builds of the updates."""
    writer = TaskWriter("r", "c", link=str, accepts_data=accepts_data)
    contents: dict[str, Any] = {}
    for batch in batches:
        for update in writer.feed(batch):
            assert isinstance(update, ArtifactUpdate)
            artifact_id, (part,) = update.artifact.artifact_id, update.artifact.parts
            content = part.text or part.url or part.data
            contents[artifact_id] = contents[artifact_id] + content if update.append else content
    return [contents[key] for key in sorted(contents)]


WHOLE = ["First.", "https://example.com/a", ["then"]]


@pytest.mark.parametrize(
    "batches",
    [
        pytest.param(
            [[text("Fir")], [text("st.")], [SHOWN, text('["then"]')], [done()]], id="live"
        ),
        pytest.param([[text("First."), SHOWN, text('["th'), text('en"]'), done()]], id="at once"),
        pytest.param([[text('First.["th', 0)], [text('en"]')], [done()]], id="joined late"),
        pytest.param([[done()]], id="at the end"),
    ],
)
def test_a_client_builds_what_the_agent_made(batches: list[list[ev.Event]]) -> None:
    assert built(*batches) == WHOLE
    assert built(*batches, accepts_data=False) == [*WHOLE[:2], '["then"]']


@pytest.fixture
def kit_agent(web: httpx.Client, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the agent of the conformance kit, which answers as the id of a message says."""
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, kit.SHOW_FILE]
    assert "show_file" in server_tools()
    monkeypatch.setitem(scripts.SCRIPTS, kit.NAME, kit.answer)
    sent_message = methods.sent_message
    monkeypatch.setattr(
        methods, "sent_message", lambda params: kit.with_message_id(sent_message(params))
    )
    kit.make_agent()


def scenario(prefix: str) -> dict[str, Any]:
    """Return the parameters of a message with which the kit asks for a scenario."""
    message_id = f"tck-{prefix}-{uuid.uuid4().hex[:8]}"
    return {"message": {**text_message("Kit"), "messageId": message_id}}


@pytest.mark.usefixtures("kit_agent")
def test_what_the_conformance_kit_demands(web: httpx.Client, alice: Person) -> None:
    def parts(prefix: str) -> list[Any]:
        task = call(web, kit.NAME, "SendMessage", scenario(prefix), who=alice)["result"]["task"]
        assert task["status"]["state"] == "TASK_STATE_COMPLETED"
        assert call(web, kit.NAME, "GetTask", {"id": task["id"]}, who=alice)["result"] == task
        (artifact,) = task["artifacts"]
        return list(artifact["parts"])

    metadata = {"filename": "output.txt", "mediaType": "text/plain"}
    assert parts("artifact-data")[0]["data"] == {"key": "value", "count": 42}
    assert parts("artifact-file-url") == [{"url": "https://example.com/output.txt", **metadata}]
    (file,) = parts("artifact-file")
    assert {key: file[key] for key in metadata} == metadata
    assert web.get(file["url"]).text == "Output.\n" if "url" in file else file["raw"]
    message = call(web, kit.NAME, "SendMessage", scenario("message-response"), who=alice)
    assert message["result"]["message"]["parts"][0]["text"] == "Direct message response"

    params = scenario("stream-artifact-file")
    body = {"jsonrpc": "2.0", "id": 1, "method": "SendStreamingMessage", "params": params}
    answer = web.post(f"/agents/{kit.NAME}/a2a", json=body, headers=alice.headers)
    updates = [event["artifactUpdate"] for event in events_of(answer) if "artifactUpdate" in event]
    assert [update["artifact"]["name"] for update in updates] == ["output.txt"]

    reply = call(web, kit.NAME, "SendMessage", scenario("input-required"), who=alice)
    task = reply["result"]["task"]
    assert task["status"]["state"] == "TASK_STATE_INPUT_REQUIRED"
    params = scenario("complete-task")
    params["message"]["taskId"] = task["id"]
    task = call(web, kit.NAME, "SendMessage", params, who=alice)["result"]["task"]
    assert task["artifacts"][0]["parts"][0]["text"] == "Hello from TCK"
    refused = call(web, kit.NAME, "SendMessage", scenario("reject-task"), who=alice)
    assert refused["result"]["task"]["status"]["state"] == "TASK_STATE_REJECTED"
