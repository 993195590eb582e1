"""The commands of `python -m benchmarks`: one module each, with `main(arguments)` and its figures.

They are grouped by subject: `answers` (the cost of a turn), `chats` (with many members, or in a
browser), `agents` (their runtime, and external agents), `data` (large tables, and the ledger) and
`processes` (several, idle, long-lived or killed). Shared code (servers, the client process, rounds,
results) is in the folder above; programs measured next to the server are in `benchmarks.stubs`.
"""
