"""The server's files are its user's alone, and one process at a time prepares the demo."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import httpx
import pytest
from django.contrib.auth.models import User
from django.urls import URLPattern, URLResolver, get_resolver

from sessions_app.access.auth import create_api_key
from sessions_app.models import ApiKey
from tests import factories
from tests.programs import PROGRAM_SECONDS, Program
from tests.uamp_project.serving import ROOT, Serving, environment, manage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import ServerAddress

METHODS: Final = ("OPTIONS", "HEAD", "TRACE", "DELETE", "PROPFIND", "PUT")
SHORT_RUN: Final = bool(os.environ.get("SHORT_RUN"))


@pytest.mark.long
def test_a_folder_that_was_open_is_closed_and_every_file_is_private(tmp_path: Path) -> None:
    data_dir = tmp_path / "var"
    data_dir.mkdir(mode=0o755)
    data_dir.chmod(0o755)
    old = os.umask(0o022)
    try:
        assert manage("migrate", data_dir=data_dir).returncode == 0
        assert data_dir.stat().st_mode & 0o777 == 0o700
        # Two at once agree on one set of people.
        programs = [
            Program(
                *(sys.executable, "manage.py", "demo", "--json"),
                cwd=ROOT,
                env=environment(data_dir),
                stdout=subprocess.PIPE,
            )
            for _ in range(2)
        ]
        printed = [
            json.loads(program.communicate(timeout=PROGRAM_SECONDS)[0]) for program in programs
        ]
        serving = Serving(data_dir)
    finally:
        os.umask(old)
    try:
        alice = next(user for user in printed[0]["users"] if user["username"] == "alice")
        answer = httpx.post(
            f"http://127.0.0.1:{serving.port}/api/v1/contents",
            files={"file": ("a.txt", b"hello", "text/plain")},
            headers={"Authorization": f"Bearer {alice['api_key']}"},
            trust_env=False,
        )
        assert answer.status_code == httpx.codes.CREATED, answer.text
        serving.wait_for_workers()
        output = serving.output.name
        open_to_others = [
            f"{path.relative_to(data_dir)} {path.lstat().st_mode & 0o777:o}"
            for path in data_dir.rglob("*")
            if path.lstat().st_mode & 0o077 and path.name != output
        ]
    finally:
        serving.process.end()
    assert open_to_others == []
    assert printed[0]["users"] == printed[1]["users"]


def test_a_changed_password_revokes_the_keys_of_its_person(db: None) -> None:
    ada, bea = factories.user("ada"), factories.user("bea")
    for person in (ada, bea):
        create_api_key(person, name="program")
    ada.last_name = "Lovelace"
    ada.save()
    assert ada.check_password("password")
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()
    ada.set_password("another-one")
    ada.save()
    assert [key.user for key in ApiKey.objects.filter(revoked_at__isnull=False)] == [ada]


def test_a_better_hash_of_the_same_password_revokes_nothing(db: None) -> None:
    ada = factories.user("ada")
    create_api_key(ada, name="program")
    User.objects.filter(pk=ada.pk).update(password="plain$" + "x")
    ada.set_password("password")
    vars(ada)["_password"] = None  # what Django does when it hashes a password anew at a sign-in
    ada.save(update_fields=["password"])
    assert not ApiKey.objects.filter(revoked_at__isnull=False).exists()


def paths() -> Iterator[str]:
    """Yield an address of every route."""

    def walk(patterns: list[URLPattern | URLResolver], prefix: str) -> Iterator[str]:
        for pattern in patterns:
            route = prefix + str(pattern.pattern)
            if isinstance(pattern, URLResolver):
                yield from walk(pattern.url_patterns, route)
            else:
                yield route

    seen = set()
    for route in walk(get_resolver().url_patterns, ""):
        text = "/" + route.replace("^", "").replace(r"\Z", "").replace("$", "")
        while "<" in text:
            start = text.index("<")
            end = text.index(">", start)
            kind = text[start + 1 : end]
            value = "0f9619ff-8b86-4011-b42d-00c04fc964ff" if kind.startswith("uuid") else "1"
            before = text[:start].removesuffix("(?P")
            rest = text[end + 1 :]
            if text[:start].endswith("(?P"):
                rest = rest[rest.index(")") + 1 :]
            text = before + value + rest
        if not set("()?*+[]\\|") & set(text):
            seen.add(text)
    yield from sorted(seen)


@pytest.mark.parametrize("who", [pytest.param("anonymous", marks=pytest.mark.long), "person"])
def test_no_method_on_any_route_is_a_failure_of_the_server(server: ServerAddress, who: str) -> None:
    headers = {"X-Forwarded-Proto": "http"}
    if who == "person":
        headers["Authorization"] = f"Bearer {create_api_key(factories.user('ada'), name='k')}"
    failed = []
    with httpx.Client(base_url=server.http, headers=headers, timeout=20, trust_env=False) as web:
        every = list(paths())
        assert "/api/docs" in every
        assert len(every) > 60
        for place, path in enumerate(every):
            if path.startswith("/admin/") and path != "/admin/":
                continue
            streams = path.endswith("/stream") or path == "/readyz"
            methods = METHODS[:3] if streams else METHODS
            # The short tier sends every method to a third of the routes.
            for method in methods[place % 3 :: 3] if SHORT_RUN else methods:
                status = web.request(method, path).status_code
                if status >= 500:
                    failed.append((method, path, status))
    assert failed == []
