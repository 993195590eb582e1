"""A running response from launch to its single end: run, tools, payment and checkpoints.

`turn` starts it and `store` writes it. Nothing here knows about connections.
"""
