"""The table of server tools."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

from agents_app.csv_report import CSV_REPORT
from agents_app.tools import server_tools


def test_the_settings_name_the_tools() -> None:
    assert dict(server_tools()) == {"csv_report": CSV_REPORT}


def test_no_tools_are_no_tools(settings: Settings) -> None:
    settings.UAMP_SERVER_TOOLS = []
    assert dict(server_tools()) == {}


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["agents_app.csv_report.ABSENT"], "ABSENT"),
        (["absent_module.TOOL"], "absent_module"),
        (["agents_app.csv_report.run"], "is no ServerTool"),
        (["agents_app.csv_report.CSV_REPORT"] * 2, "two tools are named csv_report"),
    ],
)
def test_a_wrong_path_is_a_wrong_setting(
    settings: Settings, paths: list[str], message: str
) -> None:
    settings.UAMP_SERVER_TOOLS = paths
    with pytest.raises(ImproperlyConfigured, match=message):
        server_tools()
