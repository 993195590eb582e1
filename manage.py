#!/usr/bin/env python
"""Django's command-line entry point; `python manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    """Run the command that the arguments name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")
    from django.core.management import execute_from_command_line  # noqa: PLC0415 after the setting

    execute_from_command_line(sys.argv)


if __name__ == "__main__":
    main()
