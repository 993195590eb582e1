"""The dashboard and the page on operations name the metrics that there are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from telemetry import metrics
from tests.uamp_project.serving import ROOT
from uamp_project.monitoring.metrics import show_metrics

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIXES = ("_bucket", "_total")


@pytest.fixture
def known(db: None) -> set[str]:
    """Give the names of all metrics, of which those of rows are there where rows are."""
    assert show_metrics is not None
    return {family.name for family in metrics.REGISTRY.collect()}


def named(texts: Iterable[str]) -> set[str]:
    """Return the metrics of this server that texts name."""
    found = {name for text in texts for name in re.findall(r"\buamp_[a-z_]+[a-z]\b", text)}
    return {re.sub(r"_(bucket|total)$", "", name) for name in found}


def test_each_panel_asks_for_metrics_that_there_are(known: set[str]) -> None:
    dashboard = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text())
    asked = named(target["expr"] for panel in dashboard["panels"] for target in panel["targets"])

    assert len(asked) > 10
    assert asked - known == set()


def test_the_page_has_each_metric(known: set[str]) -> None:
    page = (ROOT / "docs/operations.md").read_text()
    table = page.partition("## Metrics")[2].partition("## Traces")[0]
    of_server = {name for name in known if name.startswith("uamp_")}

    assert named([table]) - {"uamp_ledger_"} == of_server
