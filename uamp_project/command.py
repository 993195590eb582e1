"""The command line of the server: `uamp-server` where it is installed, else `manage.py`."""

import errno
import os
import sys
from typing import Final

# The short commands of an installed server, and what they stand for.
ALIASES: Final = {"try": ("up", "--demo")}
_HELP: Final = """\
Usage: {program} [COMMAND] [OPTIONS]

  {first:22}  update the database, then serve everything in one process with its workers
  try                     the same, with a demo to look around
  user NAME [--admin]     create an account and print its password; --new-password changes one
  migrate                 update the database
  check --deploy          say which settings are missing or unsafe for the internet
  web                     serve as one web process of several, without workers
  worker [QUEUE ...]      run workers for all queues, or for those named
  backup FILE             write the database, files and keys to a file, while the server runs
  restore FILE            restore a backup into an empty DATA_DIR and database
  audit_ledger            check that the ledger adds up; audit_log checks the logs of chats

`{program} COMMAND --help` lists the options of a command,
`{program} help --commands` all commands.
Settings are environment variables, such as DATA_DIR, PORT and HTTPS (docs/settings.md).
"""
# Errors that the operator can fix, and for which a traceback is no help.
_OPERATORS: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES})
_DATABASE_SIGNS: Final = (
    "database or disk is full",
    "attempt to write a readonly database",
    "No space left on device",
    "unable to open database file",
)


def main() -> None:
    """Run the command that the arguments name; without arguments, migrate and serve."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")
    from django.conf import settings  # noqa: PLC0415 after the setting
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 as above
    from django.core.management import execute_from_command_line  # noqa: PLC0415 as above
    from django.db import DatabaseError  # noqa: PLC0415 as above

    program, *arguments = sys.argv
    if not arguments and program_name() == "uamp-server":
        arguments = ["up"]
    arguments = [*ALIASES.get(arguments[0], arguments[:1]), *arguments[1:]] if arguments else []
    try:
        if arguments in (["version"], ["--version"]):
            # Django would print its own.
            print(f"uamp-server {settings.UAMP_VERSION}")  # noqa: T201 it is what was requested
            return
        if arguments in (["help"], ["--help"], ["-h"]):
            first = "up (or no command)" if program_name() == "uamp-server" else "up"
            print(_HELP.format(program=program_name(), first=first), end="")  # noqa: T201 as above
            return
        execute_from_command_line([program, *arguments])
    except ImproperlyConfigured as error:
        if "--traceback" in arguments:
            raise
        sys.exit(f"ImproperlyConfigured: {error}")
    except (OSError, DatabaseError) as error:
        text = _operators_error(error)
        if text is None or "--traceback" in arguments:
            raise
        sys.exit(
            f"{text}. DATA_DIR and DATABASE_URL choose where the server writes: it needs room"
            " there, and files that its user owns."
        )


def program_name() -> str:
    """Return the command that the operator types to run this program."""
    name = os.path.basename(sys.argv[0])  # noqa: PTH119 a name, not a file
    return "uamp-server" if name in {"uamp-server", "command.py"} else "manage.py"


def _operators_error(error: Exception) -> str | None:
    """Return one line about a full or read-only disk; None for any other error."""
    if isinstance(error, OSError):
        if error.errno not in _OPERATORS:
            return None
        return f"{error.filename or 'the disk'}: {error.strerror}"
    text = str(error).strip()
    return text if any(sign in text for sign in _DATABASE_SIGNS) else None


if __name__ == "__main__":
    main()
