"""A server that is backed up while it writes, and restored elsewhere, on both databases."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import httpx
import psycopg
import pytest

from tests import databases, services
from tests.buckets import make_bucket, s3_server
from tests.journeys.product import Product, make_demo
from tests.threads import join_threads
from tests.uamp_project.serving import ROOT, environment

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LISTED = "id", "seq", "content", "content_items"


CHECKOUT: Final = ("manage.py",)
INSTALLED: Final = ("-m", "uamp_project.command")
"""How Python runs the program that a wheel installs as `uamp-server`."""


def manage(
    *arguments: str, data_dir: Path, url: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    """Run a command on the server of a folder and a database."""
    all_variables = {**variables, **({"DATABASE_URL": url} if url else {})}
    return run(CHECKOUT, *arguments, data_dir=data_dir, variables=all_variables)


def run(
    program: tuple[str, ...],
    *arguments: str,
    data_dir: Path,
    variables: dict[str, str],
    blocks: int | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run a command of a checkout or of an installation, which may not write longer files."""
    limit = ("sh", "-c", f'ulimit -f {blocks} && exec "$@"', "sh") if blocks else ()
    return subprocess.run(  # noqa: S603 our own interpreter
        [*limit, sys.executable, *program, *arguments],
        cwd=ROOT,
        env={**environment(data_dir), **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    """Return the line with which a command failed; warnings of checks come before it."""
    (line,) = re.findall(r"^CommandError: (.+)\n\Z", done.stderr, re.MULTILINE) or [""]
    assert line, done.stderr
    return str(line)


@contextmanager
def database(kind: str) -> Iterator[str]:
    """Give the URL of a database that is empty or not there yet; '' for SQLite."""
    if kind == "sqlite":
        yield ""
        return
    server = services.postgres()
    if server is None:
        pytest.skip("needs PostgreSQL")
    name = f"uamp_backup_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(server, autocommit=True) as admin:
        admin.execute(f'CREATE DATABASE "{name}"'.encode())
    try:
        yield f"{server.rpartition('/')[0]}/{name}"
    finally:
        with psycopg.connect(server, autocommit=True) as admin:
            admin.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)'.encode())


@dataclass
class BackedUp:
    """A backup, and what the server said before it."""

    file: Path
    messages: list[dict[str, Any]]
    content: bytes
    content_url: str
    key: str
    chat_id: str


# It migrates two databases, and starts a server for each.
@pytest.mark.timeout(600)
@pytest.mark.any_database
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("postgresql", marks=pytest.mark.long)])
def test_a_restored_server_has_what_was_there(kind: str, tmp_path: Path) -> None:
    with database(kind) as url, database(kind) as other:
        backed_up = back_up(tmp_path, url)
        fresh = tmp_path / "fresh"
        fresh.mkdir()
        arguments = ("restore", str(backed_up.file))
        variables = {"DATABASE_URL": other} if other else {}
        restored = run(INSTALLED, *arguments, data_dir=fresh, variables=variables)
        assert restored.returncode == 0, restored.stderr
        assert "Run `uamp-server audit_ledger`" in restored.stdout
        audited = manage("audit_ledger", data_dir=fresh, url=other)
        assert (audited.returncode, audited.stdout) == (0, "The ledger adds up.\n")
        again = manage("restore", str(backed_up.file), data_dir=fresh, url=other)
        assert again.returncode == 1

        with running(fresh, other) as client:
            headers = {"Authorization": f"Bearer {backed_up.key}"}
            path = f"/api/v1/chats/{backed_up.chat_id}/messages?order=asc"
            messages = client.get(path, headers=headers).json()["data"]
            listed_messages = [{name: message[name] for name in LISTED} for message in messages]
            assert listed_messages[: len(backed_up.messages)] == backed_up.messages
            content = client.get(backed_up.content_url, headers=headers)
            assert content.content == backed_up.content


def back_up(folder: Path, url: str) -> BackedUp:
    """Use a server, and back it up while it answers."""
    data_dir, file = folder / "first", folder / "backup.tar"
    data_dir.mkdir()
    product = Product(data_dir, 0, {"DATABASE_URL": url} if url else {})
    if url:
        make_demo(product)
    else:
        product.prepare()
    demo = json.loads((data_dir / "demo.json").read_text())
    key = next(user["api_key"] for user in demo["users"] if user["username"] == "alice")
    chat_id = demo["chats"][0]["id"]
    headers = {"Authorization": f"Bearer {key}"}
    data = os.urandom(70_000)
    with running(data_dir, url) as client:
        stored = client.post(
            "/api/v1/contents", files={"file": ("noise.bin", data)}, headers=headers
        ).json()
        path = f"/api/v1/chats/{chat_id}/messages"

        def write(text: str) -> int:
            response = client.post(
                path,
                json={"content": text},
                headers={**headers, "Idempotency-Key": uuid.uuid4().hex},
            )
            return response.status_code

        assert write("before the backup") == 201
        listed = client.get(f"{path}?order=asc", headers=headers).json()["data"]
        ended = threading.Event()

        def write_on() -> None:
            while not ended.is_set():
                # Until the limit of messages refuses more.
                if write("meanwhile") == 429:
                    return

        writer = threading.Thread(target=write_on)
        writer.start()
        try:
            done = manage("backup", str(file), data_dir=data_dir, url=url)
        finally:
            ended.set()
            join_threads([writer])
    assert done.returncode == 0, done.stderr
    assert file.stat().st_mode & 0o077 == 0
    return BackedUp(
        file=file,
        messages=[{name: message[name] for name in LISTED} for message in listed],
        content=data,
        content_url=stored["url"],
        key=key,
        chat_id=chat_id,
    )


@contextmanager
def running(data_dir: Path, url: str) -> Iterator[httpx.Client]:
    """Serve, and give a client."""
    variables = {"DATABASE_URL": url} if url else {}
    product = Product(data_dir, services.free_port(), variables, has_workers=False)
    try:
        product.start()
        with httpx.Client(base_url=product.url, timeout=60) as client:
            yield client
    finally:
        product.stop()


def changed(
    archive: Path, to: Path, *, name: str = "", cut: int = 0, extra: str = "", migration: str = ""
) -> Path:
    """Copy an archive with one member changed, its end cut off, a member or a migration more."""
    if cut:
        to.write_bytes(archive.read_bytes()[:-cut])
        return to
    with tarfile.open(archive) as source, tarfile.open(to, "w") as copy:
        for member in source:
            data = source.extractfile(member)
            text = b"" if data is None else data.read()
            if member.name == "manifest.json" and migration:
                text = text.replace(b'"migrations": [', f'"migrations": ["{migration}",'.encode())
                member.size = len(text)
            if member.name == name:
                text = bytes([text[0] ^ 1]) + text[1:]
            copy.addfile(member, io.BytesIO(text))
        if extra:
            member = tarfile.TarInfo(extra)
            member.size = 1
            copy.addfile(member, io.BytesIO(b"x"))
    return to


# It migrates a database, and restores it twice.
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.any_database
def test_files_of_a_bucket_are_backed_up_and_restored_to_a_bucket_or_a_disk(tmp_path: Path) -> None:
    first, second, third = (tmp_path / name for name in ("first", "second", "third"))
    for folder in (first, second, third):
        folder.mkdir()
    databases.copy_migrated(first)
    file, name, data = tmp_path / "backup.tar", "2026/11/content", os.urandom(70_000)
    with s3_server() as endpoint:
        source, target = make_bucket(endpoint), make_bucket(endpoint)
        source.client.put_object(Bucket=source.name, Key=name, Body=data)
        migrated = manage("migrate", "-v", "0", data_dir=first, url="", **source.environment)
        assert migrated.returncode == 0, migrated.stderr
        done = manage("backup", str(file), data_dir=first, url="", **source.environment)
        assert done.returncode == 0, done.stderr

        refused = manage("restore", str(file), data_dir=second, url="", **source.environment)
        assert (refused.returncode, "has objects" in refused.stderr) == (1, True)
        restored = manage("restore", str(file), data_dir=second, url="", **target.environment)
        assert restored.returncode == 0, restored.stderr
        assert target.objects() == {name: data}
        assert not (second / "content").exists()
    on_disk = manage("restore", str(file), data_dir=third, url="")
    assert on_disk.returncode == 0, on_disk.stderr
    assert (third / "content" / name).read_bytes() == data


@pytest.mark.long
@pytest.mark.any_database
def test_a_backup_that_is_not_whole_restores_nothing(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.mkdir()
    databases.copy_migrated(first)
    assert manage("migrate", "-v", "0", data_dir=first, url="").returncode == 0
    file = tmp_path / "good.tar"
    assert manage("backup", str(file), data_dir=first, url="").returncode == 0
    bad = {
        "was changed": changed(file, tmp_path / "changed.tar", name="db.sqlite3"),
        "unexpected end of data": changed(file, tmp_path / "cut.tar", cut=20_000),
        "does not have the files": changed(file, tmp_path / "more.tar", extra="content/x"),
        "not a readable backup": changed(file, tmp_path / "out.tar", extra="../../outside"),
        "was made by a newer version of the server (chat_app.9999_future). Restore": changed(
            file, tmp_path / "newer.tar", migration="chat_app.9999_future"
        ),
        "could not be opened successfully.": tmp_path / "text.tar",
        "There is no file": tmp_path / "absent.tar",
    }
    (tmp_path / "text.tar").write_text("hello")
    for words, archive in bad.items():
        fresh = tmp_path / archive.stem
        fresh.mkdir()
        done = manage("restore", str(archive), data_dir=fresh, url="")

        assert done.returncode == 1
        assert words in error_of(done)
        assert not (fresh / "db.sqlite3").exists()
        assert not (fresh / "content").exists()
    assert not (tmp_path / "outside").exists()
    assert "exists" in manage("backup", str(file), data_dir=first, url="").stderr


@pytest.mark.long
@pytest.mark.any_database
def test_a_backup_that_cannot_be_written_says_why_and_leaves_nothing(tmp_path: Path) -> None:
    """Blocks of a limit are 512 bytes, or 1024 in some shells; the database has about 2 MB."""
    first, target, fresh = (tmp_path / name for name in ("first", "target", "fresh"))
    for folder in (first / "content", target, fresh):
        folder.mkdir(parents=True)
    databases.copy_migrated(first)
    assert manage("migrate", "-v", "0", data_dir=first, url="").returncode == 0
    (first / "content" / "noise").write_bytes(os.urandom(8_000_000))
    (target / "taken.tar").write_bytes(b"")
    (target / "other.tar.partial").write_bytes(b"")
    there = set(target.iterdir())
    for name, blocks, words in (
        ("absent/b.tar", None, f"There is no folder {target / 'absent'}. Create it"),
        ("taken.tar", None, "taken.tar exists. Choose another name."),
        ("other.tar", None, "other.tar.partial exists: another backup is writing it"),
        ("b.tar", 6_000, f"The backup failed: {target / 'b.tar'}: File too large. It needs"),
        ("b.tar", 1_000, "The database could not be copied: "),
    ):
        arguments = ("backup", str(target / name))
        done = run(CHECKOUT, *arguments, data_dir=first, variables={}, blocks=blocks)
        assert (done.returncode, done.stdout) == (1, "")
        assert words in error_of(done)
        assert set(target.iterdir()) == there
        assert not list(first.glob("tmp*"))
    file = target / "good.tar"
    assert manage("backup", str(file), data_dir=first, url="").returncode == 0
    done = run(CHECKOUT, "restore", str(file), data_dir=fresh, variables={}, blocks=6_000)
    assert (done.returncode, done.stdout) == (1, "")
    assert "File too large. Before the next attempt" in error_of(done)
    assert not (fresh / "db.sqlite3").exists()
