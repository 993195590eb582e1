"""OpenAI's Realtime API over WebSocket, for models that hear and speak.

`sound` reads sound files, `request` makes the events of one inference, `answer` folds those of the
server: they are pure. `provider` has the socket. One socket is one inference; no session is kept.
"""
