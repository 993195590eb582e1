"""The command `uamp`: a server's chats in a terminal and in scripts (docs/command-line.md).

It builds on `uamp.client` and click; each module has the commands of one subject.
"""

import sys


def main() -> None:
    """Run the command line; the entry point of the wheel."""
    try:
        from uamp.command_line.program import run  # noqa: PLC0415 what it needs is an extra
    except ModuleNotFoundError as missing:
        if missing.name is None or missing.name.startswith("uamp"):
            raise
        sys.exit(f"uamp needs {missing.name}: pip install 'uamp-server-uamp[client]'")
    sys.exit(run())
