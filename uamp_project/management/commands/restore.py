"""`manage.py restore FILE`: restore a backup into an empty DATA_DIR and database."""

import shutil
import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError, connection

from chat_app.log.epochs import begin_epochs
from uamp_project.backup.archive import ArchiveError, extract_archive
from uamp_project.backup.dumps import NAMES, DumpError, require_empty, restore_database
from uamp_project.command import program_name
from uamp_project.management.commands.backup import CONTENT, DATA_FILES
from uamp_project.management.migrated import unknown_migrations


class Command(BaseCommand):
    """Restores a backup without overwriting anything."""

    help = (
        "Restore a backup into a DATA_DIR without files and keys, and an empty database"
        " (DATABASE_URL, or SQLite in DATA_DIR) of the same kind as in the backup. Then the"
        " database is migrated, and clients that were connected before reload the history."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the argument for the file."""
        parser.add_argument("file", type=Path, help="the file that `backup` wrote")

    def handle(self, *_: Any, **options: Any) -> None:
        """Verify the whole file before anything is put in place."""
        root = Path(settings.DATA_DIR)
        # Starting a command creates the server's key if it is missing.
        in_the_way = [
            name for name in DATA_FILES if name != "secret_key" and (root / name).exists()
        ]
        if in_the_way:
            raise CommandError(f"{root} has {', '.join(in_the_way)}. Choose an empty DATA_DIR.")
        storage: Any = default_storage
        try:
            if settings.UAMP_S3_BUCKET and next(storage.names(), None) is not None:
                raise CommandError(
                    f"{settings.UAMP_S3_BUCKET} has objects. Choose an empty bucket."
                )
            require_empty()
            with tempfile.TemporaryDirectory(dir=root) as name:
                folder = Path(name)
                manifest = extract_archive(options["file"], folder)
                if NAMES[connection.vendor] not in manifest.files:
                    raise CommandError(
                        f"{options['file']} was not made from {connection.vendor}: DATABASE_URL"
                        " must point to the kind of database that the backup was made from."
                    )
                parts = (name.partition(".") for name in manifest.migrations)
                if newer := unknown_migrations((app, name) for app, _, name in parts):
                    raise CommandError(
                        f"{options['file']} was made by a newer version of the server"
                        f" ({', '.join(newer[:3])}). Restore it with that version."
                    )
                restore_database(folder)
                for file_name in DATA_FILES:
                    if file_name == CONTENT and settings.UAMP_S3_BUCKET:
                        _fill_bucket(folder / file_name)
                    elif (folder / file_name).exists():
                        (root / file_name).unlink(missing_ok=True)
                        shutil.move(folder / file_name, root / file_name)
        except OSError as error:
            raise CommandError(
                f"The restore failed: {error.filename or root}: {error.strerror}. Before the next"
                " attempt make room in DATA_DIR, and empty it and the database."
            ) from error
        except (ArchiveError, DumpError, DatabaseError) as error:
            raise CommandError(str(error)) from error
        call_command("migrate", verbosity=0)
        chats = begin_epochs()
        self.stdout.write(
            f"Restored {len(manifest.files)} files of {options['file']}; {chats} chats."
            f" Run `{program_name()} audit_ledger`, then start the server."
        )


def _fill_bucket(folder: Path) -> None:
    for file in sorted(folder.rglob("*")):
        if file.is_file():
            name = file.relative_to(folder).as_posix()
            with file.open("rb") as opened:
                default_storage.save(name, File(opened))
