"""OpenAI's Responses API: `read` turns a request into a turn, `write` events into frames.

`items` defines the items of requests and conversations, and `output` those of answers; these four
are pure. `service` finds and cancels responses; `views` and, for sockets, `consumer` are the edges.
"""
