"""Tools of real MCP servers, over stdio and over HTTP: what they bring, and what they must not."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from agents_app.mcp.tools import find_tool, refresh
from agents_app.models import ToolSource
from agents_app.tools.registry import ToolCancelled, ToolError, ToolOutcome
from tests.agents_app.mcp import mcp_sources
from tests.agents_app.mcp.mcp_sources import SECRET, lines
from tests.agents_app.run_context import Context
from tests.agents_app.web_server import web_server

pytestmark = pytest.mark.usefixtures("database_threads")


@pytest.fixture(autouse=True)
def _open(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = ["agents_app.tools.csv_report.csv_report"]
    settings.UAMP_MCP_COMMANDS = [sys.executable]


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    return tmp_path / "journal"


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """Run one HTTP server for all tests; gives its place and its journal."""
    journal = tmp_path_factory.mktemp("web") / "journal"
    with mcp_sources.http_server(journal) as place:
        yield place, journal


# What the server lists is asked for once for each transport: a program takes a second to start.
listings: dict[str, tuple[Any, str]] = {}


# Each call over stdio starts a program. The tests with a `journal` of their own call one in the
# short tier too.
@pytest.fixture(params=[pytest.param("stdio", marks=pytest.mark.long), "http"])
def demo(request: pytest.FixtureRequest, settings: Settings, journal: Path) -> ToolSource:
    """Give the source of the real server, listed, over each transport."""
    if request.param == "stdio":
        source = mcp_sources.program(journal)
    else:
        place, _ = request.getfixturevalue("web")
        settings.UAMP_MCP_PRIVATE_HOSTS = [place]
        source = mcp_sources.address(f"http://{place}/mcp", name="demo")
    if (listing := listings.get(request.param)) is None:
        assert refresh(source)
        listings[request.param] = source.tools, source.server
    else:
        source.tools, source.server = listing
        source.refreshed_at = timezone.now()
        source.save()
    return source


def call(name: str, context: Context | None = None, /, **arguments: Any) -> ToolOutcome:
    """Find a tool as a worker does and run it."""
    tool = find_tool(name)
    assert tool is not None
    return tool.run(context or Context(), arguments)


# --- Listings ---


def test_a_refresh_keeps_what_the_server_lists(demo: ToolSource) -> None:
    ToolSource.objects.update(tools=[], server="", refreshed_at=None)
    assert refresh(demo)
    demo.refresh_from_db()
    assert [tool["name"] for tool in demo.tools][:4] == ["add", "slow", "walk", "hint"]
    add = demo.tools[0]
    assert (add["description"], add["annotations"]) == ("Add two numbers.", {"readOnlyHint": True})
    assert set(add["inputSchema"]["properties"]) == {"a", "b"}
    assert demo.server.startswith("test-server 7, MCP 20")
    assert demo.refreshed_at is not None
    assert demo.error == ""


def test_a_refresh_that_fails_keeps_the_listing_and_says_why(
    demo: ToolSource, settings: Settings
) -> None:
    settings.UAMP_MCP_COMMANDS = settings.UAMP_MCP_PRIVATE_HOSTS = []
    assert not refresh(demo)
    demo.refresh_from_db()
    assert len(demo.tools) > 3
    assert demo.error.startswith(("The program ", "demo cannot be reached: "))


def test_tools_that_no_agent_could_have_are_left_out_and_named(journal: Path) -> None:
    many = mcp_sources.program(journal, way="many")
    assert refresh(many)
    assert len(many.tools) == 200
    assert many.error.startswith("Left out: t200, ")
    for way in ("large", "twice"):
        other = mcp_sources.program(journal, way=way, name=way)
        assert refresh(other)
        assert other.error == "Left out: work."
        assert len(other.tools) == (way == "twice")


def test_a_listing_has_only_texts_that_every_database_takes(journal: Path) -> None:
    source = mcp_sources.program(journal, way="nul")
    assert refresh(source)
    source.refresh_from_db()
    assert source.tools[0]["description"] == "Work\N{REPLACEMENT CHARACTER}!"
    assert "\0" not in json.dumps(source.tools, ensure_ascii=False)


def test_a_call_keeps_the_listing_that_it_saw_when_the_row_is_an_hour_old(
    demo: ToolSource,
) -> None:
    tools = demo.tools
    ToolSource.objects.update(tools=tools[:1])
    call("demo__add", a=1, b=2)
    demo.refresh_from_db()
    assert len(demo.tools) == 1
    ToolSource.objects.update(refreshed_at=timezone.now() - timedelta(minutes=61))
    call("demo__add", a=1, b=2)
    demo.refresh_from_db()
    assert demo.tools == tools
    assert demo.refreshed_at is not None
    assert timezone.now() - demo.refreshed_at < timedelta(minutes=1)


# --- Finding ---


@pytest.mark.parametrize("name", ["demo__absent", "absent__add", "demo", "demo__", "", "__"])
def test_unknown_names_are_not_found(journal: Path, name: str) -> None:
    mcp_sources.program(journal, tools=[])
    assert find_tool(name) is None


def test_the_tools_of_this_server_are_found_too() -> None:
    tool = find_tool("csv_report")
    assert tool is not None
    assert tool.name == "csv_report"
    assert not tool.in_worker


def test_a_source_that_is_switched_off_has_no_tools(demo: ToolSource) -> None:
    tool = find_tool("demo__add")
    assert tool is not None
    ToolSource.objects.update(is_enabled=False)
    assert find_tool("demo__add") is None
    with pytest.raises(ToolError, match="The source demo no longer exists"):
        tool.run(Context(), {"a": 1, "b": 2})


# --- Answers ---


@pytest.mark.any_database
def test_a_tool_answers(demo: ToolSource) -> None:
    assert call("demo__add", a=1, b=2) == ToolOutcome(result="3")
    assert call("demo__no_good_name_") == ToolOutcome(result="odd")
    assert call("demo__nothing").result == "The tool finished without output."


@pytest.mark.any_database
def test_an_object_without_text_is_given_as_json(demo: ToolSource) -> None:
    assert json.loads(call("demo__structured").result) == {"rain": [1, 2]}


@pytest.mark.any_database
def test_a_tool_that_fails_is_an_error_that_the_model_reads(demo: ToolSource) -> None:
    assert call("demo__fail") == ToolOutcome(result="There is no rain.", is_error=True)


@pytest.mark.any_database
def test_media_become_contents_and_the_text_names_their_ids(demo: ToolSource) -> None:
    context = Context()
    outcome = call("demo__image", context)
    assert [(data[:4], kind, name) for data, kind, name in context.written] == [
        (b"\x89PNG", "image/png", "demo__image-1.png"),
        (b"rain", "text/plain", "demo__image-2.txt"),
    ]
    assert len(outcome.content_items) == 2
    assert outcome.result.split("\n\n") == [
        "Here it is.",
        "[image: content_id x]",
        "[The tool's image cannot be kept: Only base64 data is allowed]",
        "[file: content_id x]",
        "It rains.",
        "[The tool refers to a missing resource: map]",
    ]
    assert "http" not in outcome.result


@pytest.mark.any_database
def test_progress_is_reported_with_a_percentage_when_the_end_is_known(demo: ToolSource) -> None:
    context = Context()
    assert call("demo__slow", context, steps=4, pause=0.3).result == "4 steps"
    reported = [(t["percent"], t["message"]) for t in context.reported]
    assert (25.0, "step 1") in reported
    assert (100.0, "step 4") in reported
    assert {t["stage"] for t in context.reported} == {"call"}


@pytest.mark.any_database
def test_progress_without_an_end_has_no_percentage(demo: ToolSource) -> None:
    context = Context()
    call("demo__hint", context)
    assert (None, "seven so far") in [(t["percent"], t["message"]) for t in context.reported]


@pytest.mark.any_database
def test_a_flood_of_progress_is_reported_by_its_last(journal: Path) -> None:
    assert refresh(mcp_sources.program(journal, way="flood"))

    class Slow(Context):
        def progress(self, **report: Any) -> None:
            time.sleep(0.05)
            super().progress(**report)

    context = Slow()
    assert call("demo__work", context).result == "wet"
    assert 1 <= len(context.reported) < 1000


@pytest.mark.any_database
def test_an_answer_may_have_as_many_bytes_as_the_limit_and_no_more(
    demo: ToolSource, settings: Settings
) -> None:
    settings.UAMP_MCP_RESULT_BYTES = 60_000
    assert len(call("demo__huge", size=59_000).result) == 59_000
    with pytest.raises(ToolError, match="has more than 60000 bytes and was not read"):
        call("demo__huge", size=60_000)


# --- Arguments ---


@pytest.mark.any_database
def test_arguments_that_do_not_fit_are_answered_and_the_tool_is_not_begun(
    demo: ToolSource,
) -> None:
    outcome = call("demo__add", a="one", b=2)
    assert outcome.is_error
    assert outcome.result == "demo__add was not run. 'one' is not of type 'integer' - at $.a."
    assert "'b' is a required property" in call("demo__add", a=1).result


@pytest.mark.any_database
def test_an_invalid_schema_is_reported(journal: Path) -> None:
    assert refresh(mcp_sources.program(journal, way="no_schema"))
    with pytest.raises(ToolError, match="demo lists 'work' with an invalid schema"):
        call("demo__work", a=1)
    assert lines(journal) == ["input ended", "input ended"]


@pytest.mark.any_database
def test_a_schema_never_makes_this_server_fetch_anything(journal: Path) -> None:
    with web_server() as elsewhere:
        url = elsewhere.page("/schema", "{}", "application/json")
        assert refresh(mcp_sources.program(journal, way="far_away", env={"SCHEMA": url}))
        with pytest.raises(ToolError, match="with an invalid schema"):
            call("demo__work", a=1)
    assert elsewhere.asked == []


@pytest.mark.any_database
def test_a_removed_tool_is_reported(journal: Path) -> None:
    assert refresh(mcp_sources.program(journal, way="gone"))
    outcome = call("demo__work")
    assert outcome == ToolOutcome(
        result="demo no longer has a tool named 'work'.", is_error=True, cause="no such tool"
    )


# --- Ends ---


@pytest.fixture
def reported(request: pytest.FixtureRequest, demo: ToolSource, journal: Path) -> Callable[[], int]:
    """Return the number of calls that the server was asked to cancel."""
    path = journal if demo.transport == "stdio" else request.getfixturevalue("web")[1]
    before = lines(path).count("cancelled")
    return lambda: lines(path).count("cancelled") - before


def wait_for(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@pytest.mark.any_database
def test_a_cancelled_call_is_cancelled_at_its_server(
    demo: ToolSource, reported: Callable[[], int]
) -> None:
    class Cancelled(Context):
        def progress(self, **report: Any) -> None:
            if report["percent"]:
                raise ToolCancelled

    with pytest.raises(ToolCancelled):
        call("demo__slow", Cancelled(), steps=1000, pause=0.05)
    wait_for(lambda: reported() == 1)


@pytest.mark.any_database
def test_a_cancelled_call_is_cancelled_at_a_server_of_an_older_protocol_too(
    journal: Path,
) -> None:
    class Cancelled(Context):
        def progress(self, **_said: Any) -> None:
            raise ToolCancelled

    assert refresh(mcp_sources.program(journal, way="silent"))
    with pytest.raises(ToolCancelled):
        call("demo__work", Cancelled())
    assert lines(journal)[-2:] == ["cancelled", "input ended"]


@pytest.mark.any_database
def test_a_call_that_takes_too_long_is_cancelled_at_its_server(
    demo: ToolSource, reported: Callable[[], int]
) -> None:
    ToolSource.objects.update(seconds=1)
    with pytest.raises(ToolError) as failed:
        call("demo__slow", steps=1000, pause=0.05)
    assert str(failed.value) == "demo took longer than 1 seconds and was stopped."
    wait_for(lambda: reported() == 1)


@pytest.mark.any_database
def test_a_silent_call_still_reports_progress(demo: ToolSource) -> None:
    context = Context()
    call("demo__slow", context, steps=1, pause=2.2)
    assert len(context.reported) >= 2


@pytest.mark.any_database
def test_the_secret_of_a_source_reaches_its_program_and_no_reader(journal: Path) -> None:
    assert refresh(mcp_sources.program(journal))
    assert call("demo__secret").result == "it is ********"


@pytest.mark.any_database
def test_an_environment_variable_is_read_when_the_source_is_used(
    journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = mcp_sources.program(journal, env={"TOKEN": "${MCP_TEST_TOKEN}"})
    assert not refresh(source)
    assert source.error == "The environment variable MCP_TEST_TOKEN is not set."
    monkeypatch.setenv("MCP_TEST_TOKEN", "open!")
    assert refresh(source)
    assert call("demo__secret").result == "it is open!"


@pytest.mark.any_database
def test_a_row_cannot_read_the_secrets_of_this_server(journal: Path) -> None:
    source = mcp_sources.program(journal, env={"TOKEN": "${SECRET_KEY}"})
    assert not refresh(source)
    assert source.error == "${SECRET_KEY} is not open to sources: names begin with MCP_."
    assert lines(journal) == []


@pytest.mark.any_database
def test_the_environment_of_this_server_stays_here(journal: Path) -> None:
    source = mcp_sources.program(journal, way="error", env={})
    assert refresh(source)
    with pytest.raises(ToolError, match=r"ended \(status 1\)"):
        call("demo__work")
    assert SECRET not in source.error
