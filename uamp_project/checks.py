"""System checks of the options that the promised guarantees depend on.

They only read settings and files, so `manage.py check` needs no database unless it names one.
"""

import re
from collections.abc import Mapping
from typing import Any

from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage, Error
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError

from federation_app.peers.addresses import refused_addresses
from federation_app.peers.connections import read_certificates
from signing_app.server_keys import key_files, server_keys
from uamp_project.database_clock import clock_problem
from uamp_project.management.migrated import refuse_newer_database

CELERY_OPTIONS = {
    "CELERY_TASK_ACKS_LATE": (True, "a task whose worker dies is lost"),
    "CELERY_TASK_REJECT_ON_WORKER_LOST": (
        True,
        "a task whose worker child process is killed is lost",
    ),
    "CELERY_WORKER_PREFETCH_MULTIPLIER": (1, "tasks wait behind a long one on a busy worker"),
}

LISTED_ADDRESSES = 5
"""How many addresses of peers a warning names."""

WAITS = ("UAMP_APPROVAL_SECONDS", "UAMP_TOOL_WAIT_SECONDS", "UAMP_PAYMENT_SECONDS")
"""How long an answer waits for a person, its client or a payer."""


@checks.register
def check_database_options(**_: Any) -> list[CheckMessage]:
    """Check the options of the default database."""
    return database_messages(settings.DATABASES["default"])


@checks.register(checks.Tags.database)
def check_database_version(**options: Any) -> list[CheckMessage]:
    """Check that no newer server has migrated the database; only with `--database default`."""
    if not options.get("databases"):
        return []
    try:
        refuse_newer_database()
    except CommandError as error:
        return [Error(str(error), id="uamp.E022")]
    return []


@checks.register(checks.Tags.database)
def check_clock(**options: Any) -> list[CheckMessage]:
    """Check that the clock agrees with the database's; only with `--database default`."""
    if not options.get("databases"):
        return []
    try:
        problem = clock_problem()
    except DatabaseError:
        # check_database_version reports it.
        return []
    return [checks.Warning(problem, id="uamp.W024")] if problem else []


@checks.register(checks.Tags.database)
def check_peer_addresses(**options: Any) -> list[CheckMessage]:
    """Warn of peers that may not be called where they are; only with `--database default`."""
    if not options.get("databases"):
        return []
    try:
        refused = refused_addresses()
    except DatabaseError:
        # A database that is not migrated yet.
        return []
    if not refused:
        return []
    more = len(refused) - LISTED_ADDRESSES
    lines = [*refused[:LISTED_ADDRESSES], *([f"and {more} more"] if more > 0 else [])]
    return [
        checks.Warning(
            f"Addresses of peers that this server does not call: {'; '.join(lines)}.",
            hint="Peers need https, and private addresses have to be in UAMP_REMOTE_ALLOW_HOSTS;"
            " see 'Ask an agent of a peer' in docs/envelopes.md.",
            id="uamp.W027",
        )
    ]


@checks.register
def check_data_dir(**_: Any) -> list[CheckMessage]:
    """Warn if other users can access DATA_DIR."""
    if not settings.DATA_DIR.stat().st_mode & 0o077:
        return []
    return [
        checks.Warning(
            f"{settings.DATA_DIR} is open to other users, and this one cannot change that.",
            hint="Run `chmod 700` as its owner.",
            id="uamp.W011",
        )
    ]


@checks.register
def check_signing_keys(**_: Any) -> list[CheckMessage]:
    """Check that the server can read the keys with which it signs; one that it lacks is made later.

    Otherwise it would run, and fail wherever it signs or verifies a token.
    """
    if not settings.UAMP_SIGNING_KEYS and not any(key_files()):
        return []
    try:
        server_keys()
    except (OSError, ValueError) as error:
        return [
            Error(
                f"A signing key cannot be read: {error}",
                hint="Restore the file, or list the right ones in UAMP_SIGNING_KEYS.",
                id="uamp.E023",
            )
        ]
    return []


@checks.register
def check_peer_certificates(**_: Any) -> list[CheckMessage]:
    """Check that the certificates of peers besides those of public authorities can be read."""
    if not settings.UAMP_PEER_CA_FILE:
        return []
    try:
        read_certificates(settings.UAMP_PEER_CA_FILE)
    except ImproperlyConfigured as error:
        return [
            Error(
                str(error),
                hint="Set it to a PEM file with certificates of peers or of their authorities.",
                id="uamp.E025",
            )
        ]
    return []


@checks.register
def check_waiting_times(**_: Any) -> list[CheckMessage]:
    """Check that an answer's reservation outlasts each of its waits.

    A wait that began before a restart does not renew the reservation.
    """
    return [
        Error(
            f"UAMP_HOLD_SECONDS ({settings.UAMP_HOLD_SECONDS}) must be longer than {name}"
            f" ({getattr(settings, name)}), or what an answer reserved ends while it waits.",
            id="uamp.E012",
        )
        for name in WAITS
        if getattr(settings, name) >= settings.UAMP_HOLD_SECONDS
    ]


@checks.register
def check_message_days(**_: Any) -> list[CheckMessage]:
    """Check that messages are not erased while their answers may still be waiting."""
    longest = max(WAITS, key=lambda name: getattr(settings, name))
    days, seconds = settings.UAMP_MESSAGE_DAYS, getattr(settings, longest)
    if not days or days * 24 * 3600 >= seconds + settings.UAMP_RESPONSE_SECONDS:
        return []
    return [
        Error(
            f"UAMP_MESSAGE_DAYS ({days:g}) must be longer than {longest} ({seconds:g} seconds) and"
            " UAMP_RESPONSE_SECONDS together, or a question is erased before its answer has ended.",
            id="uamp.E013",
        )
    ]


@checks.register
def check_celery_options(**_: Any) -> list[CheckMessage]:
    """Check the Celery options."""
    return [
        Error(f"{name} must be {required!r}, or {risk}.", id="uamp.E010")
        for name, (required, risk) in CELERY_OPTIONS.items()
        if getattr(settings, name, None) != required
    ]


def database_messages(database: Mapping[str, Any]) -> list[CheckMessage]:
    """Return the problems with one entry of DATABASES."""
    options = database.get("OPTIONS", {})
    if database["ENGINE"].endswith("sqlite3"):
        return _sqlite_messages(options)
    if database["ENGINE"].endswith("postgresql"):
        return _postgresql_messages(options)
    return [Error(f"{database['ENGINE']} is not supported.", id="uamp.E001")]


def _sqlite_messages(options: Mapping[str, Any]) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if options.get("transaction_mode") != "IMMEDIATE":
        problems.append(
            Error(
                "SQLite needs transaction_mode IMMEDIATE.",
                hint="With DEFERRED, writers fail with 'database is locked'.",
                id="uamp.E002",
            )
        )
    pragmas = dict(re.findall(r"(?i)pragma\s+(\w+)\s*=\s*(\w+)", options.get("init_command", "")))
    if pragmas.get("journal_mode", "").upper() != "WAL":
        problems.append(Error("SQLite needs journal_mode WAL.", id="uamp.E003"))
    if pragmas.get("synchronous", "").upper() not in {"FULL", "EXTRA"}:
        problems.append(
            checks.Warning(
                "SQLite with synchronous below FULL can lose acknowledged messages in a power cut.",
                hint="Unset SQLITE_SYNCHRONOUS.",
                id="uamp.W004",
            )
        )
    return problems


def _postgresql_messages(options: Mapping[str, Any]) -> list[CheckMessage]:
    problems: list[CheckMessage] = []
    if not options.get("tcp_user_timeout"):
        problems.append(
            Error(
                "PostgreSQL needs tcp_user_timeout.",
                hint="Without it a vanished server holds a connection forever.",
                id="uamp.E005",
            )
        )
    # Every write re-checks its condition under a row lock, which requires READ COMMITTED.
    if options.get("isolation_level") is not None or "isolation" in options.get("options", ""):
        problems.append(
            Error("PostgreSQL needs its default isolation, READ COMMITTED.", id="uamp.E006")
        )
    if "synchronous_commit=off" in options.get("options", "").replace(" ", ""):
        problems.append(
            Error(
                "PostgreSQL needs synchronous_commit on.",
                hint="Off, a crash loses acknowledged messages.",
                id="uamp.E007",
            )
        )
    return problems
