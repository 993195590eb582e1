"""One server process: its running responses, its periodic work, and recovery from others' death.

How one response runs is in `response`; start and end of the process are in `lifespan`.
"""
