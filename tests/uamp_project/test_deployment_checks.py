"""`check --deploy` names what a server on the internet still lacks, and misspelt variables."""

import re
from pathlib import Path

import pytest
from pytest_django import Settings

from tests.uamp_project.serving import manage
from tests.uamp_project.settings.test_settings_page import page_rows
from uamp_project import deployment_checks


@pytest.mark.long
def test_everything_that_is_missing_is_listed_at_once(tmp_path: Path) -> None:
    done = manage(
        *("check", "--deploy"),
        data_dir=tmp_path,
        HTTPS="1",
        DATABASE_URL="postgres://missing@127.0.0.1:1/none",
        UAMP_TRUSTED_PROXYS="10.0.0.0/8",
    )

    assert done.returncode == 1
    for number in range(14, 18):
        assert f"(uamp.E0{number})" in done.stderr
    assert "HINT: Did you mean UAMP_TRUSTED_PROXIES?" in done.stderr


def test_what_to_set_is_named_on_a_server_without_https(tmp_path: Path) -> None:
    variables = {"UAMP_ISSUER": "http://chat.example.org", "SQLITE_SYNCHRONOUS": ""}
    done = manage("check", "--deploy", data_dir=tmp_path, **variables)

    hints = dict(re.findall(r"\((.*?)\) .*\n\tHINT: (.*)", done.stderr))
    assert hints.keys() == {"uamp.E020", "uamp.W019"}, done.stderr
    assert "set HTTPS=1" in hints["uamp.W019"]
    assert "for example chat.example.org" in hints["uamp.E020"]


def test_a_server_that_others_need_not_reach_starts_all_the_same(tmp_path: Path) -> None:
    done = manage("check", data_dir=tmp_path, UAMP_ISUER="https://chat.example.org")

    assert done.returncode == 0
    assert "uamp.E0" not in done.stderr


@pytest.mark.parametrize(
    ("database", "redis", "is_refused"),
    [
        ("", "", False),
        ("postgres://db/uamp", "redis://redis", False),
        ("", "redis://redis", False),
        ("postgres://db/uamp", "", True),
    ],
)
def test_a_shared_database_needs_a_redis(
    settings: Settings, database: str, redis: str, *, is_refused: bool
) -> None:
    settings.DATABASE_URL, settings.REDIS_URL = database, redis
    assert bool(deployment_checks.check_redis()) is is_refused


@pytest.mark.parametrize(
    ("issuer", "is_refused"),
    [
        ("https://chat.example.org", False),
        ("https://chat.example.org:8443/uamp", False),
        ("http://10.1.2.3:8000", False),
        ("https://localhost.example.org", False),
        ("http://localhost:8000", True),
        ("http://chat.localhost", True),
        ("http://127.0.0.1:8000", True),
        ("http://127.8.8.8", True),
        ("http://[::1]:8000", True),
        ("http://0.0.0.0", True),
        ("chat.example.org", True),
        ("", True),
    ],
)
def test_the_issuer_is_an_address_that_others_reach(
    settings: Settings, issuer: str, *, is_refused: bool
) -> None:
    settings.UAMP_ISSUER = issuer
    assert bool(deployment_checks.check_issuer()) is is_refused


@pytest.mark.parametrize(
    ("hosts", "is_refused"),
    [
        (["chat.example.org"], False),
        (["*"], False),
        ([".example.org", "localhost"], False),
        (["localhost", "127.0.0.1", "[::1]"], True),
        ([], True),
    ],
)
def test_the_server_answers_to_a_name_that_others_use(
    settings: Settings, hosts: list[str], *, is_refused: bool
) -> None:
    settings.ALLOWED_HOSTS = hosts
    assert bool(deployment_checks.check_hosts()) is is_refused


@pytest.mark.parametrize(
    ("database", "key", "is_refused"),
    [
        ("", "", False),
        ("postgres://db/uamp", "k" * 50, False),
        ("postgres://db/uamp", "", True),
    ],
)
def test_processes_on_one_database_have_one_key(
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    database: str,
    key: str,
    *,
    is_refused: bool,
) -> None:
    settings.DATABASE_URL = database
    monkeypatch.setenv("SECRET_KEY", key)
    assert bool(deployment_checks.check_secret_key()) is is_refused


@pytest.mark.parametrize(
    ("https", "proxies", "is_refused"),
    [(False, [], False), (True, ["10.0.0.0/8"], False), (True, [], True)],
)
def test_a_server_behind_a_proxy_knows_it(
    settings: Settings, proxies: list[str], *, https: bool, is_refused: bool
) -> None:
    settings.HTTPS, settings.UAMP_TRUSTED_PROXIES = https, proxies
    assert bool(deployment_checks.check_proxies()) is is_refused


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("UAMP_RESPONSE_SECOND", "UAMP_RESPONSE_SECONDS"),
        ("UAMP_TRUSTED_PROXY", "UAMP_TRUSTED_PROXIES"),
        ("UAMP_METRIC_TOKEN", "UAMP_METRICS_TOKEN"),
        ("REDIS_URI", "REDIS_URL"),
        ("DATABSE_URL", "DATABASE_URL"),
        ("ALLOWED_HOST", "ALLOWED_HOSTS"),
        ("SECRETKEY", "SECRET_KEY"),
    ],
)
def test_a_misspelt_variable_is_named_with_the_nearest_one(name: str, nearest: str) -> None:
    (message,) = deployment_checks.misspelt([name], deployment_checks.known_names())
    assert (message.id, message.hint) == ("uamp.E017", f"Did you mean {nearest}?")


def test_a_variable_of_ours_that_resembles_none_is_named_too() -> None:
    (message,) = deployment_checks.misspelt(["UAMP_X"], frozenset({"UAMP_RESPONSE_SECONDS"}))
    assert message.hint == "docs/settings.md lists all."


@pytest.mark.parametrize(
    "name",
    [
        *(
            "LANGUAGE",
            "LANG",
            "HOSTNAME",
            "HOME",
            "PATH",
            "HTTPS_PROXY",
            "HTTP_PROXY",
            "DEBUGINFOD",
        ),
        *(
            "OPENAI_API_KEY",
            "REDIS_PORT",
            "REDIS_PASSWORD",
            "POSTGRES_PASSWORD",
            "TEST_DATABASE_URL",
        ),
        *("UAMP_SERVICE_HOST", "UAMP_SERVICE_PORT", "UAMP_SERVICE_PORT_HTTP", "UAMP_PORT"),
        *("UAMP_PORT_8000_TCP", "UAMP_PORT_8000_TCP_ADDR", "UAMP_WEB_SERVICE_HOST"),
    ],
)
def test_variables_of_others_are_left_alone(name: str) -> None:
    assert deployment_checks.misspelt([name], deployment_checks.known_names()) == []


def test_every_variable_of_the_page_is_known() -> None:
    listed = {name for name in page_rows("variables") if name.startswith("UAMP_")}
    assert listed - deployment_checks.known_names() == set()


@pytest.mark.parametrize(
    ("bucket", "key", "secret", "endpoint", "names"),
    [
        ("", "", "", "", []),
        ("files", "key", "secret", "", []),
        ("files", "", "", "", ["uamp.I018"]),
        ("files", "key", "", "", ["UAMP_S3_SECRET_KEY"]),
        ("files", "", "secret", "", ["UAMP_S3_KEY_ID"]),
        ("", "key", "secret", "", ["UAMP_S3_BUCKET"]),
        ("", "", "", "https://s3", ["UAMP_S3_BUCKET", "UAMP_S3_KEY_ID", "UAMP_S3_SECRET_KEY"]),
    ],
)
def test_a_bucket_needs_its_name_and_its_key(
    settings: Settings, bucket: str, key: str, secret: str, endpoint: str, names: list[str]
) -> None:
    settings.UAMP_S3_BUCKET, settings.UAMP_S3_ENDPOINT = bucket, endpoint
    settings.UAMP_S3_KEY_ID, settings.UAMP_S3_SECRET_KEY = key, secret
    messages = deployment_checks.check_bucket()
    assert len(messages) == len(names)
    for message, name in zip(messages, names, strict=True):
        assert name in f"{message.msg} {message.id}"
