"""Schemas of strangers: each value is judged, and no caller waits long for it."""

import asyncio
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from agents_app.mcp.tools import find_tool, refresh
from agents_app.tools.registry import ToolError, ToolOutcome
from agents_app.workers import child_processes, schema_checks
from agents_app.workers.schema_checks import NoSchemaError, TooMuchWorkError, misfit, slow_misfit
from tests.agents_app.mcp import mcp_sources
from tests.agents_app.run_context import Context

pytestmark = pytest.mark.any_database

SLOW = {"properties": {"a": {"pattern": "^(a+)+$"}}}
KEPT_BUSY = {"a": "a" * 60 + "!"}
LOOP: dict[str, Any] = {"$ref": "#"}


def nested(depth: int) -> dict[str, Any]:
    """Return a schema of a few lines that takes two to the power of `depth` steps."""
    parts = {f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(depth)}
    return {"$ref": "#/$defs/s0", "$defs": {**parts, f"s{depth}": {"type": "object"}}}


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        ({"properties": {"a": {"type": "integer"}}}, {"a": 1}, None),
        ({"properties": {"a": {"type": "integer"}}}, {"a": "x"}, "'x' is not of type 'integer'"),
        ({"required": ["b"]}, {}, "'b' is a required property"),
        (SLOW, {"a": "aaa"}, None),
        (SLOW, {"a": "b"}, "'b' does not match '^(a+)+$' - at $.a"),
        ({"properties": {"pattern": {"type": "integer"}}}, {"pattern": 1}, None),
        (nested(3), {}, None),
        (nested(3), 7, "7 is not of type 'object'"),
    ],
)
def test_a_misfit_is_reported_with_its_place(
    schema: dict[str, Any], value: Any, expected: str | None
) -> None:
    problem = misfit(schema, value, asker="a")
    assert problem == expected if expected is None else str(problem).startswith(expected)


@pytest.mark.parametrize(
    "schema",
    [{"type": 7}, {"$ref": "#/$defs/missing"}, LOOP, {"properties": {"a": {"pattern": "("}}}],
)
def test_an_invalid_schema_is_reported(schema: dict[str, Any]) -> None:
    with pytest.raises(NoSchemaError):
        misfit(schema, {"a": "b"}, asker="a")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (SLOW, KEPT_BUSY),
        ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 60 + "!": 1}),
        # A schema within it that names its own dialect.
        (
            {"anyOf": [{"$schema": "https://json-schema.org/draft/2020-12/schema", **SLOW}]},
            KEPT_BUSY,
        ),
        (nested(40), {}),
        ({"items": {"anyOf": [{"type": "string"}] * 1000}}, [1] * 50_000),
    ],
)
def test_an_endless_schema_check_is_given_up(
    schema: dict[str, Any], value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_checks, "CHECK_SECONDS", 1.0)
    with pytest.raises(TooMuchWorkError):
        misfit(schema, value, asker="a")


@pytest.mark.parametrize(
    ("schema", "is_cheap"),
    [
        ({"type": "object", "properties": {"pattern": {"enum": ["a", None]}}}, True),
        ({"type": ["string", "null"], "required": ["a"], "maxLength": 3, "title": "t"}, True),
        ({"items": {"type": "integer", "minimum": 0}, "additionalProperties": False}, True),
        ({"uniqueItems": True}, False),
        ({"items": {"properties": {"a": {"pattern": "a"}}}}, False),
        ({"additionalProperties": {"$ref": "#"}}, False),
        ({"enum": [[1]]}, False),
        ({"required": ["a", 1]}, False),
        ({"$schema": "http://json-schema.org/draft-03/schema#"}, False),
        ({"not": {}}, False),
        ({"title": "t" * 5_000}, False),
    ],
)
def test_only_schemas_of_known_cost_are_checked_in_a_thread(
    schema: dict[str, Any], is_cheap: object
) -> None:
    assert schema_checks.is_quick(schema, {"a": 1}) is is_cheap
    assert not schema_checks.is_quick(schema, "x" * 200_000)


# --- A source with such schemas ---


def call(
    way: str, journal: Path, settings: Settings, arguments: dict[str, Any] | None = None
) -> ToolOutcome:
    """Call the tool of a crude server."""
    settings.UAMP_MCP_COMMANDS = [sys.executable]
    assert refresh(mcp_sources.program(journal, way=way))
    tool = find_tool("demo__work")
    assert tool is not None
    return tool.run(Context(), arguments or {})


@pytest.mark.usefixtures("database_threads")
def test_arguments_that_keep_a_schema_busy_are_not_sent(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(schema_checks, "CHECK_SECONDS", 1.0)
    journal = tmp_path / "journal"
    with pytest.raises(ToolError, match="with a schema that takes too long to check"):
        call("slow_schema", journal, settings, KEPT_BUSY)
    assert not any(line.startswith("called") for line in mcp_sources.lines(journal))


@pytest.mark.usefixtures("database_threads")
def test_results_are_checked_as_long_as_that_takes_no_time(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = tmp_path / "journal"
    assert call("good_result", journal, settings).result == '{"a":"aaa"}'
    mcp_sources.forget()
    with pytest.raises(ToolError, match="sent an answer that violates the protocol"):
        call("bad_result", journal, settings)
    mcp_sources.forget()
    monkeypatch.setattr(schema_checks, "CHECK_SECONDS", 1.0)
    assert call("slow_result", journal, settings).result.endswith('a!"}')


@pytest.mark.long
async def test_the_slow_checks_of_one_asker_do_not_keep_others_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(schema_checks, "CHECK_SECONDS", 3.0)
    for asker in ("alice", "bob"):
        assert await slow_misfit(SLOW, {"a": "aaa"}, asker=asker, wait=30) is None
    greedy = [
        asyncio.create_task(slow_misfit(SLOW, KEPT_BUSY, asker="mallory", wait=30))
        for _ in range(4)
    ]
    await asyncio.sleep(0)
    began = time.monotonic()
    assert await slow_misfit(SLOW, {"a": "aaa"}, asker="alice", wait=30) is None
    assert time.monotonic() - began < 2.0
    assert not any(task.done() for task in greedy)
    # Those who wait no more leave their places.
    for task in greedy[1:]:
        task.cancel()
    reported = await asyncio.gather(*greedy, return_exceptions=True)
    assert isinstance(reported[0], TooMuchWorkError)
    assert schema_checks._processes.free == child_processes.PROCESSES
