"""The embedded broker: each message is read whole and once, by processes beside each other."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

import pytest
from kombu import Connection
from kombu.exceptions import ChannelError
from kombu.transport import filesystem

from tests.client import wait_until
from tests.programs import Program
from tests.uamp_project.embedded.broker_reader import END, READY
from uamp_project.embedded.broker import prepare_folders
from uamp_project.settings import messaging

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_django import Settings

MESSAGES = 2_000
READERS = 2
SECONDS = 120


@pytest.fixture
def options(tmp_path: Path) -> dict[str, str]:
    """Return the product's options of the broker, in folders of the test."""
    folders = {"data_folder_in": "broker", "data_folder_out": "broker", "control_folder": "control"}
    assert folders.keys() < messaging.CELERY_BROKER_TRANSPORT_OPTIONS.keys()
    for name in ("broker", "control"):
        (tmp_path / "run" / name).mkdir(parents=True)
    return {option: str(tmp_path / "run" / name) for option, name in folders.items()}


@pytest.fixture
def connection(options: dict[str, str]) -> Iterator[Connection]:
    """Give a connection to the broker, as the product's settings name it."""
    with Connection(
        messaging.CELERY_BROKER_URL,
        transport=messaging.CELERY_BROKER_TRANSPORT,
        transport_options=options,
    ) as broker_connection:
        yield broker_connection


@pytest.fixture
def channel(connection: Connection) -> Any:
    return connection.channel()


@pytest.fixture
def other(connection: Connection) -> Any:
    """Return a channel that knows nothing of `channel` but its files."""
    return connection.channel()


@pytest.fixture
def files(options: dict[str, str]) -> Path:
    """Return the folder of the messages."""
    return Path(options["data_folder_in"])


def take_all(channel: Any, queue: str = "tools") -> list[Any]:
    """Read a queue until it is empty."""
    messages = []
    while True:
        try:
            messages.append(channel._get(queue))
        except Empty:
            return messages


# --- Messages ---


def test_messages_of_a_writer_reach_readers_whole_and_once(
    channel: Any, options: dict[str, str]
) -> None:
    broker_of_test = [messaging.CELERY_BROKER_URL, messaging.CELERY_BROKER_TRANSPORT, options]
    program = [sys.executable, "-m", "tests.uamp_project.embedded.broker_reader"]
    readers = [
        Program(
            *(*program, json.dumps(broker_of_test)),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        for _ in range(READERS)
    ]
    try:
        wait_until(lambda: channel._size(READY) == READERS)
        for number in range(MESSAGES):
            channel._put("tools", number)
        for _ in readers:
            channel._put("tools", END)
        outputs = [reader.communicate(timeout=SECONDS) for reader in readers]
    finally:
        for reader in readers:
            reader.end(signal.SIGKILL)
    assert [errors for _, errors in outputs] == [""] * READERS
    received = [json.loads(output) for output, _ in outputs]
    assert all(received)
    # A reader whose listing was older than the end may have left some.
    rest = take_all(channel)
    assert sorted(sum(received, rest)) == list(range(MESSAGES))


def test_a_message_is_not_visible_before_it_is_complete(
    channel: Any, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = []
    rename = Path.rename

    def look() -> None:
        seen.append((other._size("tools"), take_all(other), other._purge("tools")))

    class Seen:
        def __json__(self) -> str:
            look()
            return "written"

    def look_and_rename(path: Path, target: Path) -> Path:
        assert path.read_text()
        look()
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", look_and_rename)

    channel._put("tools", {"text": Seen()})

    assert seen == [(0, [], 0)] * 2
    assert other._size("tools") == 1
    assert take_all(other) == [{"text": "written"}]


def test_a_message_goes_to_one_of_its_readers(
    channel: Any, other: Any, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages: list[Any] = []
    read_bytes = Path.read_bytes

    def read_and_be_overtaken(path: Path) -> bytes:
        content = read_bytes(path)
        monkeypatch.undo()
        messages.extend(take_all(other))
        return content

    channel._put("tools", "first")
    monkeypatch.setattr(Path, "read_bytes", read_and_be_overtaken)

    assert take_all(channel) == []
    assert messages == ["first"]
    assert list(files.iterdir()) == []


def test_each_queue_has_its_own_messages_in_their_order(channel: Any, other: Any) -> None:
    for number in range(20):
        channel._put("tools", number)
        channel._put("webhooks", -number)
        channel._put("of.tools", "other")

    assert (other._size("tools"), other._size("of.tools")) == (20, 20)
    assert take_all(other) == list(range(20))
    assert other._purge("of.tools") == 20
    assert take_all(other, "webhooks") == [-number for number in range(20)]


def test_a_message_that_cannot_be_written_leaves_nothing(
    channel: Any, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_full(path: Path, target: Path) -> Path:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path, None, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", is_full)
        with pytest.raises(ChannelError):
            channel._put("tools", "lost")
    assert list(files.iterdir()) == []
    files.rmdir()
    with pytest.raises(ChannelError):
        channel._put("tools", "lost")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff"], ids=["empty", "part", "no text"])
def test_a_broken_message_is_dropped_and_the_next_one_read(
    channel: Any, files: Path, caplog: pytest.LogCaptureFixture, content: bytes
) -> None:
    broken = files / "0_broken.tools.msg"
    broken.write_bytes(content)
    channel._put("tools", "whole")

    assert channel._get("tools") == "whole"

    assert broken.name in caplog.text
    assert list(files.iterdir()) == []


def test_the_start_removes_what_a_killed_process_left(
    channel: Any, files: Path, tmp_path: Path, settings: Settings
) -> None:
    settings.DATA_DIR = tmp_path
    channel._put("tools", "whole")
    control = files.parent / "control"
    old, new, old_table = files / "a.part", files / "b.part", control / "c.part"
    for path in (old, new, old_table, *files.glob("*.msg")):
        path.touch()
        if path != new:
            hour_ago = path.stat().st_mtime - 3600
            os.utime(path, (hour_ago, hour_ago))

    prepare_folders()

    assert not old.exists()
    assert not old_table.exists()
    # It may still be written.
    assert new.exists()
    assert take_all(channel) == ["whole"]


# --- Tables of exchanges ---


def test_a_table_is_created_complete_and_by_one_process(
    channel: Any, other: Any, options: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rename = Path.rename
    created: list[Path] = []

    def look_and_rename(path: Path, target: Path) -> Path:
        assert other.get_table("tools") == []
        with (
            (Path(options["control_folder"]) / "tables.lock").open("wb") as lock,
            pytest.raises(BlockingIOError),
        ):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        created.append(target)
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", look_and_rename)
    for queue in ("tools", "tools", "webhooks"):
        channel._queue_bind("tools", "key", "", queue)

    assert len(created) == 1
    assert {row.queue for row in other.get_table("tools")} == {"tools", "webhooks"}


def test_two_processes_that_bind_first_are_both_in_the_table(
    channel: Any, other: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock = filesystem.lock

    def bind_and_lock(file: Any, flags: int) -> None:
        monkeypatch.undo()
        other._queue_bind("tools", "key", "", "webhooks")
        lock(file, flags)

    monkeypatch.setattr(filesystem, "lock", bind_and_lock)

    channel._queue_bind("tools", "key", "", "tools")

    assert {row.queue for row in other.get_table("tools")} == {"tools", "webhooks"}
