"""The official clients of A2A, of both versions and over both bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from signing_app import owner_keys
from signing_app.keys import ALGORITHMS

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.interop.conftest import Run
    from tests.interop.deployments import Deployment

# The first test may have to install its client.
pytestmark = pytest.mark.timeout(900)

BINDINGS = ["JSONRPC", "HTTP+JSON"]


@pytest.fixture(autouse=True)
def _receivers(settings: Settings, celery_worker_thread: None) -> None:
    """Let push notifications reach the clients' receivers on this machine."""
    settings.UAMP_FETCH_ALLOW_HOSTS = ["127.0.0.1:*"]


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_client_of_1_0(run_client: Run, deployment: Deployment, binding: str) -> None:
    seen = run_client("a2a", "a2a_client.py", binding, deployment.account.token)

    assert seen["talk"] == {
        "text": "Hello there",
        "end": "TASK_STATE_COMPLETED",
        "got": "TASK_STATE_COMPLETED",
        "context": "ctx",
        "listed": [2, True],
        "extended": "echo",
        "missing": "TaskNotFoundError",
    }
    assert seen["leave"] == {
        "begun": "TASK_STATE_WORKING",
        "kinds": ["task", "artifact_update", "artifact_update"],
        "cancelled": "TASK_STATE_CANCELED",
        "twice": "TaskNotCancelableError",
    }
    assert seen["pay"] == {
        "demanded": "TASK_STATE_INPUT_REQUIRED",
        "status": "payment-required",
        "done": "TASK_STATE_COMPLETED",
        "text": "Hello there",
        "receipts": 1,
    }
    assert seen["wait"] == {
        "states": ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_COMPLETED"],
        "listed": [True],
        "end": "TASK_STATE_COMPLETED",
    }


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_client_of_0_3(run_client: Run, binding: str) -> None:
    seen = run_client("a2a-03", "a2a_03_client.py", binding)

    assert seen == {
        "text": "Hello there",
        "states": ["completed"] * 3,
        "context": "ctx",
        "seen": 3,
        "cancelled": "canceled",
        "receiver": "mine",
        "notified": "canceled",
    }


@pytest.mark.parametrize("binding", BINDINGS)
def test_the_client_in_javascript(run_client: Run, binding: str) -> None:
    seen = run_client("node", "a2a_clients.mjs", binding)

    assert seen == {
        "stream": "Hello there",
        "end": "TASK_STATE_COMPLETED",
        "whole": ["TASK_STATE_COMPLETED", "Again", "ctx"],
        "got": "TASK_STATE_COMPLETED",
        "missing": "TaskNotFoundError",
        "notified": ["Again", "its-token"],
        "set": "mine",
        "listed": [True],
        "kinds": ["task", "artifactUpdate", "artifactUpdate"],
        "cancelled": "TASK_STATE_CANCELED",
        "left": 0,
        "tool": [
            "TASK_STATE_INPUT_REQUIRED",
            "TASK_STATE_COMPLETED",
            "The tool answered: three cats",
        ],
    }


def test_the_sdk_verifies_signed_cards(run_client: Run, settings: Settings) -> None:
    for algorithm in ALGORITHMS:
        settings.UAMP_SIGNATURE_ALGORITHM = algorithm
        owner_keys.signing_key(owner_keys.CARDS)
        owner_keys.rotate(owner_keys.CARDS)
        assert run_client("a2a", "a2a_card_client.py") == {
            "echo": "valid",
            "echo 1.0": "valid",
            "paid-echo": "valid",
            "paid-echo 1.0": "valid",
            "described anew": "InvalidSignaturesError",
            "elsewhere": "InvalidSignaturesError",
            "unsigned": "NoSignatureError",
        }
