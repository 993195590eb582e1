"""OpenAI's Realtime API over WebSocket: the dialect of GA and the one of the beta.

`read` has the client's events, `conversation` the items of a socket, `write` makes the server's
events, `input_sound` finds speech: they are pure. `consumer` is the edge, with `speech_turns` for
what its client says. No turn and no storage lives here.
"""
