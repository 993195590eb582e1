"""Backups: the database, the contents and the keys of a server in one file, and restoring it.

The commands are `manage.py backup` and `manage.py restore`. Exporting or erasing a single person's
data is in `sessions_app`.
"""
