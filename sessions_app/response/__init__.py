"""One running response until its one end: its run, its tools, its payment, its checkpoints.

It begins in `turn`, is written by `store`, and knows no connection.
"""
