"""OpenAI's Realtime API over WebSocket, for models with audio input and output.

`sound` reads audio files, `request` builds the events of one inference, and `answer` assembles
those of the server; these are pure. `provider` handles the socket. Each inference has its own
socket; no session is kept.
"""
