"""`manage.py backup FILE`: the database, the contents and the keys in one file.

Contents are in DATA_DIR or in a bucket, and the file has them in the same form, so that it can be
restored to either.
"""

import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

from django.conf import settings
from django.core.files.storage import default_storage
from django.core.management.base import BaseCommand, CommandError
from django.db.migrations.recorder import MigrationRecorder

from federation_app.peers import own_certificate
from uamp_project.backup.archive import write_archive
from uamp_project.backup.dumps import DumpError, dump_database
from uamp_project.management.migrated import require_migrations

CONTENT: Final = "content"
DATA_FILES = (CONTENT, "signing_keys", own_certificate.FOLDER, "secret_key", "demo.json")
"""The parts of DATA_DIR in a backup, besides the database; everything else is recreated."""


class Command(BaseCommand):
    """Writes a backup while the server runs."""

    help = (
        "Write the database, the contents of chats and the keys of DATA_DIR into one file, while"
        " the server runs. The file contains all messages and keys: protect it like the server."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the argument for the file."""
        parser.add_argument("file", type=Path, help="the file to write; it must not exist")

    def handle(self, *_: Any, **options: Any) -> None:
        """Write the file."""
        to: Path = options["file"]
        if to.exists():
            raise CommandError(f"{to} exists. Choose another name.")
        if not to.parent.is_dir():
            raise CommandError(f"There is no folder {to.parent}. Create it, or choose another.")
        require_migrations()
        made_at = int(time.time())
        applied = MigrationRecorder.Migration.objects.order_by("app", "name")
        migrations = [f"{app}.{name}" for app, name in applied.values_list("app", "name")]
        try:
            with tempfile.TemporaryDirectory(dir=settings.DATA_DIR) as folder:
                # The database first: a content stored later is not in its rows, and every content
                # in its rows already has a file.
                dump = dump_database(Path(folder))
                try:
                    manifest = write_archive(
                        to,
                        [(dump.name, _opener(dump)), *_kept_files(), *_objects()],
                        made_at=made_at,
                        migrations=migrations,
                    )
                except FileExistsError as error:
                    raise CommandError(
                        f"{error.filename} exists: another backup is writing it, or one was"
                        " interrupted. Delete it if none is running."
                    ) from error
                except OSError as error:
                    raise CommandError(
                        f"The backup failed: {error.filename or to}: {error.strerror}. It needs a"
                        " folder with enough room that this user may write to."
                    ) from error
        except DumpError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            raise CommandError(
                f"The backup failed: {settings.DATA_DIR}: {error.strerror}. It needs room for a"
                " copy of the database in DATA_DIR."
            ) from error
        size = to.stat().st_size
        self.stdout.write(f"{to}: {len(manifest.files)} files, {size:,} bytes.")


def _opener(path: Path) -> Callable[[], IO[bytes]]:
    return lambda: path.open("rb")


def _kept_files() -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    root = Path(settings.DATA_DIR)
    for name in DATA_FILES:
        path = root / name
        if path.is_file():
            yield name, _opener(path)
        for file in sorted(path.rglob("*")) if path.is_dir() else ():
            if file.is_file():
                yield file.relative_to(root).as_posix(), _opener(file)


def _objects() -> Iterator[tuple[str, Callable[[], IO[bytes]]]]:
    """Yield the objects of the bucket under the names that files of DATA_DIR have."""
    if settings.UAMP_S3_BUCKET:
        storage: Any = default_storage
        for name in storage.names():
            yield f"{CONTENT}/{name}", partial(storage.open, name, "rb")
