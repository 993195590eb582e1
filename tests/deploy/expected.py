"""The facts of the server that every deployment has to agree with."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from django.conf import settings
from django.core.management import get_commands

from uamp_project.command import ALIASES
from uamp_project.embedded.worker import KILL_SECONDS, STOP_SECONDS

ROOT: Final = Path(__file__).resolve().parents[2]
# `| NAME | default | meaning |`: test_settings_page.py compares these rows with the code.
SETTINGS: Final = dict(
    re.findall(
        r"^\| `([A-Z][A-Z0-9_]+)` \| `?(.*?)`? \|",
        (ROOT / "docs" / "settings.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
)
PORT: Final = int(SETTINGS["PORT"])
UPLOAD_BYTES: Final = int(SETTINGS["UAMP_UPLOAD_BYTES"])
QUEUES: Final = {queue.name for queue in settings.CELERY_TASK_QUEUES}
# The longest that `up` takes after SIGTERM: answers finish, then the workers end.
STOP_SECONDS_MAX: Final = int(
    float(SETTINGS["UAMP_GRACE_SECONDS"]) + max(10, 2 * STOP_SECONDS + KILL_SECONDS)
)
IDLE_SECONDS: Final = 5
"""After so long uvicorn closes an idle connection: a proxy has to close it earlier."""


def check_command(arguments: list[str]) -> None:
    """Assert that the server has a command and, for workers, the queues that they name."""
    command, *rest = arguments
    assert command in {*get_commands(), *ALIASES}, command
    if command == "worker":
        queues = rest[: rest.index("--threads")] if "--threads" in rest else rest
        assert set(queues) <= QUEUES, arguments
