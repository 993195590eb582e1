"""OpenAI's Realtime API over WebSocket: the dialect of GA and the one of the beta.

Pure: `read` has the client's events, `items` and `conversation` what a socket holds,
`session_events` and `write` make the server's events, `input_sound` finds speech. `consumer` is the
edge, with `speech_turns` for what its client says and `item_sounds` for the sounds of its items.
No turn and no storage lives here.
"""
