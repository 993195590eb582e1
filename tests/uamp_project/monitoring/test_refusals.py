"""Log lines of refused requests: one line, no error."""

from __future__ import annotations

import logging
from copy import deepcopy
from io import StringIO
from logging.config import DictConfigurator
from typing import TYPE_CHECKING, Any

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse

from tests import factories

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def log_stream() -> Iterator[StringIO]:
    """Capture the output of the settings' log handler."""
    stream = StringIO()
    configured: Any = DictConfigurator({**deepcopy(settings.LOGGING), "loggers": {}})
    for kind in ("formatter", "filter"):
        parts = configured.config[f"{kind}s"]
        for name in parts:
            parts[name] = getattr(configured, f"configure_{kind}")(parts[name])
    handler = configured.configure_handler(configured.config["handlers"]["console"])
    handler.setStream(stream)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("address", "host", "status", "line_part"),
    [
        (
            "admin:payments_app_account_changelist",
            "testserver",
            403,
            "Forbidden: /admin/payments_app/account/",
        ),
        ("admin:index", "evil.example", 400, "evil.example"),
    ],
)
def test_a_request_that_is_refused_writes_one_line(
    log_stream: StringIO, address: str, host: str, status: int, line_part: str
) -> None:
    client = Client(raise_request_exception=False)
    client.force_login(factories.user(is_staff=True))
    log_stream.truncate(0)
    log_stream.seek(0)

    assert client.get(reverse(address), headers={"Host": host}).status_code == status

    (line,) = [line for line in log_stream.getvalue().splitlines() if line.strip()]
    assert " WARNING " in line
    assert line_part in line


def test_a_fault_keeps_its_traceback(log_stream: StringIO) -> None:
    fault = RuntimeError("broken")
    logging.getLogger("django.request").error("It failed.", exc_info=fault)

    assert " ERROR " in log_stream.getvalue()
    assert "RuntimeError: broken" in log_stream.getvalue()
