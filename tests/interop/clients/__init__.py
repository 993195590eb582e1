"""Programs that run in the environments of their clients: `PROGRAM ORIGIN KEY`.

Each prints one line of JSON, what its client made of the answers. They import nothing of this
repository, and assert nothing.
"""
