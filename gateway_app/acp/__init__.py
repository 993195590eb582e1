"""The Agent Client Protocol and webagents' dialect of it, over WebSocket and HTTP.

`read`, `write` and `prompts` are pure; `methods` answers, on every transport, the requests that
start no turn. `consumer` is the WebSocket edge; `http`, `streams`, `posted` and `one_shot` form the
HTTP edge.
"""
