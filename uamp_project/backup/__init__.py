"""Backups: the database, the contents and the keys of a server in one file, and back.

`manage.py backup` and `manage.py restore` are the ways in. What one person gets or has erased is in
`sessions_app`.
"""
