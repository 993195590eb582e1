"""Anthropic's Messages API: `read` turns a request into a turn, `write` events into frames.

`blocks` converts the content blocks of a conversation, and `errors` writes refusals; these four are
pure. `views` is the edge.
"""
