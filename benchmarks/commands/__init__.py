"""One module for each command of `python -m benchmarks`: it has `main(arguments)` and its figures.

What commands share (servers, the client process, rounds, results) lives in the folder above;
programs that are measured beside the server live in `benchmarks.stubs`.
"""
