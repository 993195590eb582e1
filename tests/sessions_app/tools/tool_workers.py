"""Queued tool calls, and the workers that run them."""

import json
import os
import signal
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.db import connection
from kombu import Connection

import uamp
from agents_app.models import Agent
from chat_app.models import Chat
from sessions_app.models import Response, Session, ToolCall, ToolCallKind
from sessions_app.tools import calls
from tests.programs import Program
from uamp_project.settings import messaging


def queued_call(tool: str, arguments: object = None, *, user: User | None = None) -> ToolCall:
    """Write a chat, a session, a response and its queued call of a tool."""
    agent = Agent.objects.create(name=f"agent-{uuid.uuid4().hex[:8]}")
    chat = Chat.objects.create(kind="session")
    session = Session.objects.create(
        user=user,
        principal=f"user:{user.pk}" if user else "anonymous:abc",
        agent=agent,
        chat=chat,
        transport="websocket",
        uamp_version="1.0",
    )
    response = Response.objects.create(chat=chat, session=session, agent=agent)
    text = arguments if isinstance(arguments, str) else json.dumps(arguments or {})
    opened = calls.open_call(
        response_id=response.pk,
        fence=1,
        kind=ToolCallKind.LONG,
        call=uamp.ToolCallData(id="call_1", name=tool, arguments=text),
        text="",
        output=(),
    )
    assert opened is not None
    return ToolCall.objects.select_related("response").get(pk=opened.pk)


def wait_for(condition: Callable[[], object], seconds: float = 100) -> None:
    """Wait until something is true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def ended(call: ToolCall) -> ToolCall:
    """Wait for the end of a call and return its row."""
    wait_for(lambda: ToolCall.objects.get(pk=call.pk).finished_at)
    return ToolCall.objects.get(pk=call.pk)


def is_alive(pid: int) -> bool:
    """Return whether there is such a process."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def lines(journal: Path) -> list[str]:
    """Return the lines that a tool wrote down, even before it has begun."""
    return journal.read_text().splitlines() if journal.exists() else []


@contextmanager
def worker_process(
    folder: Path, more: dict[str, str] | None = None
) -> Iterator[tuple[Program, Connection]]:
    """Run `celery worker` as a process of its own, on a broker of files."""
    for name in ("broker", "control"):
        (folder / "run" / name).mkdir(parents=True)
    environment = os.environ | {
        "DJANGO_SETTINGS_MODULE": "tests.sessions_app.tools.worker_settings",
        "DATA_DIR": str(folder),
        "WORKER_DATABASE": str(connection.settings_dict["NAME"]),
        "UAMP_LEASE_SECONDS": "1",
        **(more or {}),
    }
    command = [sys.executable, "-m", "celery", "-A", "uamp_project", "worker"]
    process = Program(
        *(*command, "-c", "2", "--without-heartbeat", "--without-mingle", "--without-gossip"),
        log=folder / "log",
        env=environment,
        cwd=django_settings.BASE_DIR,
    )
    messages = str(folder / "run" / "broker")
    options = {"data_folder_in": messages, "data_folder_out": messages}
    options["control_folder"] = str(folder / "run" / "control")
    try:
        with Connection(
            messaging.CELERY_BROKER_URL,
            transport=messaging.CELERY_BROKER_TRANSPORT,
            transport_options=options,
        ) as broker:
            yield process, broker
    finally:
        process.end(signal.SIGKILL)
