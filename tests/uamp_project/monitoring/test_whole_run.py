"""One run of the product: no credential in its log, the ids in its lines, metrics and spans."""

from __future__ import annotations

import base64
import json
import queue
import re
import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

import httpx
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.client import TERMINAL, UampClient
from tests.http_server import LocalServer, QuietHandler, serving
from tests.journeys.product import Product
from tests.uamp_project.monitoring.test_worker_metrics import free_port
from tests.uamp_project.serving import Serving, until
from uamp_project.monitoring.workers import PORTS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.long

METRICS_TOKEN = secrets.token_hex(12)
WORKER_PORT = free_port()
# A client may write a credential where the log has its words.
TYPED = secrets.token_hex(12)
CSV = base64.b64encode(b"day,rain\n1,2\n2,4\n").decode()


class Collector(QuietHandler):
    """Takes spans as a collector of OpenTelemetry does."""

    taken: queue.SimpleQueue[ExportTraceServiceRequest] = queue.SimpleQueue()

    def do_POST(self) -> None:  # noqa: N802 the standard library has this name
        """Keep what came."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.headers.get("Content-Encoding") == "gzip":
            import gzip  # noqa: PLC0415 only where the exporter compresses

            body = gzip.decompress(body)
        self.taken.put(ExportTraceServiceRequest.FromString(body))
        self.send_response(200)
        self.end_headers()


@dataclass(frozen=True)
class Span:
    """A span as the collector has it."""

    name: str
    trace: bytes
    id: bytes
    parent: bytes
    attributes: dict[str, str]


@dataclass(frozen=True)
class WholeRun:
    """The traces of a run."""

    log: str
    metrics: str
    worker_metrics: str
    spans: list[Span]
    planted: dict[str, str]
    responses: dict[str, str]
    refused_metrics: list[int]
    request_id: str


@pytest.fixture(scope="module")
def whole_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WholeRun]:
    """Run the product once, in every way in which it gets a credential."""
    data_dir = tmp_path_factory.mktemp("whole-run")
    product = Product(data_dir, 0)
    product.prepare()
    alice = product.people["alice"]
    planted = {
        "metrics": METRICS_TOKEN,
        "type of an event": TYPED,
        "model key": f"sk-{secrets.token_hex(20)}",
        "stripe": secrets.token_hex(16),
        "django": secrets.token_hex(30),
        "password": alice["password"],
        "wrong password": f"wrong-{secrets.token_hex(8)}",
        "key": alice["api_key"],
        "wrong key": f"uak_{secrets.token_hex(4)}_{secrets.token_hex(16)}",
        "payment": f"ptok_{secrets.token_hex(16)}",
    }
    with serving(LocalServer(Collector)) as collector:
        running = Serving(
            data_dir,
            LOG_FORMAT="json",
            LOG_LEVEL="DEBUG",
            SECRET_KEY=planted["django"],
            OPENAI_API_KEY=planted["model key"],
            UAMP_STRIPE_WEBHOOK_SECRET=planted["stripe"],
            UAMP_METRICS_TOKEN=METRICS_TOKEN,
            UAMP_WORKER_METRICS_PORT=str(WORKER_PORT),
            OTEL_EXPORTER_OTLP_ENDPOINT=collector.origin,
            OTEL_BSP_SCHEDULE_DELAY="200",
        )
        try:
            yield observed(running, planted)
        finally:
            running.process.end()


def observed(running: Serving, planted: dict[str, str]) -> WholeRun:
    """Use the server, and read what it says of that."""
    url = f"http://127.0.0.1:{running.port}"
    running.wait_for_workers()
    with httpx.Client(base_url=url, timeout=60) as client:
        headers = {"Authorization": f"Bearer {planted['key']}", "X-Request-ID": "run-1"}
        assert client.get("/api/v1/chats", headers=headers).headers["X-Request-ID"] == "run-1"
        client.get("/api/v1/chats", headers={"Authorization": f"Bearer {planted['wrong key']}"})
        client.get("/api/v1/chats", headers={"X-Payment-Token": planted["payment"]})
        for password in (planted["wrong password"], planted["password"]):
            page = client.get("/login").text
            token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', page)
            assert token is not None
            planted[f"csrf of {password}"] = token[1]
            form = {"username": "alice", "password": password, "csrfmiddlewaretoken": token[1]}
            client.post("/login", data=form, headers={"Referer": url})
        planted["cookie"] = client.cookies["sessionid"]
        ticket = client.post("/api/v1/tickets", headers=headers).json()["ticket"]
        planted["ticket"] = ticket
        responses = {
            "echo": answer(
                f"ws://127.0.0.1:{running.port}/agents/echo/uamp?ticket={ticket}",
                headers={"X-Request-ID": "run-2"},
            ),
        }
        spans, responses["report"] = report_spans(running, planted["key"])
        refused = [
            client.get("/metrics").status_code,
            client.get("/metrics", headers={"Authorization": "Bearer wrong"}).status_code,
        ]
        metrics = client.get("/metrics", headers={"Authorization": f"Bearer {METRICS_TOKEN}"})
        assert metrics.headers["Content-Type"].startswith("text/plain; version=")
        worker_metrics = metrics_of_workers()
    return WholeRun(
        # The greeting on standard output shows the passwords of the demo.
        log="\n".join(
            line
            for line in running.output.read_text().splitlines()
            if not line.startswith("  sign in as")
        ),
        metrics=metrics.text,
        worker_metrics=worker_metrics,
        spans=spans,
        planted=planted,
        responses=responses,
        refused_metrics=refused,
        request_id="run-2",
    )


def metrics_of_workers() -> str:
    """Return the metrics of all workers, which have one port each."""
    pages = []
    for port in range(WORKER_PORT, WORKER_PORT + PORTS):
        try:
            page = httpx.get(
                f"http://127.0.0.1:{port}/metrics",
                headers={"Authorization": f"Bearer {METRICS_TOKEN}"},
                timeout=20,
            )
        except httpx.TransportError:
            continue  # no worker is here
        pages.append(page.text)
    return "\n".join(pages)


def report_spans(running: Serving, key: str) -> tuple[list[Span], str]:
    """Ask for a report until its worker had it from the first message; return all spans.

    A worker that took longer had the call from the sweep, which belongs to no response.
    """
    spans: list[Span] = []
    for _ in range(5):
        response = answer(f"ws://127.0.0.1:{running.port}/agents/report/uamp?token={key}", file=CSV)

        def came(name: str, response: str = response) -> list[Span]:
            while not Collector.taken.empty():
                spans.extend(spans_of(Collector.taken.get_nowait()))
            return [
                span
                for span in spans
                if span.name == name and span.attributes.get("uamp_server.response.id") == response
            ]

        until(lambda came=came: came("tool") and came("response"), "both spans")  # type: ignore[misc]
        if came("tool")[0].parent:
            return spans, response
    pytest.fail("the worker never had a call from its response")


def answer(url: str, *, file: str = "", headers: dict[str, str] | None = None) -> str:
    """Ask an agent; return the id of its response."""
    with UampClient(url, headers=headers) as socket:
        socket.send("session.create", uamp_version="1.0", session={"modalities": ["text"]})
        socket.until("session.created")
        socket.send(f"unheard.of?token={TYPED}")
        if file:
            socket.send("input.file", file=file, mime_type="text/csv", filename="rain.csv")
        socket.send("input.text", text="hello there")
        socket.send("response.create")
        end = socket.until(*TERMINAL)[-1]
        assert end["type"] == "response.done", end
        response_id: str = end["response_id"]
        return response_id


def spans_of(request: ExportTraceServiceRequest) -> list[Span]:
    """Return the spans of one export."""
    return [
        Span(
            span.name,
            span.trace_id,
            span.span_id,
            span.parent_span_id,
            {attribute.key: attribute.value.string_value for attribute in span.attributes},
        )
        for resource in request.resource_spans
        for scope in resource.scope_spans
        for span in scope.spans
    ]


def test_no_line_of_the_log_has_a_credential(whole_run: WholeRun) -> None:
    leaked = [name for name, value in whole_run.planted.items() if value in whole_run.log]

    assert leaked == []
    # One line had one.
    assert "[redacted]" in whole_run.log


def test_each_line_is_an_object_with_the_ids_of_its_work(whole_run: WholeRun) -> None:
    lines = [json.loads(line) for line in whole_run.log.splitlines() if line.startswith("{")]
    of_response = [
        line for line in lines if line.get("response_id") == whole_run.responses["report"]
    ]

    assert {"time", "level", "logger", "message"} <= set(lines[0])
    unknown = [line for line in lines if "unheard.of" in line["message"]]
    assert whole_run.request_id in {line["request_id"] for line in unknown}
    assert all(line["session_id"] for line in unknown)
    # The worker's lines too: it is another process.
    assert of_response


def test_the_metrics_count_what_was_done(whole_run: WholeRun) -> None:
    counted: dict[str, float] = {}
    for line in whole_run.metrics.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            counted[name] = float(value)

    assert counted['uamp_responses_total{code="",status="completed",transport="websocket"}'] >= 2
    assert counted["uamp_first_delta_seconds_count"] >= 2
    assert counted["uamp_deltas_total"] >= 2
    assert counted['uamp_tool_calls_total{kind="worker",outcome="done"}'] >= 1
    assert counted['uamp_inference_seconds_count{provider="scripted"}'] >= 2
    assert counted['uamp_http_requests_total{method="GET",status="4xx"}'] >= 2
    assert counted["uamp_database_wait_seconds_count"] > 0
    assert counted["uamp_turn_group_size_count"] >= 4
    assert counted["uamp_ledger_mismatches"] == counted["uamp_ledger_frozen"] == 0
    # What workers are scaled by is there without a row, too.
    for labels in (
        'kind="webhook_delivery",state="queued"',
        'kind="tool_long",state="queued"',
        'kind="tool_long",state="running"',
    ):
        assert counted[f"uamp_open_work{{{labels}}}"] == 0


def test_the_metrics_of_workers_count_their_tasks(whole_run: WholeRun) -> None:
    counted = re.findall(
        r'^uamp_tasks_total\{outcome="done",task="run_tool_call"\} (\S+)$',
        whole_run.worker_metrics,
        re.MULTILINE,
    )
    # One of the two workers has the queue of tools.
    assert [float(count) >= 1 for count in counted] == [True]
    assert (
        len(re.findall(r"^process_start_time_seconds ", whole_run.worker_metrics, re.MULTILINE))
        == 2
    )


def test_the_metrics_are_for_who_has_the_token(whole_run: WholeRun) -> None:
    assert whole_run.refused_metrics == [401, 401]


def test_spans_lead_from_the_response_to_the_worker(whole_run: WholeRun) -> None:
    report = whole_run.responses["report"]
    response = next(
        span
        for span in whole_run.spans
        if span.name == "response" and span.attributes["uamp_server.response.id"] == report
    )
    below = [span for span in whole_run.spans if span.trace == response.trace]

    assert {"inference", "tool"} <= {span.name for span in below}
    tool = next(span for span in below if span.name == "tool")
    assert tool.attributes["gen_ai.tool.name"] == "csv_report"
    assert tool.parent == response.id
    exported = repr(whole_run.spans)
    assert not [name for name, value in whole_run.planted.items() if value in exported]
    assert "hello there" not in exported


def test_without_a_token_the_metrics_are_not_found(server: ServerAddress) -> None:
    assert httpx.get(f"{server.http}/metrics").status_code == 404
