"""The Agent Client Protocol, and the dialect of webagents beside it, over WebSocket and HTTP.

`read`, `write` and `prompts` are pure; `methods` answers what needs no turn, on each transport.
`consumer` is the edge of sockets; `http`, `streams`, `posted` and `one_shot` are that of HTTP.
"""
