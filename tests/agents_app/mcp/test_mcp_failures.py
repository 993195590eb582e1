"""MCP servers that fail: what a person reads, what the log has, and what is left behind."""

import gzip
import json
import os
import sys
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from agents_app.mcp import client
from agents_app.mcp.tools import find_tool, refresh
from agents_app.models import ToolSource
from agents_app.tools.registry import ToolError
from tests.agents_app.mcp import mcp_sources
from tests.agents_app.mcp.mcp_sources import SECRET, lines
from tests.agents_app.run_context import Context
from tests.agents_app.web_server import WebServer, web_server
from tests.client import wait_until

pytestmark = [pytest.mark.usefixtures("database_threads"), pytest.mark.any_database]


@pytest.fixture(autouse=True)
def _open(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = ["agents_app.tools.csv_report.csv_report"]
    settings.UAMP_MCP_COMMANDS = [sys.executable, "/nowhere/absent", str(Path(__file__))]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


def failure(source: ToolSource) -> str:
    """Refresh a source that does not work; returns what a person reads."""
    assert not refresh(source)
    return source.error


def failed_call(journal: Path, way: str, **fields: object) -> str:
    """Call the one tool of a crude server; returns what a person reads."""
    assert refresh(mcp_sources.program(journal, way=way, **fields))
    tool = find_tool("demo__work")
    assert tool is not None
    with pytest.raises(ToolError) as failed:
        tool.run(Context(), {})
    return str(failed.value)


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()


# --- Programs ---


def test_a_program_that_the_setting_does_not_list_is_not_started(
    journal: Path, settings: Settings
) -> None:
    settings.UAMP_MCP_COMMANDS = ["python"]
    assert failure(mcp_sources.program(journal, way="dead")) == (
        f"The program {sys.executable!r} may not be started: the setting UAMP_MCP_COMMANDS does"
        " not list it."
    )
    assert lines(journal) == []


def test_a_missing_program_is_reported(journal: Path) -> None:
    source = mcp_sources.program(journal, command="/nowhere/absent")
    assert failure(source) == "The program of demo cannot be started: No such file or directory."
    source = mcp_sources.program(journal, command=__file__, name="other")
    assert failure(source) == "The program of other cannot be started: Permission denied."


def test_a_program_that_exits_at_once_is_reported(journal: Path) -> None:
    reported = failure(mcp_sources.program(journal, way="dead"))
    assert reported == "The program of demo ended (status 4)."


def test_a_program_that_ends_in_a_call_may_have_done_its_work(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert refresh(mcp_sources.program(journal))
    tool = find_tool("demo__crash")
    assert tool is not None
    with pytest.raises(ToolError) as failed:
        tool.run(Context(), {})
    assert str(failed.value) == (
        "The program of demo ended (status 3). It may or may not have done its work."
    )
    assert "the password is ********" in caplog.text
    assert SECRET not in caplog.text


def test_a_program_that_says_nothing_is_given_up(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "START_SECONDS", 1.0)
    reported = failure(mcp_sources.program(journal, way="mute"))
    assert reported == "demo did not start in 1 seconds."


def test_a_program_may_write_other_lines_too(journal: Path) -> None:
    assert refresh(mcp_sources.program(journal, way="noisy"))


@pytest.mark.parametrize("way", ["stubborn", "leaver"])
def test_a_program_ends_with_its_session_and_so_does_what_it_started(
    journal: Path, way: str
) -> None:
    source = mcp_sources.program(journal, way=way)
    assert refresh(source)
    tool = find_tool("demo__work")
    assert tool is not None
    assert tool.run(Context(), {}).result == "done"
    pids = [int(line.split()[1]) for line in lines(journal) if line.startswith(("child", "called"))]
    assert len(pids) == 3
    wait_until(lambda: not any(map(is_alive, pids)))


@pytest.mark.long
def test_a_line_without_an_end_is_not_kept(journal: Path, settings: Settings) -> None:
    settings.UAMP_MCP_RESULT_BYTES = 1_000_000
    reported = failed_call(journal, "endless")
    assert reported == "The answer of demo has more than 1000000 bytes and was not read."


def test_malformed_json_is_not_taken_as_an_answer(journal: Path) -> None:
    reported = failed_call(journal, "malformed", seconds=1)
    assert reported == (
        "demo took longer than 1 seconds and was stopped. It wrote output that is not JSON-RPC."
        " It may or may not have done its work."
    )
    assert "cancelled" in lines(journal)


def test_a_protocol_violation_is_reported(journal: Path) -> None:
    assert failed_call(journal, "odd") == "demo sent an answer that violates the protocol."


def test_an_error_of_the_server_is_quoted_without_secrets(
    journal: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert failed_call(journal, "error") == "demo answered with an error: no ********"
    assert SECRET not in caplog.text


# --- Addresses ---


@pytest.fixture
def web(settings: Settings) -> Iterator[WebServer]:
    """Run a web server that the sources may ask."""
    with web_server() as server:
        settings.UAMP_MCP_PRIVATE_HOSTS = [server.place]
        yield server


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://127.0.0.1:9/mcp", "'http' is not https"),
        ("https://127.0.0.1/mcp", "127.0.0.1 is this server"),
        ("https://10.0.0.1:22/mcp", "port 22 is not one of [443, 8443]"),
        ("https://user:hunter2hunter2@example.org/mcp", "the URL has user information"),
        ("", "'' is not https"),
    ],
)
def test_an_address_that_may_not_be_asked_is_refused(url: str, reason: str) -> None:
    reported = failure(mcp_sources.address(url))
    assert reason in reported or "has no host" in reported
    assert SECRET not in reported


@pytest.mark.parametrize("host", ["10.1.2.3", "169.254.169.254", "[::1]", "[fd00::1]"])
def test_a_private_address_is_not_asked(
    host: str, settings: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    settings.ALLOWED_HOSTS = []
    assert failure(mcp_sources.address(f"https://{host}/mcp")) == "web cannot be reached."
    assert f"leads to {host.strip('[]')}" in caplog.text


def test_a_server_that_is_not_there_cannot_be_reached(web: WebServer, settings: Settings) -> None:
    settings.UAMP_MCP_PRIVATE_HOSTS = ["127.0.0.1:1"]
    assert failure(mcp_sources.address("http://127.0.0.1:1/mcp")) == "web cannot be reached."


@pytest.mark.parametrize("status", [401, 403])
def test_rejected_credentials_are_reported(
    web: WebServer, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_KEY", SECRET)
    url = web.page("/mcp", "no", status=status)
    source = mcp_sources.address(url, headers={"Authorization": "Bearer ${MCP_KEY}"})
    assert failure(source) == f"web refused this server ({status}): check its credentials."
    assert web.asked[0][1]["Authorization"] == f"Bearer {SECRET}"


def test_a_server_error_is_reported(web: WebServer) -> None:
    reported = failure(mcp_sources.address(web.page("/mcp", "oh", status=500)))
    assert reported == "web answered with an error (status 500): Server returned an error response"


def test_a_web_page_is_not_an_mcp_server(web: WebServer) -> None:
    reported = failure(mcp_sources.address(web.page("/mcp", "<html>")))
    assert reported.startswith("web answered with an error: Unexpected content type")


def test_malformed_json_over_http_is_reported(web: WebServer) -> None:
    url = web.page("/mcp", '{"jsonrpc": "2.0", "resu', "application/json")
    assert failure(mcp_sources.address(url)).startswith("web answered with an error: Failed to")


def test_a_redirect_leads_nowhere_else(web: WebServer) -> None:
    with web_server() as other:
        other.page("/mcp", "{}", "application/json")
        url = web.page("/mcp", status=307, Location=other.url("/mcp"))
        reported = failure(mcp_sources.address(url))
    assert "not followed" in reported
    assert other.asked == []


def test_a_compressed_answer_is_not_unpacked(web: WebServer) -> None:
    bomb = gzip.compress(json.dumps({"jsonrpc": "2.0", "id": 1, "result": {}}).encode())
    url = web.page("/mcp", bomb, "application/json", Content_Encoding="gzip")
    assert failure(mcp_sources.address(url)) == "The connection to web broke."
    assert {headers["Accept-Encoding"] for _, headers in web.asked} == {"identity"}


def test_an_endless_answer_is_not_kept(web: WebServer, settings: Settings) -> None:
    settings.UAMP_MCP_RESULT_BYTES = 100_000

    def endless(request: BaseHTTPRequestHandler) -> None:
        request.send_response(200)
        request.send_header("Content-Type", "application/json")
        request.end_headers()
        while not web.stop.is_set():
            request.wfile.write(b" " * 10_000)

    web.pages["/mcp"] = endless
    reported = failure(mcp_sources.address(web.url("/mcp")))
    assert reported == "The answer of web has more than 100000 bytes and was not read."
