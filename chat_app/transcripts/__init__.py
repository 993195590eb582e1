"""What is said in the sounds of a chat, as text, where the operator names a server for it.

`transcripts` keeps the texts and asks for them, `tasks` has a worker send a sound to the server
(docs/calls.md). Off unless `UAMP_TRANSCRIPTION_URL` is set.
"""
