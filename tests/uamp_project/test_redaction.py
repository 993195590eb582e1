"""No credential in a log: of the documented commands, of Celery, of an exception."""

from __future__ import annotations

import json
import logging
import re
import shlex
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from websockets.exceptions import InvalidStatus, WebSocketException
from websockets.sync.client import connect
from websockets.typing import Subprotocol

from tests import services
from tests.journeys.product import Product
from tests.programs import Program
from tests.uamp_project.serving import ROOT, environment
from uamp_project.monitoring.log_forms import JsonFormatter
from uamp_project.redaction import REDACTED, RedactingFormatter, redact

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = "uak_0a1b2c3d_CanaryKeyThatNoLogMayHave0123456789abc"
TICKET = "utk_CanaryTicketThatNoLogMayHave0123456789"
PAYMENT = "ptok_CanaryPaymentThatNoLogMayHave01234"
OPAQUE = "CanaryOfNoShape42"


def documented_command(port: int) -> list[str]:
    """Return the command that serves in production, on another port."""
    page = (ROOT / "docs" / "deployment.md").read_text()
    line = re.search(r"^uamp-server (web .*)$", page, re.MULTILINE)
    assert line is not None
    words = shlex.split(line[1])
    words[words.index("--port") + 1] = str(port)
    return ["manage.py", *words]


@contextmanager
def logged(command: list[str], port: int, data_dir: Path, output: Path) -> Iterator[None]:
    """Run a server whose log goes to a file, until the end of the block."""
    with Program(
        *(sys.executable, *command),
        log=output,
        cwd=ROOT,
        env={**environment(data_dir), "LOG_LEVEL": "DEBUG"},
    ) as program:
        program.wait_until(lambda: _answers(port), "it answers")
        yield


def _answers(port: int) -> bool:
    try:
        httpx.get(f"http://127.0.0.1:{port}/healthz", trust_env=False)
    except httpx.TransportError:
        return False
    return True


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Give a DATA_DIR with a migrated database and a demo."""
    path = tmp_path_factory.mktemp("logs")
    Product(path, 0).prepare()
    return path


def show_credentials(port: int) -> None:
    """Send credentials in every way in which a client may send them."""
    place = f"127.0.0.1:{port}"
    headers = {
        "Authorization": f"Bearer {KEY}",
        "X-API-Key": KEY,
        "X-Payment": PAYMENT,
        "X-Payment-Token": PAYMENT,
        "Cookie": f"sessionid={OPAQUE}",
    }
    body = {"events": [{"type": "session.create", "token": KEY, "payment_token": PAYMENT}]}
    with httpx.Client(base_url=f"http://{place}", timeout=15, trust_env=False) as web:
        for query in (
            f"token={KEY}",
            f"access_token={OPAQUE}",
            f"%74oken={OPAQUE}",
            f"api_key={OPAQUE}&ticket={TICKET}&payment_token={PAYMENT}&signature={OPAQUE}",
        ):
            web.get(f"/capabilities?{query}")
            web.post(f"/uamp?{query}", json=body, headers=headers)
            web.post(f"/events?{query}", content=json.dumps(body), headers=headers)
            web.get(f"/events/stream?session_id=x&{query}", headers=headers)
            web.post(f"/login?{query}", data={"username": "alice", "password": OPAQUE})
            for path in ("/uamp", "/nowhere/at/all"):
                try:
                    with connect(
                        f"ws://{place}{path}?{query}",
                        proxy=None,
                        close_timeout=1,
                        subprotocols=[Subprotocol(f"openai-insecure-api-key.{OPAQUE}")],
                    ) as ws:
                        ws.recv(timeout=5)
                except (InvalidStatus, WebSocketException, TimeoutError):
                    continue


@pytest.mark.sampled(1)
@pytest.mark.parametrize("server", ["documented", "embedded"])
def test_no_server_writes_a_credential_into_its_log(
    server: str, data_dir: Path, tmp_path: Path
) -> None:
    port = services.free_port()
    embedded = ["manage.py", "serve", "--port", str(port), "--no-worker"]
    command = documented_command(port) if server == "documented" else embedded
    output = tmp_path / "log"
    with logged(command, port, data_dir, output):
        show_credentials(port)
    log = output.read_text()
    for canary in (KEY, TICKET, PAYMENT, OPAQUE, KEY[:12]):
        assert canary not in log, [line for line in log.splitlines() if canary in line][:3]
    if server == "documented":
        # It is the access log that was looked at, and it says what was asked for.
        assert f"/capabilities?token={REDACTED}" in log
        assert f"/uamp?token={REDACTED}" in log


def test_a_worker_writes_no_credential_into_its_log() -> None:
    program = (
        "from uamp_project.celery import app; from celery.utils.log import get_task_logger;"
        "app.log.setup(loglevel='INFO');"
        f"get_task_logger('a.task').warning('called with token=%s', '{OPAQUE}');"
        "import logging; log = logging.getLogger('celery.worker');"
        f"log.error('%r', {{'password': '{OPAQUE}'}})"
    )
    done = subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "-c", program],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    output = done.stdout + done.stderr
    assert OPAQUE not in output
    assert output.count(REDACTED) == 2


@pytest.mark.parametrize(
    "text",
    [
        f"Authorization: Bearer {OPAQUE}",
        f"Authorization: Basic {OPAQUE}",
        f"[(b'authorization', b'Bearer {OPAQUE}'), (b'x-api-key', b'{OPAQUE}')]",
        f"{{'x-payment': '{OPAQUE}', 'cookie': 'a=b; sessionid={OPAQUE}'}}",
        f'{{"payment_token": "{OPAQUE}", "password": "it\\"s {OPAQUE}"}}',
        f"GET /x?a=1&signature={OPAQUE}&b=2",
        f"GET /x?%74%6Fken={OPAQUE}",
        f"> Sec-WebSocket-Protocol: realtime, openai-insecure-api-key.{OPAQUE}, other",
        f"'subprotocols': ['realtime', 'openai-insecure-api-key.{OPAQUE}']",
        f"connecting to postgres://uamp:{OPAQUE}@db/uamp",
        f"UAMP_STRIPE_WEBHOOK_SECRET={OPAQUE}",
        f"GET /password/new/1-{OPAQUE} HTTP/1.1",
        f"GET /account/address/confirm/Mg:1xWz48:{OPAQUE}",
        f"-----BEGIN PRIVATE KEY-----\n{OPAQUE}\n-----END PRIVATE KEY-----",
        f"ValueError: {KEY} is not good",
        f"ValueError: {PAYMENT}",
        f"sk-proj-{OPAQUE}{OPAQUE}",
        f"eyJhbGciOiJSUzI1NiJ9.eyJzdWIi{OPAQUE}.{OPAQUE}",
    ],
)
def test_a_credential_is_taken_out_of_a_line(text: str) -> None:
    assert REDACTED in redact(text)
    assert not re.search(rf"{OPAQUE}|{KEY}|{PAYMENT}", redact(text))


@pytest.mark.parametrize(
    "text",
    [
        "the answer had input_tokens: 5, output_tokens=7",
        "token_expired: The token is not known here.",
        "GET /api/v1/chats?limit=50&cursor=abc",
        "payment token ended; 3 tokens of 5 are left",
    ],
)
def test_a_line_without_a_credential_stays_as_it_is(text: str) -> None:
    assert redact(text) == text


def test_a_long_line_is_read_in_linear_time() -> None:
    parts = ["a", "token", "x", "eyJ", "sk", "uak_", "=", "://", '"', "-----BEGIN "]
    pairs = [f"{part}{end}" for part in parts for end in ("", "-", ".")]
    for piece in (*pairs, '"token":\'', "?a=b&", "Basic ", "cookie: "):
        started = time.process_time()
        redact(piece * (50_000 // len(piece)))
        assert time.process_time() - started < 1, piece


FORGED = "2026-11-30 12:00:00,000 WARNING audit alice signed in"


def raised(text: str) -> Any:
    """Return an exception with its traceback, for a log record."""
    try:
        raise ValueError(text)  # noqa: TRY301 the traceback is the point
    except ValueError:
        return sys.exc_info()


@pytest.mark.parametrize("place", ["message", "exception"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x85", "\u2028", "\u2029"])
def test_no_text_in_an_entry_looks_like_another_entry(end: str, place: str) -> None:
    text = f"refused{end}{FORGED}"
    record = logging.LogRecord(
        name="agents_app",
        level=logging.WARNING,
        pathname="",
        lineno=1,
        msg="openai: %s",
        args=(text if place == "message" else "refused",),
        exc_info=raised(text) if place == "exception" else None,
    )
    entry = RedactingFormatter().format(record)
    first, *others = entry.splitlines()
    assert first == "openai: refused"
    assert others[-1] == f"    {FORGED}"
    assert all(line.startswith("    ") for line in others)
    assert "\n".join(entry.splitlines()) == entry


def test_no_text_in_an_entry_controls_a_terminal() -> None:
    record = logging.makeLogRecord({"msg": "\x1b[2J\x9b1A\x07\x7f\ta"})
    assert RedactingFormatter().format(record) == r"\x1b[2J\x9b1A\x07\x7f" + "\ta"


@pytest.mark.parametrize("formatter", [RedactingFormatter(), JsonFormatter()])
def test_a_long_message_is_cut_before_it_is_redacted(formatter: logging.Formatter) -> None:
    raised_here = raised("x" * 5000)
    record = logging.makeLogRecord({"msg": "token=abc " + "a" * 60_000, "exc_info": raised_here})
    entry = formatter.format(record)
    assert "token=[redacted] aaa" in entry
    assert "(56010 more characters)" in entry
    # Of an exception, the end matters.
    assert "x" * 5000 in entry
    assert len(entry) < 12_000
