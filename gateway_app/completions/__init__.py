"""OpenAI Chat Completions: `read` turns a request into a turn, `write` events into chunks.

Both are pure and import only the protocol core; `views` is the edge.
"""
