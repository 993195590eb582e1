"""The reference server, `webagents` from PyPI, in a virtual environment of its own.

Nothing else of this repository needs it. Its lock is `requirements.txt`, with hashes.
"""
