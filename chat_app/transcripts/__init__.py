"""Transcripts of recordings in a chat, if the operator configured a server for them.

`transcripts` stores the texts and requests them, `tasks` has a worker send a recording to the
server (docs/calls.md). Off unless `UAMP_TRANSCRIPTION_URL` is set.
"""
