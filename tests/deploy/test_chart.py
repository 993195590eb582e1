"""The Helm chart: its values, and what its templates say about the server.

Helm itself renders it in test_validators.py, where it is installed.
"""

from __future__ import annotations

import json
import re
import tomllib
from typing import Any, Final

import jsonschema
import pytest
import yaml

from sessions_app.models import ToolCallKind
from sessions_app.open_work import OpenWork
from sessions_app.states import ToolCallState
from tests.deploy.expected import (
    PORT,
    QUEUES,
    ROOT,
    SETTINGS,
    STOP_SECONDS_MAX,
    UPLOAD_BYTES,
    check_command,
)
from uamp_project.management.commands.web import CONNECTIONS
from uamp_project.monitoring.metrics_endpoint import _of_work

pytestmark = pytest.mark.any_database

CHART: Final = ROOT / "deploy" / "helm" / "uamp-server"
VALUES: Final[dict[str, Any]] = yaml.safe_load((CHART / "values.yaml").read_text(encoding="utf-8"))
SCHEMA: Final = json.loads((CHART / "values.schema.json").read_text(encoding="utf-8"))
TEMPLATES: Final = {
    path.name: path.read_text(encoding="utf-8") for path in (CHART / "templates").iterdir()
}
SET_BY_THE_CHART: Final = {
    *re.findall(r"- \{name: ([A-Z_]+),", TEMPLATES["_helpers.tpl"]),
    *("SECRET_KEY", "DATABASE_URL", "REDIS_URL"),
}


def accepts(**changes: Any) -> bool:
    """Return whether the schema accepts the chart's values with these changes."""
    return bool(jsonschema.Draft7Validator(SCHEMA).is_valid({**VALUES, **changes}))


def test_the_chart_is_of_this_version_of_the_server() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

    assert (chart["name"], chart["appVersion"]) == (project["name"], project["version"])


def test_the_schema_accepts_the_values_and_knows_each() -> None:
    jsonschema.Draft7Validator.check_schema(SCHEMA)
    assert accepts()
    assert SCHEMA["properties"].keys() - VALUES.keys() == {"global"}


@pytest.mark.parametrize(
    "changes",
    [
        {"hots": "chat.example.org"},
        {"host": "https://chat.example.org"},
        {"existingSecret": ""},
        {"settings": {"PORT": "9000"}},
        {"settings": {"LOG_LEVEL": 1}},
        {"terminationGracePeriodSeconds": STOP_SECONDS_MAX},
        {"workers": {"chores": {"replicas": 1, "threads": 1}}},
        {"workers": {"tools": {"replicas": 1, "threads": 1, "autoscaling": {"enabled": True}}}},
        {"persistence": {"size": "many"}},
    ],
    ids=str,
)
def test_the_schema_refuses_what_would_not_run(changes: dict[str, Any]) -> None:
    assert not accepts(**changes)


def test_the_pods_get_settings_that_operators_cannot_set_twice() -> None:
    refused = SCHEMA["properties"]["settings"]["propertyNames"]["not"]["enum"]

    assert SETTINGS.keys() >= SET_BY_THE_CHART
    assert set(refused) == SET_BY_THE_CHART
    assert '"SECRET_KEY" "DATABASE_URL" "REDIS_URL"' in TEMPLATES["_helpers.tpl"]


def test_the_pods_run_commands_and_there_are_workers_for_every_queue() -> None:
    assert VALUES["workers"].keys() == QUEUES
    assert SCHEMA["properties"]["workers"]["properties"].keys() == QUEUES
    for name, command in (("web", "web"), ("workers", "worker"), ("migrate", "migrate")):
        (arguments,) = re.findall(r"args: \[(.+)\]", TEMPLATES[f"{name}.yaml"])
        assert arguments.split(",")[0] == command
        check_command([command])
    assert VALUES["web"]["connections"] == CONNECTIONS


def test_a_pod_has_time_to_stop() -> None:
    (pause,) = re.findall(r"command: \[sleep, \"(\d+)\"\]", TEMPLATES["web.yaml"])

    assert VALUES["terminationGracePeriodSeconds"] > STOP_SECONDS_MAX + int(pause)
    for name in ("web.yaml", "workers.yaml"):
        assert ".Values.terminationGracePeriodSeconds" in TEMPLATES[name]


def test_a_pod_has_memory_for_its_connections() -> None:
    scaling = (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    web, worker = re.findall(
        r"a web process (\d+) MB, and a worker of one queue (\d+) MB", scaling
    )[0]
    limit = mebibytes(VALUES["web"]["resources"]["limits"]["memory"])

    assert "plan for a quarter of a megabyte per user" in scaling
    assert int(web) + 0.25 * VALUES["web"]["connections"] < limit
    for queue in VALUES["workers"].values():
        assert mebibytes(queue["resources"]["requests"]["memory"]) > int(worker)


def mebibytes(text: str) -> int:
    return int(text[:-2]) * {"Mi": 1, "Gi": 1024}[text[-2:]]


def test_one_web_pod_at_a_time_may_be_drained() -> None:
    budget = documents("availability.yaml", "PodDisruptionBudget")[0]

    assert 'include "uamp.selector" (list . "web")' in budget
    assert "maxUnavailable: {{ .Values.podDisruptionBudget.maxUnavailable }}" in budget
    assert VALUES["podDisruptionBudget"]["maxUnavailable"] == 1


def documents(template: str, kind: str) -> list[str]:
    """Return the objects of a kind in a template, as text."""
    objects = re.split(r"^---$", TEMPLATES[template], flags=re.MULTILINE)
    return [text for text in objects if f"\nkind: {kind}\n" in text]


def test_what_is_scaled_has_no_replicas_of_its_own() -> None:
    web, workers = documents("availability.yaml", "HorizontalPodAutoscaler")

    assert 'name: {{ include "uamp.name" . }}-web' in web
    assert "{{- if not .Values.autoscaling.enabled }}\n  replicas:" in TEMPLATES["web.yaml"]
    assert 'name: {{ include "uamp.name" $ }}-{{ $queue }}' in workers
    assert "toYaml $worker.autoscaling.metrics" in workers
    condition = '{{- if not (include "uamp.scales" $worker) }}\n  replicas:'
    assert condition in TEMPLATES["workers.yaml"]
    for scaling in (VALUES["autoscaling"], *scaled_queues().values()):
        assert scaling["enabled"] is False
        assert scaling["minReplicas"] <= scaling["maxReplicas"]


def scaled_queues() -> dict[str, dict[str, Any]]:
    """Return the autoscaling of each queue that has one."""
    return {
        name: queue["autoscaling"]
        for name, queue in VALUES["workers"].items()
        if "autoscaling" in queue
    }


def test_a_queue_is_scaled_by_its_unfinished_work() -> None:
    no_work = OpenWork(
        responses={}, tool_calls={}, queued_turns={}, webhook_deliveries=0, payment_requests=0,
        oldest={},
    )  # fmt: skip
    work, _ = _of_work(no_work)
    labels = [sample.labels for sample in work.samples]
    kinds = {"tools": f"tool_{ToolCallKind.LONG}", "webhooks": "webhook_delivery"}
    states = {ToolCallState.QUEUED, ToolCallState.RUNNING}

    assert scaled_queues().keys() == kinds.keys()
    for name, scaling in scaled_queues().items():
        (metric,) = scaling["metrics"]
        selector = metric["external"]["metric"]["selector"]
        assert metric["external"]["metric"]["name"] == work.name
        assert selector["matchLabels"] == {"kind": kinds[name]}
        for expression in selector.get("matchExpressions", []):
            assert (expression["key"], set(expression["values"])) == ("state", states)
        # Without work the metric is 0, not absent: otherwise pods would never be removed.
        assert [row for row in labels if row["kind"] == kinds[name]], labels
        average = int(metric["external"]["target"]["averageValue"])
        assert average == VALUES["workers"][name]["threads"]


def test_ports_and_probes_are_those_of_the_server() -> None:
    web = TEMPLATES["web.yaml"]

    assert f"{{name: http, containerPort: {PORT}}}" in web
    assert f'{{name: PORT, value: "{PORT}"}}' in TEMPLATES["_helpers.tpl"]
    assert re.findall(r"(\w+)Probe:\n\s+httpGet: \{path: (\S+), port: http\}", web) == [
        ("startup", "/healthz"),
        ("liveness", "/healthz"),
        ("readiness", "/readyz"),
    ]


def test_the_ingress_is_not_sticky_and_accepts_uploads() -> None:
    annotations = VALUES["ingress"]["annotations"]
    size = annotations["nginx.ingress.kubernetes.io/proxy-body-size"]

    assert int(size.removesuffix("m")) * 2**20 > UPLOAD_BYTES + 2**20
    assert not {name for name in annotations if "affinity" in name or "session" in name}
    assert "sessionAffinity: None" in TEMPLATES["network.yaml"]


@pytest.mark.parametrize(
    "line",
    [
        "runAsNonRoot: true",
        "seccompProfile: {type: RuntimeDefault}",
        "allowPrivilegeEscalation: false",
        "readOnlyRootFilesystem: true",
        "capabilities: {drop: [ALL]}",
        "automountServiceAccountToken: false",
        "enableServiceLinks: false",
    ],
)
def test_every_pod_is_restricted(line: str) -> None:
    assert line in TEMPLATES["_helpers.tpl"]
    for name in ("web.yaml", "workers.yaml", "migrate.yaml"):
        assert TEMPLATES[name].count('include "uamp.pod"') == 1
        assert TEMPLATES[name].count('include "uamp.container"') == 1
