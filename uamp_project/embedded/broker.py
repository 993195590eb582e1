"""The broker of the embedded run: kombu's filesystem transport, made safe between processes.

kombu creates a message under its final name and writes it afterwards. A worker that reads it in
between finds it empty, and crashes with a JSONDecodeError along with its other calls. Here:

- a message is written to a `*.part` file, which no queue lists, and then renamed. `serve` removes
  the `*.part` files of processes that were killed while writing;
- a message belongs to the worker that deletes it. kombu first moves it to a temporary folder:
  on another filesystem that is a copy, and two workers overwrite each other's;
- the table of an exchange is created atomically, too.
"""

from __future__ import annotations

import fcntl
import logging
import time
import uuid
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any, Final

from django.conf import settings
from kombu.exceptions import ChannelError
from kombu.transport import filesystem
from kombu.utils.json import dumps, loads

logger = logging.getLogger(__name__)

PART_SECONDS: Final = 60
"""The age at which an unfinished file is assumed to have lost its writer."""
_PART: Final = ".part"


class Channel(filesystem.Channel):
    """A channel whose files are complete as soon as they are visible."""

    def _put(self, queue: str, payload: Any, **kwargs: Any) -> None:  # type: ignore[override] # as kombu's
        """Add a message to a queue; raises ChannelError."""
        del kwargs
        # Messages are read in the order of their names.
        name = f"{time.time_ns()}_{uuid.uuid4()}.{queue}.msg"
        try:
            _write(Path(self.data_folder_out) / name, payload)
        except OSError as error:
            msg = f"cannot write the message {name}"
            raise ChannelError(msg) from error

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Remove and return the oldest message of a queue; raises Empty without waiting."""
        del timeout
        names = (path.name for path in Path(self.data_folder_in).iterdir())
        for name in sorted(name for name in names if name.partition(".")[2] == f"{queue}.msg"):
            path = Path(self.data_folder_in) / name
            try:
                content = path.read_bytes()
                path.unlink()
            except FileNotFoundError:
                continue  # another worker was faster
            try:
                return loads(content)
            except ValueError:
                # Lost in a power cut. Work that is due is announced again.
                logger.warning("dropped the message %s, which is not JSON", name)
        raise Empty

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str | None, queue: str) -> None:
        """Add a queue to the table of an exchange."""
        table: Path = self._exchange_file(exchange)  # type: ignore[attr-defined] # not in the stubs
        self.control_folder.mkdir(exist_ok=True)
        with (self.control_folder / "tables.lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not table.exists():
                _write(table, [])
        # kombu changes an existing table under that table's lock.
        super()._queue_bind(exchange, routing_key, pattern, queue)


class FileTransport(filesystem.Transport):
    """kombu's filesystem transport with this module's Channel."""

    Channel = Channel


def prepare_folders() -> None:
    """Create the folders of queues and sockets in DATA_DIR, for this user only."""
    run = Path(settings.DATA_DIR) / "run"
    for folder in (run, run / "broker", run / "control"):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
        remove_abandoned(folder)


def remove_abandoned(folder: Path) -> None:
    """Delete the `*.part` files of processes that were killed while writing."""
    newest = time.time() - PART_SECONDS
    for path in folder.glob(f"*{_PART}"):
        with suppress(FileNotFoundError):  # it was renamed meanwhile
            if path.stat().st_mtime < newest:
                path.unlink()


def _write(path: Path, content: object) -> None:
    """Write a JSON file atomically, so that other processes never see a part of it."""
    part = path.with_name(f"{uuid.uuid4()}{_PART}")
    try:
        part.write_text(dumps(content))
        part.rename(path)
    except OSError:
        part.unlink(missing_ok=True)
        raise
