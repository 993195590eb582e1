"""OpenAI's Responses API: `read` turns a request into a turn, `write` events into frames.

`items` defines the items of requests and conversations, and `output` those of answers; these four
are pure. `service` starts, finds and cancels responses, and `views` is the edge.
"""
