"""Names of tools of MCP servers, and the tools that an agent has."""

import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_app import selectors
from agents_app.mcp.listing import NAME_CHARS, tool_names, tools_of
from agents_app.models import Agent, ToolSource
from agents_app.runtime.offered_tools import tools_of_agent
from tests.programs import PROGRAM_SECONDS


def listed(name: str, **hints: bool) -> dict[str, Any]:
    return {
        "name": name,
        "description": f"Does {name}.",
        "inputSchema": {"type": "object"},
        "annotations": hints,
    }


def source(*tools: dict[str, Any], **fields: Any) -> ToolSource:
    return ToolSource(name="demo", tools=list(tools), **fields)


def test_a_tool_is_named_after_its_source() -> None:
    assert tool_names("demo", ["add", "no.good name!"]) == {
        "add": "demo__add",
        "no.good name!": "demo__no_good_name_",
    }


def test_a_name_that_is_too_long_is_cut_and_ends_in_a_hash() -> None:
    names = list(tool_names("demo", ["x" * 58, "x" * 59, "x" * 60]).values())
    assert names[0] == "demo__" + "x" * 58
    assert all(len(name) == NAME_CHARS for name in names)
    assert len(set(names)) == 3


def test_names_that_would_be_the_same_are_distinguished_whatever_their_order() -> None:
    names = tool_names("demo", ["a.b", "a_b", "a b"])
    assert names["a_b"] == "demo__a_b"
    assert len(set(names.values())) == 3
    assert tool_names("demo", ["a b", "a_b", "a.b"]) == names


@given(st.sets(st.text(max_size=80), max_size=8))
def test_every_name_is_one_that_models_can_say(own_names: set[str]) -> None:
    for name in tool_names("demo", own_names).values():
        assert 0 < len(name) <= NAME_CHARS
        assert name.isascii()
        assert name.replace("_", "").replace("-", "").isalnum()


@pytest.mark.parametrize(
    ("approval", "expected"),
    [
        ("never", []),
        ("writes", ["demo__write", "demo__again"]),
        ("always", ["demo__read", "demo__write", "demo__again"]),
    ],
)
def test_a_person_is_asked_as_the_source_says(approval: str, expected: list[str]) -> None:
    tools = tools_of(
        source(
            listed("read", readOnlyHint=True),
            listed("write"),
            listed("again", idempotentHint=True),
            approval=approval,
        )
    )
    assert [tool.name for tool in tools if tool.needs_approval] == expected
    assert [tool.name for tool in tools if tool.idempotent] == ["demo__read", "demo__again"]


@pytest.mark.django_db
def test_an_agent_has_the_tools_that_its_row_names() -> None:
    source(listed("add"), listed("sub")).save()
    ToolSource(name="off", tools=[listed("add")], is_enabled=False).save()
    agent = Agent.objects.create(
        name="a", tools=["csv_report", "demo__sub", "off__add", "off__*", "demo__absent"]
    )
    spec = selectors.get_spec(agent.pk)
    assert spec.tools == ("csv_report", "demo__sub", "off__add", "demo__absent")
    assert list(tools_of_agent(spec)) == ["csv_report", "demo__sub"]


@pytest.mark.django_db
def test_a_star_means_all_tools_of_a_source_including_later_ones() -> None:
    demo = source(listed("add"))
    demo.save()
    agent = Agent.objects.create(name="a", tools=["demo__*", "demo__add", "csv_report"])
    assert selectors.get_spec(agent.pk).tools == ("demo__add", "csv_report")
    demo.tools = [listed("add"), listed("sub")]
    demo.save(update_fields=["tools"])
    spec = selectors.get_spec(agent.pk)
    assert spec.tools == ("demo__add", "demo__sub", "csv_report")
    tools = tools_of_agent(spec)
    assert tools["demo__add"].long_running
    assert tools["demo__add"].needs_approval
    demo.delete()
    assert selectors.get_spec(agent.pk).tools == ("demo__add", "csv_report")
    assert list(tools_of_agent(selectors.get_spec(agent.pk))) == ["csv_report"]


def test_a_server_without_sources_never_loads_the_mcp_package() -> None:
    program = (
        "import django, sys; django.setup();"
        "from agents_app import admin, runtime;"
        "import sessions_app.tools.tasks;"
        "sys.exit('mcp' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=PROGRAM_SECONDS)  # noqa: S603 our own interpreter
