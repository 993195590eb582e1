"""Shared fixtures: the database between threads, the real server, a worker, services.

A test that needs a missing service is skipped, and skips are listed at the end; with
REQUIRE_SERVICES=1, a skip fails the run.
"""

import asyncio
import gc
import os
import sys
import threading
import time
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvicorn
from celery.contrib.testing.worker import start_worker
from channels.layers import channel_layers
from django.db import connection
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker

from sessions_app.access import rates
from sessions_app.billing import payers
from signing_app import owner_keys
from tests import databases, fork_server, loaded_once, services, tiers
from tests.distribution import in_shares
from tests.prompt_server import PromptServer
from tests.services import OPTIONAL_PROGRAM
from tests.settings import WORKER
from tests.threads import close_connections_of_loops, join_threads

if TYPE_CHECKING:
    from sessions_app.process.periodic import PeriodicJob

pytest_plugins = ["tests.watchdog", "tests.cpu_times"]

fork_server.use()
loaded_once.use()
close_connections_of_loops()

START_TIMEOUT_SECONDS = 120
# Read before other imports change it.
RECURSION_LIMIT = sys.getrecursionlimit()

# No test asserts a time. In a new checkout, the first text drawn by hypothesis takes seconds,
# because its character tables are built then.
hypothesis_settings.register_profile(
    "no-times", deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
hypothesis_settings.load_profile("no-times")


@dataclass(frozen=True, kw_only=True)
class ServerAddress:
    """The address of the server under test."""

    host: str
    port: int

    @property
    def http(self) -> str:
        """The HTTP origin, as `http://127.0.0.1:12345`."""
        return f"http://{self.host}:{self.port}"

    @property
    def ws(self) -> str:
        """The WebSocket origin, as `ws://127.0.0.1:12345`."""
        return f"ws://{self.host}:{self.port}"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add an option to leave out tests that do not depend on the database."""
    parser.addoption(
        "--database-only",
        action="store_true",
        help="run only the tests that use the database and may find another one different",
    )
    parser.addoption(
        "--short",
        action="store_true",
        help="leave out the long tests, and on PostgreSQL most others (tests/tiers.py)",
    )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out modules that have no test for this run: importing all takes seconds of CPU."""
    if not collection_path.name.startswith("test_") or collection_path.suffix != ".py":
        return None
    has_nothing = tiers.has_nothing_for(
        collection_path,
        config.rootpath,
        connection.vendor,
        only_browser=config.option.markexpr == "browser",
        short=config.getoption("--short"),
    )
    return True if has_nothing else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect tests that do not apply to this database, and order the others."""

    def belongs(item: pytest.Item) -> bool:
        if item.get_closest_marker("postgres") and connection.vendor != "postgresql":
            return False
        if config.getoption("--short") and not tiers.is_short(
            item, config.rootpath, connection.vendor
        ):
            return False
        if not config.getoption("--database-only"):
            return True
        if item.get_closest_marker("any_database"):
            return False
        fixtures = getattr(item, "fixturenames", [])
        return bool(
            item.get_closest_marker("django_db") or {"db", "transactional_db"} & set(fixtures)
        )

    left_out = [item for item in items if not belongs(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if belongs(item)]
    if hasattr(config, "workerinput"):
        items[:] = in_shares(items, config.workerinput["workercount"])


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Disable garbage collection during collection: modules and tests stay until the end."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        # Otherwise, every full collection would visit a million of these objects.
        gc.freeze()


def pytest_collection_finish() -> None:
    """Restore Python's own recursion limit, which the server has too.

    A dependency of `eth_account` raises it a hundredfold, which would turn a RecursionError for
    deeply nested input into a crash.
    """
    sys.setrecursionlimit(RECURSION_LIMIT)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Record failures and skips as they happen, so that a killed run lists them too.

    The process that started the pytest-xdist workers receives the reports of all of them.
    """
    if WORKER:
        return
    if report.failed:
        _append("FAILED_FILE", _failure_line(report))
        _append("FAILED_TESTS_FILE", f"{report.nodeid}\n")
    elif report.skipped and isinstance(report.longrepr, tuple):
        reason = report.longrepr[2]
        if OPTIONAL_PROGRAM not in reason:
            skips.append(report.nodeid)
        _append("SKIPPED_FILE", f"{report.nodeid}: {reason}\n")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Record a module that cannot be imported."""
    if report.failed and not WORKER:
        _append("FAILED_FILE", _failure_line(report))


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Drop the databases of the run, and fail for skips if every service was required."""
    if WORKER:
        return
    databases.drop_databases()
    if skips and os.environ.get("REQUIRE_SERVICES") == "1":
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


# Skipped tests, in the process that receives all reports; without those of optional programs.
skips: list[str] = []
# The most characters of a failure's reason in the list at the end of a run.
WHY_CHARS = 300


def _append(variable: str, line: str) -> None:
    if path := os.environ.get(variable):
        with Path(path).open("a") as file:
            file.write(line)


def _failure_line(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return a failed test and the reason on one line."""
    crash = getattr(report.longrepr, "reprcrash", None)
    why = " ".join((crash.message if crash else str(report.longrepr)).split())
    return f"{report.nodeid} ({getattr(report, 'when', 'collect')}): {why[:WHY_CHARS]}\n"


def pytest_unconfigure() -> None:
    """Stop the fork server of the product's processes."""
    fork_server.server.close()


# --- Database ---


@pytest.fixture(autouse=True)
def _fresh_ledger() -> Iterator[None]:
    """Forget cached ids of the ledger along with its rows."""
    yield
    payers.forget_accounts()


@pytest.fixture(autouse=True)
def _fresh_keys() -> Iterator[None]:
    """Forget cached signing keys along with their rows."""
    yield
    owner_keys.forget()


@pytest.fixture(autouse=True)
def _fresh_limits() -> Iterator[None]:
    """Reset the rate limits before and after a test."""
    rates.forget()
    yield
    rates.forget()


@pytest.fixture(scope="session")
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Create the database of this process; pytest-django's own would migrate in every worker."""
    with django_db_blocker.unblock():
        databases.make_database()
    databases.empty_database_after_tests()
    yield
    with django_db_blocker.unblock():
        databases.leave_database()


@pytest.fixture
def database_threads(transactional_db: None) -> Iterator[None]:
    """For code that writes on database threads: rows are committed, and the threads end their work.

    They stay for the next test, because a new connection to SQLite reads the whole schema.
    """
    yield
    databases.wait_for_threads()


# --- The server ---


# The periodic jobs that look for what earlier processes left.
TIDYING = frozenset(
    {
        "count the last hours",
        "delete old rows",
        "find missed webhooks",
        "grow the tree of log heads",
        "index messages",
        "look for work",
        "mail unread messages",
        "probe remote agents",
        "renew and sweep calls",
        "renew presence",
        "send notifications",
        "send webhooks",
        "sign the heads of logs",
        "start queued turns",
        "sweep responses",
        "sweep the ledger",
        "touch sessions",
    }
)


@pytest.fixture
def _empty_at_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Delay the first round of clean-up jobs by one interval.

    The database of a test is empty when its server starts, and half of a short test's CPU time went
    into rounds that found nothing. Servers in separate processes start their rounds at once.
    """
    from sessions_app.process import periodic  # noqa: PLC0415 only these tests need it

    repeat = periodic._repeat

    async def repeat_later(job: "PeriodicJob") -> None:
        if job.name in TIDYING:
            await asyncio.sleep(job.seconds)
        await repeat(job)

    monkeypatch.setattr(periodic, "_repeat", repeat_later)


@pytest.fixture
def server(database_threads: None, _empty_at_first: None) -> Iterator[ServerAddress]:
    """Run the real ASGI application on a real socket, in a separate thread."""
    from sessions_app.process import registry  # noqa: PLC0415 only these tests need it
    from uamp_project.asgi import application  # noqa: PLC0415 as above

    # A channel layer belongs to the event loops of one server.
    channel_layers.set("default", None)
    channel_layers.backends.clear()
    address = ServerAddress(host="127.0.0.1", port=services.free_port())
    config = uvicorn.Config(
        application,
        host=address.host,
        port=address.port,
        http=f"{services.PROTOCOLS}:HttpProtocol",
        ws=f"{services.PROTOCOLS}:WebSocketProtocol",
        lifespan="off",
        log_config=None,
        timeout_graceful_shutdown=5,
    )
    running = PromptServer(config)

    async def serve() -> None:
        try:
            await running.serve()
        finally:
            # Without a lifespan, nothing else stops the process object of this loop.
            if (process := registry.current_or_none()) is not None:
                await process.stop()
                registry.forget()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), name="server")
    thread.start()
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while not running.started:
        if not thread.is_alive() or time.monotonic() > deadline:
            running.stop()
            pytest.fail("the server did not start")
        time.sleep(0.01)
    yield address
    running.stop()
    join_threads([thread])


@pytest.fixture(scope="session")
def celery_worker_thread() -> Iterator[None]:
    """Run a Celery worker on threads of this process, once per session: stopping it is slow."""
    from uamp_project.celery import app  # noqa: PLC0415 only these tests need it

    app.loader.import_default_modules()
    with start_worker(app, pool="threads", concurrency=2, perform_ping_check=False):
        yield


# --- Services ---


@pytest.fixture(scope="session")
def redis_url() -> Iterator[str]:
    """Yield the URL of a Redis that is shared with others: use your own key prefix."""
    if url := services.running_redis():
        yield url
        return
    with services.own_redis() as redis_server:
        if redis_server is None:
            pytest.skip("no Redis: set TEST_REDIS_URL or install redis-server")
        yield redis_server


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium for `playwright`'s `executable_path`."""
    path = services.chromium()
    if path is None:
        pytest.skip("no Chromium: set CHROMIUM or install chromium")
    return path
