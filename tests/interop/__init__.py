"""Official clients of other protocols, unchanged, against the real server.

`installation` keeps each in a virtual environment of its own; `clients` has what they run. Each
runs against one process on SQLite, and against two on PostgreSQL and Redis that take turns
(`deployments`); a test has the address and the account from the fixture `deployment`.
"""
