"""One module for each command of `python -m benchmarks`: it has `main(arguments)` and its figures.

They lie by subject: `answers` (what a turn costs), `chats` (with many members, or in a browser),
`agents` (their runtime, and agents from elsewhere), `data` (that has grown, and the ledger) and
`processes` (several, idle, long-lived or killed). What commands share (servers, the client process,
rounds, results) lives in the folder above; programs that are measured beside the server live in
`benchmarks.stubs`.
"""
