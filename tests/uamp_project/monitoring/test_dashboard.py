"""The dashboard and the page on operations name the metrics that there are."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
import yaml

from telemetry import metrics
from tests.uamp_project.serving import ROOT
from uamp_project.monitoring import metrics_endpoint

if TYPE_CHECKING:
    from collections.abc import Iterable

SUFFIXES = ("_bucket", "_total")


@pytest.fixture
def metric_names(db: None, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Give the names of all metrics, of which those of rows are there once rows were read."""
    monkeypatch.setattr(metrics_endpoint._rows, "_rows", metrics_endpoint._read())
    return {family.name for family in metrics.REGISTRY.collect()}


def metrics_named_in(texts: Iterable[str]) -> set[str]:
    """Return the metrics of this server that texts name."""
    names = {name for text in texts for name in re.findall(r"\buamp_[a-z_]+[a-z]\b", text)}
    return {re.sub(r"_(bucket|total)$", "", name) for name in names}


def test_each_panel_asks_for_metrics_that_there_are(metric_names: set[str]) -> None:
    dashboard = json.loads((ROOT / "deploy/grafana/dashboard.json").read_text())
    panel_metrics = metrics_named_in(
        target["expr"] for panel in dashboard["panels"] for target in panel["targets"]
    )

    assert len(panel_metrics) > 10
    assert panel_metrics - metric_names == set()


def test_an_alert_and_a_panel_show_unsigned_answers(metric_names: set[str]) -> None:
    (group,) = yaml.safe_load((ROOT / "deploy/prometheus/alerts.yaml").read_text())["groups"]
    expressions = {rule["alert"]: rule["expr"] for rule in group["rules"]}
    dashboard = (ROOT / "deploy/grafana/dashboard.json").read_text()

    assert metrics_named_in(expressions.values()) - metric_names == set()
    assert "increase(uamp_unsigned_answers_total[" in expressions["UampAnswersUnsigned"]
    assert "rate(uamp_unsigned_answers_total[" in dashboard
    for rule in group["rules"]:
        assert {"summary", "description"} == set(rule["annotations"])


def test_the_page_has_each_metric(metric_names: set[str]) -> None:
    page = (ROOT / "docs/operations.md").read_text()
    table = page.partition("## Metrics")[2].partition("## Traces")[0]
    of_server = {name for name in metric_names if name.startswith("uamp_")}

    assert metrics_named_in([table]) - {"uamp_ledger_"} == of_server
