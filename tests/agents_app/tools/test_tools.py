"""The table of server tools, and tools that are made of functions."""

from typing import Annotated, Any, Literal

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from agents_app.tools.chat_search import search_chat
from agents_app.tools.csv_report import csv_report
from agents_app.tools.edit_picture import edit_picture
from agents_app.tools.fetch_page import fetch_page
from agents_app.tools.registry import ServerTool, ToolContext, ToolOutcome, server_tools, tool
from tests.agents_app.run_context import Context

# --- Tools made of functions ---


class Place(msgspec.Struct):
    """Somewhere."""

    lat: float
    lon: float = 0.0


@tool
def weather(
    context: ToolContext,
    city: Annotated[str, msgspec.Meta(description="Name of the city", max_length=20)],
    days: Annotated[int, msgspec.Meta(ge=1, le=7)] = 1,
    unit: Literal["C", "F"] = "C",
    near: Place | None = None,
) -> str:
    """Tell the weather.

    This line is for people.
    """
    context.progress(percent=100)
    return f"{city}, {days}, {unit}, {near}"


def test_the_schema_comes_from_the_annotations() -> None:
    assert (weather.name, weather.description) == ("weather", "Tell the weather.")
    assert (weather.long_running, weather.idempotent) == (True, True)
    assert weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city", "maxLength": 20},
            "days": {"type": "integer", "minimum": 1, "maximum": 7, "default": 1},
            "unit": {"enum": ["C", "F"], "default": "C"},
            "near": {"anyOf": [{"$ref": "#/$defs/Place"}, {"type": "null"}], "default": None},
        },
        "required": ["city"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "description": "Somewhere.",
                "type": "object",
                "properties": {
                    "lat": {"type": "number"},
                    "lon": {"type": "number", "default": 0.0},
                },
                "required": ["lat"],
            }
        },
    }


def test_the_function_gets_the_context_and_typed_arguments() -> None:
    context = Context()
    outcome = weather.run(context, {"city": "Bern", "near": {"lat": 46.9}})
    assert outcome == ToolOutcome(result="Bern, 1, C, Place(lat=46.9, lon=0.0)")
    assert [reported["percent"] for reported in context.reported] == [100]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({}, "Object missing required field `city`"),
        ({"city": 3}, "Expected `str`, got `int` - at `$.city`"),
        ({"city": None}, "Expected `str`, got `null` - at `$.city`"),
        ({"city": "x" * 21}, "Expected `str` of length <= 20 - at `$.city`"),
        ({"city": "Bern", "days": "2"}, "Expected `int`, got `str` - at `$.days`"),
        ({"city": "Bern", "days": 8}, "Expected `int` <= 7 - at `$.days`"),
        ({"city": "Bern", "unit": "K"}, "Invalid enum value 'K' - at `$.unit`"),
        ({"city": "Bern", "near": {"lat": "x"}}, "got `str` - at `$.near.lat`"),
        ({"city": "Bern", "town": 1}, "Object contains unknown field `town`"),
    ],
)
def test_arguments_that_do_not_fit_are_an_error_and_nothing_is_run(
    arguments: dict[str, Any], problem: str
) -> None:
    context = Context()
    outcome = weather.run(context, arguments)
    assert outcome.is_error
    assert outcome.result.startswith("weather was not run. ")
    assert outcome.result.endswith(f"{problem}.")
    assert context.reported == []


def test_a_tool_may_do_without_context_and_arguments() -> None:
    @tool(name="now", long_running=False)
    def tell_time() -> dict[str, list[int]]:
        """Tell the time."""
        return {"time": [12, 30]}

    assert (tell_time.name, tell_time.long_running, tell_time.idempotent) == ("now", False, True)
    assert tell_time.parameters == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }
    assert tell_time.run(Context(), {}) == ToolOutcome(result='{"time":[12,30]}')


def test_a_tool_that_must_not_run_twice_is_a_long_one() -> None:
    def send() -> str:
        """Send."""
        return "sent"

    assert not tool(idempotent=False)(send).idempotent
    with pytest.raises(TypeError, match="send must not run twice"):
        tool(long_running=False, idempotent=False)(send)


def test_a_result_that_json_cannot_represent_raises() -> None:
    @tool
    def odd() -> object:
        """Return something odd."""
        return object()

    with pytest.raises(TypeError, match="unsupported"):
        odd.run(Context(), {})


def _silent(city: str) -> str:
    return city


def _untyped(city) -> str:  # type: ignore[no-untyped-def]  # noqa: ANN001 this is the mistake
    """Tell."""
    return str(city)


def _greedy(*cities: str) -> str:
    """Tell."""
    return "".join(cities)


def _unreadable(city: complex) -> str:
    """Tell."""
    return str(city)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_silent, "_silent needs a docstring"),
        (_untyped, "_untyped has to annotate its parameter city"),
        (_greedy, r"_greedy can take arguments by name only: \*cities"),
        (_unreadable, "complex"),
    ],
)
def test_a_function_without_a_schema_cannot_be_a_tool(function: Any, problem: str) -> None:
    with pytest.raises(TypeError, match=problem):
        tool(function)


# --- The table ---


def test_the_settings_name_the_tools() -> None:
    assert dict(server_tools()) == {
        "csv_report": csv_report,
        "fetch_page": fetch_page,
        "search_chat": search_chat,
        "edit_picture": edit_picture,
    }


def test_an_empty_list_of_tools_means_none(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = []
    assert dict(server_tools()) == {}


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["agents_app.tools.csv_report.ABSENT"], "ABSENT"),
        (["absent_module.TOOL"], "absent_module"),
        (["agents_app.tools.csv_report.summary"], "is not a ServerTool"),
        (["agents_app.tools.csv_report.csv_report"] * 2, "two tools are named csv_report"),
    ],
)
def test_a_wrong_path_is_a_wrong_setting(
    settings: Settings, paths: list[str], message: str
) -> None:
    settings.UAMP_SERVER_TOOLS = paths
    with pytest.raises(ImproperlyConfigured, match=message):
        server_tools()


def test_the_tools_that_ship_are_made_of_functions() -> None:
    """No library checks the arguments of a schema that was written by hand."""
    for shipped_tool in server_tools().values():
        assert isinstance(shipped_tool, ServerTool)
        outcome = shipped_tool.run(Context(), {"no such argument": 1})
        assert outcome.is_error
        assert "no such argument" in outcome.result or "required field" in outcome.result
