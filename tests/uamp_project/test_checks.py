"""The system checks: what the settings give is clean, and each missing option is found."""

import os
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any, Final

import pytest
from pytest_django import Settings

from uamp_project import checks

ROOT = Path(__file__).parent.parent.parent
MESSAGE_ID: Final = re.compile(r'id="(uamp\.[EWI]\d+)"')


def manage(*arguments: str, data_dir: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run manage.py with the product's settings."""
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in {"DATABASE_URL", "REDIS_URL", "SQLITE_SYNCHRONOUS", "DJANGO_SETTINGS_MODULE"}
    }
    return subprocess.run(  # noqa: S603 our own interpreter
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env={**variables, "DATA_DIR": str(data_dir), **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "environment",
    [
        {},
        {
            "DATABASE_URL": "postgres://missing@127.0.0.1:1/none",
            "REDIS_URL": "redis://127.0.0.1:1",
        },
    ],
    ids=["embedded", "clustered"],
)
def test_check_deploy_is_clean(environment: dict[str, str], tmp_path: Path) -> None:
    done = manage(
        *("check", "--deploy", "--fail-level", "WARNING"),
        data_dir=tmp_path,
        HTTPS="1",
        ALLOWED_HOSTS="chat.example.org",
        SECRET_KEY="k" * 30 + "".join(map(chr, range(48, 78))),
        UAMP_ISSUER="https://chat.example.org",
        UAMP_TRUSTED_PROXIES="10.0.0.0/8",
        **environment,
    )

    assert (done.returncode, done.stdout) == (
        0,
        "System check identified no issues (2 silenced).\n",
    ), done.stderr


def test_a_lower_synchronous_is_a_warning(tmp_path: Path) -> None:
    done = manage("check", data_dir=tmp_path, SQLITE_SYNCHRONOUS="NORMAL")

    assert "uamp.W004" in done.stderr


def sqlite(**options: Any) -> dict[str, Any]:
    good = {
        "transaction_mode": "IMMEDIATE",
        "init_command": "PRAGMA journal_mode=WAL;PRAGMA synchronous=FULL;",
    }
    return {"ENGINE": "django.db.backends.sqlite3", "OPTIONS": {**good, **options}}


def postgresql(**options: Any) -> dict[str, Any]:
    good = {"tcp_user_timeout": 8000, "options": "-c lock_timeout=5000"}
    return {"ENGINE": "django.db.backends.postgresql", "OPTIONS": {**good, **options}}


@pytest.mark.parametrize(
    ("database", "ids"),
    [
        (sqlite(), []),
        (sqlite(transaction_mode=None), ["uamp.E002"]),
        (sqlite(transaction_mode="DEFERRED"), ["uamp.E002"]),
        (sqlite(init_command="PRAGMA synchronous=FULL;"), ["uamp.E003"]),
        (sqlite(init_command="PRAGMA journal_mode=WAL;"), ["uamp.W004"]),
        (postgresql(), []),
        (postgresql(tcp_user_timeout=0), ["uamp.E005"]),
        (postgresql(isolation_level=3), ["uamp.E006"]),
        (postgresql(options="-c default_transaction_isolation=serializable"), ["uamp.E006"]),
        (postgresql(options="-c synchronous_commit=off"), ["uamp.E007"]),
        ({"ENGINE": "django.db.backends.mysql"}, ["uamp.E001"]),
    ],
)
def test_each_database_option_that_is_needed_is_asked_for(
    database: dict[str, Any], ids: list[str]
) -> None:
    assert [message.id for message in checks.database_messages(database)] == ids


@pytest.mark.parametrize(
    "name", ["UAMP_APPROVAL_SECONDS", "UAMP_TOOL_WAIT_SECONDS", "UAMP_PAYMENT_SECONDS"]
)
def test_a_reservation_outlasts_what_its_answer_waits_for(name: str, settings: Settings) -> None:
    assert checks.check_waiting_times() == []
    setattr(settings, name, settings.UAMP_HOLD_SECONDS)

    (message,) = checks.check_waiting_times()
    assert message.id == "uamp.E012"
    assert name in message.msg


@pytest.mark.parametrize("name", checks.WAITS)
def test_a_message_is_kept_longer_than_its_answer_may_take(name: str, settings: Settings) -> None:
    assert checks.check_message_days() == []
    settings.UAMP_MESSAGE_DAYS = 3
    assert checks.check_message_days() == []
    setattr(settings, name, 3 * 24 * 3600)

    (message,) = checks.check_message_days()
    assert message.id == "uamp.E013"
    assert name in message.msg


@pytest.mark.parametrize("name", list(checks.CELERY_OPTIONS))
def test_each_celery_option_that_is_needed_is_asked_for(name: str, settings: Settings) -> None:
    assert checks.check_celery_options() == []
    setattr(settings, name, 4)

    assert [message.id for message in checks.check_celery_options()] == ["uamp.E010"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [("no key", "PEM"), (None, "No such file")],
)
def test_a_signing_key_that_cannot_be_read_keeps_the_server_from_starting(
    tmp_path: Path, settings: Settings, text: str | None, reason: str
) -> None:
    file = tmp_path / "key.pem"
    if text is not None:
        file.write_text(text)
    settings.UAMP_SIGNING_KEYS = [str(file)]
    (message,) = checks.check_signing_keys()
    assert message.id == "uamp.E023"
    assert str(file) in message.msg
    assert reason in message.msg
    # In the folder of keys too; without any file, one is made at the first use, not by the check.
    settings.UAMP_SIGNING_KEYS = []
    settings.DATA_DIR = tmp_path
    assert checks.check_signing_keys() == []
    folder = tmp_path / "signing_keys"
    assert not folder.exists()
    folder.mkdir()
    (folder / "2026-first.pem").write_text("no key")
    assert [message.id for message in checks.check_signing_keys()] == ["uamp.E023"]


def test_each_message_has_an_id_of_its_own() -> None:
    packages = [path for path in ROOT.iterdir() if (path / "__init__.py").is_file()]
    sources = [file for path in packages if path.name != "tests" for file in path.rglob("*.py")]
    ids = [id_ for file in sources for id_ in MESSAGE_ID.findall(file.read_text())]
    assert len(ids) > 15
    assert [id_ for id_, count in Counter(ids).items() if count > 1] == []
