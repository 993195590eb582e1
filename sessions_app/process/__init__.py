"""A server process: its running responses, its periodic work, and recovery after crashes.

`response` runs each response; `lifespan` starts and stops the process.
"""
