"""OpenAI's Realtime API over WebSocket, for text: the dialect of GA and the one of the beta.

`read` has the client's events, `conversation` the items of a socket, `write` makes the server's
events: they are pure. `consumer` is the edge. Sound is refused; no turn and no storage lives here.
"""
