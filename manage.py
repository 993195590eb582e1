#!/usr/bin/env python
"""Django's command-line entry point; `python manage.py help` lists the commands."""

from uamp_project.command import main

if __name__ == "__main__":
    main()
