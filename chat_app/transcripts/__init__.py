"""Transcripts of the sounds of a chat, where the operator names a server for them.

`transcripts` keeps the texts and asks for them, `tasks` has a worker send a sound to the server
(docs/calls.md). Off unless `UAMP_TRANSCRIPTION_URL` is set.
"""
