"""OpenAI's Responses API: `read` makes a turn of a request, `write` makes frames of events.

`items` has the items of requests and conversations, `output` those of answers; these four are pure.
`service` starts, finds and cancels responses, `views` is the edge.
"""
