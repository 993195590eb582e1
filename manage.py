#!/usr/bin/env python
"""Django's command-line entry point; `python manage.py help` lists the commands."""

import os
import sys


def main() -> None:
    """Run the command that the arguments name; a setting that cannot be used is one line."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "uamp_project.settings")
    from django.core.exceptions import ImproperlyConfigured  # noqa: PLC0415 after the setting
    from django.core.management import execute_from_command_line  # noqa: PLC0415 as above

    try:
        execute_from_command_line(sys.argv)
    except ImproperlyConfigured as error:
        if "--traceback" in sys.argv:
            raise
        sys.exit(f"ImproperlyConfigured: {error}")


if __name__ == "__main__":
    main()
