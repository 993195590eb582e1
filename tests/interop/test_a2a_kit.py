"""A2A's conformance kit, run whole against an agent that answers as the kit demands.

`A2A_KIT_10` and `A2A_KIT_03` name folders with the branches 1.0-dev and 0.3.x of
a2aproject/a2a-tck, each with the kit's packages in `.venv`. Without both the kit does not run.
"""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_app.providers import scripts
from gateway_app.a2a import methods
from tests.interop.a2a_kit import agent as kit
from tests.live_server import person
from uamp_project import asgi

if TYPE_CHECKING:
    from pytest_django.fixtures import Settings

    from tests.conftest import ServerAddress

pytestmark = pytest.mark.timeout(900)


@pytest.fixture
def keys(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Give a list for a key, with which requests without credentials act: the kits have none."""
    application, key_list = asgi.application, list[str]()

    async def with_key(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if key_list and b"authorization" not in dict(scope.get("headers", ())):
            key = (b"authorization", f"Bearer {key_list[0]}".encode())
            scope = {**scope, "headers": [*scope["headers"], key]}
        await application(scope, receive, send)

    monkeypatch.setattr(asgi, "application", with_key)
    return key_list


@pytest.fixture
def kit_server(
    keys: list[str],
    demo: ServerAddress,
    celery_worker_thread: None,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> str:
    """Run a server for the kit and return the address of the kit's agent, the default one."""
    settings.UAMP_SERVER_TOOLS = [*settings.UAMP_SERVER_TOOLS, kit.SHOW_FILE]
    settings.UAMP_DEFAULT_AGENT = kit.NAME
    settings.UAMP_FETCH_ALLOW_HOSTS = ["127.0.0.1:*", "localhost:*"]
    settings.UAMP_RESPONSES_PER_MINUTE = settings.UAMP_SESSIONS_PER_MINUTE = 10_000
    settings.UAMP_ANONYMOUS_RESPONSES_PER_MINUTE = 10_000
    settings.UAMP_ANONYMOUS_SESSIONS_PER_MINUTE = 10_000
    settings.UAMP_WEBHOOKS_PER_MINUTE = settings.UAMP_HTTP_EVENTS_PER_MINUTE = 10_000
    monkeypatch.setitem(scripts.SCRIPTS, kit.NAME, kit.answer)
    sent_message = methods.sent_message
    monkeypatch.setattr(
        methods, "sent_message", lambda call: kit.with_message_id(sent_message(call))
    )
    kit.make_agent()
    return f"{demo.http}/agents/{kit.NAME}"


def run_kit(variable: str, *arguments: str) -> None:
    """Run the kit that a variable names; its last lines are what a failure shows."""
    folder = os.environ[variable]
    python = Path(folder) / ".venv" / "bin" / "python"
    done = subprocess.run(  # noqa: S603 the kit that the person names
        [str(python), "run_tck.py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
        env={**os.environ, "NO_PROXY": "127.0.0.1", "no_proxy": "127.0.0.1"},
    )
    print(done.stdout[-20_000:])  # noqa: T201 the kit's own report
    assert done.returncode == 0, done.stderr[-4000:]


def test_the_a2a_1_0_kit_passes(kit_server: str, keys: list[str], settings: Settings) -> None:
    keys.append(person("kit").key)
    settings.A2A_CARD_PROFILE = "v1"
    run_kit("A2A_KIT_10", "--sut-host", kit_server, "--transport", "jsonrpc,http_json")


# Over REST a capability's test names a context that the task does not have.
@pytest.mark.parametrize(
    ("transport", "category"),
    [("jsonrpc", "mandatory"), ("jsonrpc", "capabilities"), ("rest", "mandatory")],
)
def test_the_kit_of_0_3(kit_server: str, keys: list[str], transport: str, category: str) -> None:
    if category == "capabilities":
        keys.append(person("kit").key)
    url = f"{kit_server}/a2a"
    run_kit("A2A_KIT_03", "--sut-url", url, "--category", category, "--transports", transport)
