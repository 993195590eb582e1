"""A value that cannot be used is refused at the start, in one line that names it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from tests.uamp_project.serving import manage
from uamp_project.settings import environment

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODES = ("usage", "none", "full")


def integer() -> Any:
    return environment.integer("X", 7, minimum=1, maximum=100)


def number() -> Any:
    return environment.number("X", 7)


def amount() -> Any:
    return environment.amount("X", "7")


def choice() -> Any:
    return environment.choice("X", "usage", MODES)


def on() -> Any:
    return environment.switch("X", "1")


def off() -> Any:
    return environment.switch("X", "0")


def networks() -> Any:
    return environment.networks("X")


def origins() -> Any:
    return environment.origins("X")


def ice_servers() -> Any:
    return environment.ice_servers("X")


def json_object() -> Any:
    return environment.json_object("X")


def database() -> Any:
    return environment.database("X")


@pytest.mark.parametrize(
    ("read", "text", "value"),
    [
        (integer, "", 7),
        (integer, " 100 ", 100),
        (number, "", 7.0),
        (number, "0.25", 0.25),
        (number, "1e3", 1000.0),
        (amount, "", "7"),
        (amount, "99.50", "99.50"),
        (choice, "", "usage"),
        (choice, "FULL", "full"),
        (on, "", True),
        (off, "", False),
        *((off, text, True) for text in ("1", "true", "Yes", "ON", " on ")),
        *((on, text, False) for text in ("0", "FALSE", "no", "Off")),
        (networks, "", []),
        (networks, "10.0.0.0/8, ::1,,unix", ["10.0.0.0/8", "::1", "unix"]),
        (origins, "", []),
        (origins, "*, http://[::1]:8000", ["*", "http://[::1]:8000"]),
        (json_object, "", {}),
        (json_object, '{"a": 1}', {"a": 1}),
        (ice_servers, "", []),
        (ice_servers, '[{"urls": "stun:s.example"}]', [{"urls": "stun:s.example"}]),
        (ice_servers, '[{"urls": ["turns:t.example:5349"]}]', [{"urls": ["turns:t.example:5349"]}]),
    ],
)
def test_what_can_be_used_is_read(
    read: Callable[[], Any], text: str, value: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", text)
    assert read() == value
    if not text:
        monkeypatch.delenv("X")
        assert read() == value


@pytest.mark.parametrize(
    ("read", "text", "requirement"),
    [
        *((integer, text, "from 1 to 100") for text in ("abc", "1.5", "0", "101", "-1", "1e1")),
        *((number, text, "from 0 to") for text in ("abc", "-1", "nan", "inf", "1e400", "2e9")),
        *((amount, text, "an amount") for text in ("abc", "-1", "NaN", "Infinity")),
        (choice, "half", "one of usage, none, full"),
        *((off, text, "one of 1, true, yes, on (on) or 0,") for text in ("2", "y", "enabled")),
        *((networks, text, "a network") for text in ("10.0.0.0/99", "proxy.local")),
        *(
            (origins, text, "an origin")
            for text in ("a.example", "https://a.example/b", "https://*")
        ),
        *((json_object, text, "a JSON object") for text in ("{", "[]", "7")),
    ],
)
def test_what_cannot_is_refused_with_name_value_and_what_it_has_to_be(
    read: Callable[[], Any], text: str, requirement: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", text)
    with pytest.raises(ImproperlyConfigured) as refused:
        read()
    assert str(refused.value).startswith(f"X is {text!r}: it has to be ")
    assert requirement in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "nonsense",
        "nosql://me:s3cret@host/name",
        "mysql://me:s3cret@host/name",
        "sqlite:////tmp/x",
        "postgres://h:port/x",
    ],
)
def test_the_address_of_a_database_is_not_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", url)
    with pytest.raises(ImproperlyConfigured, match="X has to be as postgres://") as refused:
        database()
    assert url not in str(refused.value)


def test_options_of_the_url_are_kept_beside_those_that_the_server_needs(tmp_path: Path) -> None:
    url = "postgres://me@db/uamp?connect_timeout=30&sslmode=require&options=-csearch_path%3Duamp"
    text = manage("diffsettings", data_dir=tmp_path, DATABASE_URL=url).stdout
    assert "'connect_timeout': 30" in text
    assert "'sslmode': 'require'" in text
    assert "'options': '-csearch_path=uamp -c lock_timeout=5000 -c statement_timeout=" in text


def test_hsts_is_for_the_host_and_not_for_its_subdomains(tmp_path: Path) -> None:
    text = manage("diffsettings", data_dir=tmp_path, HTTPS="1").stdout
    assert "SECURE_HSTS_SECONDS = 31536000" in text
    # Settings with their default, False, are not listed.
    assert "SECURE_HSTS_INCLUDE_SUBDOMAINS" not in text
    assert "SECURE_HSTS_PRELOAD" not in text


@pytest.mark.parametrize("url", ["localhost:6379", "http://me:s3cret@host/0", "redis://h:port/0"])
def test_the_address_of_a_redis_is_not_shown(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", url)
    with pytest.raises(ImproperlyConfigured, match="X has to be as redis://") as refused:
        environment.redis("X")
    assert url not in str(refused.value)


@pytest.mark.parametrize("url", ["", "redis://redis:6379/0", "rediss://me:s3cret@host/1"])
def test_the_address_of_a_redis_is_read(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("X", url)
    assert environment.redis("X") == url
    assert environment.redis_servers("X") == ([url] if url else [])


def test_several_redis_servers_are_read_and_a_bad_one_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("X", "redis://one:6379/0, rediss://:s3cret@two:6380/0,")
    assert environment.redis_servers("X") == ["redis://one:6379/0", "rediss://:s3cret@two:6380/0"]
    monkeypatch.setenv("X", "redis://one:6379/0,:s3cret@two:6380")
    with pytest.raises(ImproperlyConfigured, match="X has to be as redis://") as refused:
        environment.redis_servers("X")
    assert "s3cret" not in str(refused.value)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"UAMP_GRACE_SECONDS": "abc"}, "UAMP_GRACE_SECONDS is 'abc': it has to be a number"),
        ({"PORT": "abc"}, "PORT is 'abc': it has to be a whole number from 0 to 65535."),
        ({"HTTPS": "sure"}, "HTTPS is 'sure': it has to be one of 1, true, yes, on (on)"),
        ({"DATABASE_URL": "mysql://x"}, "DATABASE_URL has to be as postgres://"),
        ({"REDIS_URL": "localhost:6379"}, "REDIS_URL has to be as redis://"),
        ({"DATA_DIR": "/dev/null/x"}, "DATA_DIR is '/dev/null/x': it has to be a folder (Not a"),
        ({"PORT": "70000"}, "PORT is '70000': it has to be a whole number from 0 to 65535."),
    ],
)
def test_serve_says_it_in_one_line(variables: dict[str, str], message: str, tmp_path: Path) -> None:
    done = manage("serve", data_dir=tmp_path, SQLITE_SYNCHRONOUS="FULL", **variables)
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert message in line


@pytest.mark.long
def test_the_address_of_a_server_has_its_port(tmp_path: Path) -> None:
    for variables, issuer in (
        ({"PORT": "8391"}, "http://localhost:8391"),
        ({"PORT": "8391", "UAMP_ISSUER": "https://chat.example"}, "https://chat.example"),
        ({}, "http://localhost:8000"),
    ):
        settings_text = manage("diffsettings", data_dir=tmp_path, **variables).stdout
        assert f"UAMP_ISSUER = '{issuer}'" in settings_text, variables


def test_a_port_of_the_command_line_is_refused_likewise(tmp_path: Path) -> None:
    done = manage("serve", "--port", "70000", data_dir=tmp_path)
    assert done.returncode == 2
    assert "argument --port: '70000' is not a port" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    "text",
    ["{", "{}", "7", "[7]", "[{}]", '[{"urls": []}]', '[{"urls": "https://secret.example"}]'],
)
def test_ice_servers_are_refused_without_their_passwords(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("X", text)
    with pytest.raises(ImproperlyConfigured) as refused:
        ice_servers()
    assert str(refused.value).startswith("X has to be a JSON array such as ")
    assert "secret.example" not in str(refused.value)
