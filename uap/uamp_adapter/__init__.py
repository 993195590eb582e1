"""Between UAMP and the agents of uap: a conversation in UAMP's messages in, UAMP's events out.

The only part of `uap`, with `uap.serving`, that knows `uamp`. It keeps nothing and sends nothing.
"""
