"""Errors of long tools, and results at the size limit."""

import json

import pytest
from pytest_django.fixtures import Settings

import uamp
from chat_app.contents import storage
from sessions_app.tools.tasks import run_tool_call
from telemetry.log_fields import AddFields
from tests.sessions_app.tools.tool_workers import ended, queued_call
from uamp_project.monitoring.log_forms import JsonFormatter

pytestmark = pytest.mark.usefixtures("database_threads")

LIMIT = uamp.DEFAULT_LIMITS.tool_result_bytes


@pytest.mark.parametrize(
    "arguments", ["[1]", '{"a":', "null", '"text"', "NaN", '{"a":' * 5000 + "1" + "}" * 5000]
)
def test_bad_arguments_are_answered_and_no_tool_is_run(arguments: str) -> None:
    call = queued_call("break", arguments)
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result.startswith("The arguments must be one JSON object: ")


def test_arguments_that_do_not_fit_are_answered_and_the_tool_is_not_begun() -> None:
    call = queued_call("csv_report", {"content_id": 7})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error, row.progress) == ("failed", True, None)
    assert row.result == "csv_report was not run. Expected `str`, got `int` - at `$.content_id`."


def test_an_unknown_tool_is_answered() -> None:
    call = queued_call("teleport")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "This server has no tool named 'teleport'."


def test_a_tool_that_refuses_is_quoted() -> None:
    call = queued_call("refuse")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "There is no column 'price'. Name one of: cost, date."


def test_a_tool_that_breaks_is_logged_and_reveals_no_internals(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = queued_call("break")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "The tool failed. Its error is in the server's log."
    assert "hunter2" in caplog.text


def test_the_line_of_a_tool_that_breaks_has_the_ids_of_its_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = queued_call("break")
    ids = AddFields()
    caplog.handler.addFilter(ids)
    try:
        run_tool_call(pk=call.pk)
    finally:
        caplog.handler.removeFilter(ids)
    (line,) = [record for record in caplog.records if "hunter2" in record.getMessage()]
    log_entry = json.loads(JsonFormatter().format(line))
    assert (log_entry["response_id"], log_entry["tool_call_id"]) == (call.response_id, call.call_id)


def test_a_result_at_the_limit_stays_in_the_row() -> None:
    call = queued_call("repeat", {"text": "x", "times": LIMIT})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.result, row.content_items) == ("x" * LIMIT, [])


def test_a_result_past_the_limit_becomes_a_file_of_the_chat() -> None:
    call = queued_call("repeat", {"text": "x", "times": LIMIT + 1})
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("done", False)
    assert row.result.startswith(f"The result has {LIMIT + 1} bytes, too many to show here.")
    assert len(row.result) < 2500
    [item] = row.content_items
    assert (item["type"], item["filename"]) == ("file", "repeat-result.txt")
    data, mime_type = storage.read_in_chat(item["content_id"], call.response.chat_id)
    assert (data, mime_type) == (b"x" * (LIMIT + 1), "text/plain")


def test_a_result_that_no_file_may_hold_is_answered(settings: Settings) -> None:
    settings.UAMP_UPLOAD_BYTES = LIMIT + 10
    for times, status in ((LIMIT + 10, "done"), (LIMIT + 11, "failed")):
        call = queued_call("repeat", {"text": "x", "times": times})
        run_tool_call(pk=call.pk)
        row = ended(call)
        assert (row.status, row.is_error) == (status, status == "failed")
        assert len(row.result) < 2500
    assert row.result == f"The file is larger than {LIMIT + 10} bytes."
    assert row.content_items == []


def test_a_result_that_json_cannot_represent_fails_the_call(
    caplog: pytest.LogCaptureFixture,
) -> None:
    call = queued_call("odd")
    run_tool_call(pk=call.pk)
    row = ended(call)
    assert (row.status, row.is_error) == ("failed", True)
    assert row.result == "The tool failed. Its error is in the server's log."
    assert "Encoding objects of type object is unsupported" in caplog.text


def test_a_result_with_characters_that_no_database_takes_is_kept() -> None:
    call = queued_call("repeat", '{"text": "a\\u0000b", "times": 1}')
    run_tool_call(pk=call.pk)
    assert ended(call).result == "a\N{REPLACEMENT CHARACTER}b"


@pytest.mark.parametrize(
    ("tool", "arguments", "cause"),
    [
        ("break", None, "raised RuntimeError"),
        ("refuse", None, "reported an error"),
        ("teleport", None, "no such tool"),
        ("break", "[1]", "invalid arguments"),
        ("csv_report", {"content_id": 7}, "invalid arguments"),
        ("leave", {"how": "kill"}, "its process ended"),
        ("leave", {"how": "SystemExit"}, "raised SystemExit"),
    ],
)
def test_the_kind_of_a_failure_is_stored_without_words(
    tool: str, arguments: object, cause: str
) -> None:
    call = queued_call(tool, arguments)
    run_tool_call(pk=call.pk)
    assert ended(call).cause == cause


def test_a_success_has_no_cause() -> None:
    call = queued_call("repeat", {"text": "x", "times": 1})
    run_tool_call(pk=call.pk)
    assert (ended(call).status, ended(call).cause) == ("done", "")
