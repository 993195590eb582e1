"""OpenAI Chat Completions: `read` makes a turn of a request, `write` makes chunks of events.

Both are pure and know the protocol core only; `views` is the edge.
"""
